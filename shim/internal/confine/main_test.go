package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/planner"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/target"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/child"
)

func TestMain(m *testing.M) {
	os.Exit(child.Main(m, map[string]child.Func{"enter": enterChild, "proc": procChild}))
}

// inputOf is what a plan of p is made from, for a program that is everywhere.
func inputOf(p *rules.Policy) planner.Input {
	return planner.Input{
		Policy: p, Env: []string{"PATH=/usr/bin:/bin"}, Program: target.At("/bin/true", "true"),
		Step: func(string) {}, Debug: func(string, ...any) {},
	}
}

// planOf plans p without granting anything.
func planOf(t *testing.T, p *rules.Policy) *planner.Plan {
	t.Helper()
	pl, err := planner.Make(inputOf(p), func([]string) (plan.Sink, error) { return &plan.Recorder{}, nil })
	errnotest.Must(t, err)
	t.Cleanup(pl.Close)
	return pl
}

// kernel is this machine's, which must have Landlock.
func kernel(t *testing.T, abi int) rules.Kernel {
	t.Helper()
	k := AskKernel()
	if k.ABI < abi {
		child.Unavailable(t, fmt.Sprintf("needs Landlock ABI %d, has %d: %s", abi, k.ABI, k.Unavailable))
	}
	if k.NoSeccomp != "" {
		child.Unavailable(t, "needs seccomp: "+k.NoSeccomp)
	}
	return k
}

func hide(paths ...string) []rules.Entry {
	var out []rules.Entry
	for _, path := range paths {
		out = append(out, rules.Entry{Key: "hidden", Path: path})
	}
	return out
}

// An order is what a child is to enter, and then to try.
type order struct {
	Policy rules.Policy
	// Alias is bind-mounted on Onto between the plan and the domain, in a mount
	// namespace of the child.
	Alias, Onto string
	// Proc asks for the private /proc.
	Proc bool
	// Nothing leaves out the domain, to show what could be done without it.
	Nothing bool
	// Read, Make and Connect are what is tried afterwards.
	Read, Make []string
	Ports      []int
	// Tries are names of tries.
	Tries []string
}

// A finding is what a child has found: errors by what was tried, "" for none.
type finding struct {
	Proof   string
	Found   map[string]string
	Status  map[string]string
	Warning string
	Gaps    []rules.Gap
	Mounts  string
}

// enterChild plans, enters and proves as a launch does.
func enterChild(in []byte) (any, error) {
	var o order
	if err := json.Unmarshal(in, &o); err != nil {
		return nil, err
	}
	out := finding{Found: map[string]string{}}
	k := AskKernel()
	if o.Proc || o.Alias != "" {
		if err := ownNamespace(); err != nil {
			return nil, err
		}
	}
	if o.Proc {
		k = entered(&o.Policy, k, func() []string { return nil }).Kernel
	}
	if !o.Nothing {
		if err := enter(o, k, &out); err != nil {
			return nil, err
		}
	}
	for _, path := range o.Read {
		out.Found["read "+path] = text(tryRead(path))
	}
	for _, dir := range o.Make {
		fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err == nil {
			unix.Close(fd)
		}
		out.Found["make "+dir] = text(err)
	}
	for _, name := range o.Tries {
		out.Found[name] = text(tries[name]())
	}
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return nil, err
	}
	out.Status = map[string]string{}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		out.Status[name] = strings.TrimSpace(value)
	}
	return out, nil
}

func enter(o order, k rules.Kernel, out *finding) error {
	var rs *Ruleset
	pl, err := planner.Make(inputOf(&o.Policy), func(needed []string) (_ plan.Sink, err error) {
		rs, err = NewRuleset(&o.Policy, k, needed)
		return rs, err
	})
	if err != nil {
		return err
	}
	defer pl.Close()
	if o.Alias != "" {
		if err := unix.Mount(o.Alias, o.Onto, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", o.Alias, err)
		}
	}
	d, err := Enter(&o.Policy, k, rs, func(string) {})
	if err != nil {
		return err
	}
	out.Proof, out.Warning, out.Gaps = text(d.Prove(pl, "/bin/true")), d.Warning, d.Gaps
	return nil
}

// ownNamespace gives this thread mounts that reach nobody outside.
func ownNamespace() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
}

func text(err error) string {
	var errno unix.Errno
	switch {
	case err == nil:
		return ""
	case errors.As(err, &errno) && err == error(errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

func tryRead(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// trySocket makes a socket.
func trySocket(family, kind int) func() error {
	return func() error {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
}

var tries = map[string]func() error{
	"tcp":      trySocket(unix.AF_INET, unix.SOCK_STREAM),
	"udp":      trySocket(unix.AF_INET, unix.SOCK_DGRAM),
	"unix":     trySocket(unix.AF_UNIX, unix.SOCK_STREAM),
	"terminal": func() error { return unix.IoctlSetInt(-1, unix.TIOCSTI, 0) },
	"signal":   func() error { return unix.Kill(unix.Getppid(), 0) },
	"environ":  func() error { return tryRead(fmt.Sprintf("/proc/%d/environ", unix.Getppid())) },
	"launcher": func() error { return unix.Stat(fmt.Sprintf("/proc/%d", unix.Getppid()), &unix.Stat_t{}) },
	"abstract": func() error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Connect(fd, &unix.SockaddrUnix{Name: abstractName(unix.Getppid())})
	},
}

// abstractName is that of the socket of a launcher.
func abstractName(pid int) string { return fmt.Sprintf("@confine-test-%d", pid) }

// nodeAt opens the node at a path for the length of the test.
func nodeAt(t *testing.T, path string) pathcheck.Node {
	t.Helper()
	n, err := pathcheck.Lookup(pathcheck.OS{}, path)
	errnotest.Must(t, err)
	t.Cleanup(func() { n.Close() })
	return n
}
