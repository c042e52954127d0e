// Command attempt tries to get out of the confinement that it runs in.
//
//	attempt list                   all attempts, as JSON
//	attempt outside WORLD          be the process outside of the world in this file
//	attempt change WHAT PATH       change an attribute
//	attempt run WORLD PROMISE...   try what would break one of the promises, or has
//	                               one of the names
//
// It prints a line for each attempt: its name, a tab, and ESCAPED, or "denied"
// with the errno, or "documented" where an attempt gets through that has a
// heading in SECURITY.md, or "error" where nothing was tried.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/escape/world"
)

// An attempt is one way out.
type attempt struct {
	Name string
	// Breaks is what a policy promises and this attempt would break.
	Breaks string
	// Limit is the heading of SECURITY.md that says that it gets through.
	Limit string
	// Needs is what a machine may lack, Rare what most do.
	Needs, Rare string
	// Root is set for what only root can do without a policy, User for what
	// would mean nothing to root.
	Root, User bool
	// inside is set for what is done in a user and mount namespace of its own,
	// with all capabilities there.
	inside bool
	do     func(*w) error
}

// w is the world, with the methods that attempts share.
type w struct{ world.World }

// The promises of a policy.
const (
	hidden     = "hidden"     // the key "hidden"
	writes     = "writes"     // scope "workspace"
	network    = "network"    // network "deny"
	signals    = "signals"    // the elements of "isolate"
	abstract   = "abstract"   //
	unixSocket = "unix"       //
	proc       = "proc"       //
	tty        = "tty"        //
	ipc        = "ipc"        //
	kernel     = "kernel"     // any confinement: what the kernel does for the caller
	privileges = "privileges" // any confinement: what a process may become
)

var attempts []attempt

// add appends a kind of attempts that break one promise.
func add(breaks string, list ...attempt) {
	for _, a := range list {
		a.Breaks = breaks
		attempts = append(attempts, a)
	}
}

// Denials without an errno of their own.
var (
	// errUnseen is ENOENT for what is there.
	errUnseen = errors.New("denied unseen")
	// errSilent is success without the effect.
	errSilent = errors.New("denied silently")
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func command(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "list":
		return json.NewEncoder(os.Stdout).Encode(attempts)
	case len(args) == 1 && args[0] == "escaped": // what a hidden program says when it runs
		fmt.Println("ESCAPED")
		return nil
	case len(args) == 1 && args[0] == "privileged":
		fmt.Println(privileged())
		return nil
	case len(args) == 1 && args[0] == "socket":
		return onlySocket(unix.AF_INET, unix.SOCK_STREAM, 0)
	case len(args) == 3 && args[0] == "change":
		return change(args[1], args[2])
	case len(args) < 2:
		return errors.New("usage")
	}
	data, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	in := &w{}
	if err := json.Unmarshal(data, &in.World); err != nil {
		return err
	}
	switch args[0] {
	case "outside":
		return outside(in)
	case "run":
		for _, a := range attempts {
			if slices.Contains(args[2:], a.Breaks) || slices.Contains(args[2:], a.Name) {
				fmt.Printf("%s\t%s\n", a.Name, start(in, a, args[1]))
			}
		}
		return nil
	case "one":
		i := slices.IndexFunc(attempts, func(a attempt) bool { return a.Name == args[2] })
		fmt.Println(verdict(attempts[i], in))
		return nil
	}
	return errors.New("usage")
}

// start makes an attempt in a process of its own, which may do what it likes to
// itself.
func start(in *w, a attempt, file string) string {
	cmd := exec.Command(in.Dir+"/program", "one", file, a.Name)
	cmd.Args[0] = "attempt"
	cmd.Stdin = os.Stdin
	for _, fd := range in.Descriptors {
		for len(cmd.ExtraFiles) <= fd-3 {
			cmd.ExtraFiles = append(cmd.ExtraFiles, nil)
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			cmd.ExtraFiles[fd-3] = os.NewFile(uintptr(fd), "")
			inherited = append(inherited, cmd.ExtraFiles[fd-3])
		}
	}
	if a.inside {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS}
		for c := range uintptr(unix.CAP_LAST_CAP + 1) {
			cmd.SysProcAttr.AmbientCaps = append(cmd.SysProcAttr.AmbientCaps, c)
		}
	}
	timer := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		text := ""
		if errors.As(err, &exit) {
			text = strings.ReplaceAll(string(exit.Stderr[:min(len(exit.Stderr), 300)]), "\n", " ")
		}
		return fmt.Sprintf("error: %v %s", err, text)
	}
	return strings.TrimSpace(string(out))
}

// inherited keeps what would be closed when nothing refers to it.
var inherited []*os.File

func verdict(a attempt, in *w) string {
	runtime.LockOSThread() // namespaces, filters and domains are a thread's
	if a.inside {
		mapSelf(in.UID)
	}
	err := a.do(in)
	var errno unix.Errno
	switch {
	case err == nil && a.Limit != "":
		return "documented"
	case err == nil:
		return "ESCAPED"
	case errors.Is(err, errUnseen) || errors.Is(err, errSilent):
		return err.Error()
	case errors.As(err, &errno):
		return "denied " + unix.ErrnoName(errno)
	}
	return "error: " + err.Error()
}

// mapSelf maps this user in a new user namespace, where /proc can be written.
// Without it the capabilities are there all the same.
func mapSelf(uid int) {
	_ = os.WriteFile("/proc/self/setgroups", []byte("deny"), 0)
	_ = os.WriteFile("/proc/self/uid_map", fmt.Appendf(nil, "%d %d 1", uid, uid), 0)
	_ = os.WriteFile("/proc/self/gid_map", fmt.Appendf(nil, "%d %d 1", uid, uid), 0)
}

// setup marks an error of what comes before the attempt itself.
func setup(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("before the attempt: %s", err)
}
