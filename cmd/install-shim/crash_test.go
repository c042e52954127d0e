package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// calls are the system calls by which install-shim changes anything, but for
// the openat that creates a file, which a write follows.
var calls = []string{"write", "fchown", "fchmod", "fsync", "renameat", "renameat2", "linkat", "unlinkat", "mkdirat"}

// A point is where install-shim is killed: when it enters a system call for
// the n-th time.
type point struct {
	call string
	n    int
}

// kill runs install-shim and kills it at a point. It reports whether the point
// was reached.
func kill(t *testing.T, at point, noExchange bool, args ...string) bool {
	t.Helper()
	trace := []string{"-f", "--seccomp-bpf", "-qq", "-o", "/dev/null"}
	if noExchange {
		trace = append(trace, "-e", "inject=renameat2:error=EINVAL")
	}
	trace = append(trace, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", at.call, at.n))
	trace = append(trace, filepath.Join(binDir, "install-shim"))
	cmd := exec.Command("strace", append(trace, args...)...)
	cmd.Env = []string{"PATH=/nowhere"} // else all of PATH is read for other shims
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	// strace ends as its program did.
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("strace: %v\n%s", err, out)
	}
	return true
}

// installShim runs install-shim to its end.
func installShim(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(binDir, "install-shim"), args...)
	cmd.Env = []string{"PATH=/nowhere"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("install-shim %q: %v\n%s", args, err, out)
	}
}

// A crashCase is one operation that is killed at every step.
type crashCase struct {
	name       string
	noExchange bool
	inPlace    bool
	symlink    bool       // the name is a symbolic link to the program
	before     [][]string // operations that come first
	op         []string
	kills      int // at least so many system calls change something
	// states that status must have told after a kill, or the test has not
	// reached what it is about.
	states []string
}

func TestKilledAtEveryCall(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		missing(t, "strace")
	}
	install := []string{"install", "--in-place", "P"}
	cases := []crashCase{
		{name: "install", kills: 6, inPlace: true, op: install, states: []string{"not-a-shim", "unfinished", "ok"}},
		{name: "install by link", kills: 9, inPlace: true, noExchange: true, op: install, states: []string{"not-a-shim", "unfinished", "ok"}},
		{name: "install a symlink", kills: 6, inPlace: true, symlink: true, op: install, states: []string{"not-a-shim", "unfinished", "ok"}},
		{name: "install a symlink by link", kills: 9, inPlace: true, symlink: true, noExchange: true, op: install, states: []string{"not-a-shim", "unfinished", "ok"}},
		{name: "update", kills: 5, inPlace: true, before: [][]string{install}, op: []string{"install", "--in-place", "--argv0", "real", "P"}, states: []string{"ok"}},
		{name: "uninstall", kills: 2, inPlace: true, before: [][]string{install}, op: []string{"uninstall", "--in-place", "P"}, states: []string{"ok", "not-a-shim"}},
		{name: "install in a directory", kills: 6, op: []string{"install", "--dir", "D", "--real", "P", "name"}},
		{name: "update in a directory", kills: 5, before: [][]string{{"install", "--dir", "D", "--real", "P", "name"}}, op: []string{"install", "--dir", "D", "--real", "P", "--argv0", "real", "name"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if os.Getenv(binEnv) != "" && c.name != "install" && c.name != "install by link" {
				t.Skip("already done as root, and no other without privilege")
			}
			seen := make(map[string]bool)
			kills := 0
			for _, call := range calls {
				if call == "renameat2" && c.noExchange {
					continue
				}
				for at := (point{call, 1}); c.try(t, at, "install", seen) && c.try(t, at, "uninstall", seen); at.n++ {
					kills++
					if at.n > 20 {
						t.Fatalf("%s: the operation does not end", call)
					}
				}
			}
			if kills < c.kills {
				t.Errorf("killed at %d system calls, want at least %d", kills, c.kills)
			}
			for _, s := range c.states {
				if !seen[s] {
					t.Errorf("state %s was never seen in %d kills", s, kills)
				}
			}
		})
	}
}

// try does the operation with a kill at the n-th call, looks whether the
// program works, and whether what comes then brings order.
func (c *crashCase) try(t *testing.T, at point, then string, seen map[string]bool) (killed bool) {
	t.Helper()
	dir := fastDir(t)
	program, shims := filepath.Join(dir, "program"), filepath.Join(dir, "shims")
	origin := program
	if c.symlink {
		origin = filepath.Join(dir, "origin")
		if err := os.Symlink("origin", program); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyFile("/bin/echo", origin, 0o751); err != nil {
		t.Fatal(err)
	}
	var was unix.Stat_t
	if err := unix.Lstat(program, &was); err != nil {
		t.Fatal(err)
	}
	fill := func(args []string) []string {
		out := make([]string, len(args))
		for i, a := range args {
			out[i] = strings.NewReplacer("P", program, "D", shims).Replace(a)
		}
		return out
	}
	for _, b := range c.before {
		installShim(t, fill(b)...)
	}
	killed = kill(t, at, c.noExchange, fill(c.op)...)
	mustEcho(t, program, at)

	if !c.inPlace {
		name := filepath.Join(shims, "name")
		if _, err := os.Lstat(name); err == nil {
			mustEcho(t, name, at)
		} else if c.before != nil {
			t.Fatalf("%v: %v", at, err)
		}
		installShim(t, fill([]string{"install", "--dir", "D", "--real", "P", "name"})...)
		mustEcho(t, name, at)
		wantNames(t, shims, "name")
		return killed
	}

	if killed {
		seen[stateOf(t, program)] = true
	}
	names := []string{"program"}
	if c.symlink {
		names = append(names, "origin")
	}
	if then == "install" {
		installShim(t, "install", "--in-place", program)
		mustEcho(t, program, at)
		wantNames(t, dir, append(names, "program"+record.InPlaceSuffix)...)
		installShim(t, "status", program)
	}
	installShim(t, "uninstall", "--in-place", program)
	mustEcho(t, program, at)
	wantNames(t, dir, names...)
	var is unix.Stat_t
	if err := unix.Lstat(program, &is); err != nil {
		t.Fatal(err)
	}
	// Reading a link changes its access time, and no more than a direct use.
	was.Ctim, was.Atim, is.Ctim, is.Atim = unix.Timespec{}, unix.Timespec{}, unix.Timespec{}, unix.Timespec{}
	if was != is {
		t.Fatalf("%v: the program is\n%+v, was\n%+v", at, is, was)
	}
	return killed
}

// stateOf returns what status says of a path.
func stateOf(t *testing.T, path string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(binDir, "install-shim"), "status", "--json", path)
	cmd.Env = []string{"PATH=/nowhere"}
	out, err := cmd.Output()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		t.Fatal(err)
	}
	var got struct{ Shims []struct{ State string } }
	if err := json.Unmarshal(out, &got); err != nil || len(got.Shims) != 1 {
		t.Fatalf("status: %v\n%s", err, out)
	}
	return got.Shims[0].State
}

// fastDir makes a directory where fsync costs nothing, if there is one.
func fastDir(t *testing.T) string {
	t.Helper()
	const shm = "/dev/shm"
	var fs unix.Statfs_t
	if unix.Statfs(shm, &fs) == nil && fs.Flags&unix.ST_NOEXEC == 0 {
		if dir, err := os.MkdirTemp(shm, "install-shim-test-"); err == nil {
			t.Cleanup(func() { os.RemoveAll(dir) })
			return dir
		}
	}
	return t.TempDir()
}

func mustEcho(t *testing.T, program string, when any) {
	t.Helper()
	out, err := exec.Command(program, "it", "works").Output()
	if err != nil || string(out) != "it works\n" {
		t.Fatalf("%v: %s: %v, %q", when, program, err, out)
	}
}

func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]bool)
	for _, e := range entries {
		got[e.Name()] = true
	}
	for _, w := range want {
		if !got[w] {
			t.Fatalf("%s: no %s in %v", dir, w, got)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %v, want only %v", dir, got, want)
	}
}
