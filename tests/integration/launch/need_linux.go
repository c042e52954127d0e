package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// A Feature is something that a machine may lack.
type Feature struct {
	name  string
	check func() error
}

// What tests may need of a machine.
var (
	Landlock = Feature{"Landlock", func() error { _, err := ll.LandlockGetABIVersion(); return err }}
	Seccomp  = Feature{"seccomp filters with user notification", func() error {
		action := uint32(unix.SECCOMP_RET_USER_NOTIF)
		_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
		if errno != 0 {
			return errno
		}
		return nil
	}}
	UserNS = Feature{"user namespaces", func() error { return runTrue(syscall.CLONE_NEWUSER) }}
	Mounts = Feature{"a private mount namespace", func() error { return runTrue(syscall.CLONE_NEWNS) }}
	IsRoot = Feature{"root", func() error {
		if os.Geteuid() != 0 {
			return fmt.Errorf("the tests run as uid %d", os.Geteuid())
		}
		return nil
	}}
)

// Here reports whether the machine has the feature.
func (f Feature) Here() bool { return f.check() == nil }

// Program is the feature of having a program on PATH.
func Program(name string) Feature {
	return Feature{"the program " + name, func() error { _, err := exec.LookPath(name); return err }}
}

// Works is the feature of a program that does something in the environment of the
// tests: rustup's cargo needs the HOME that it was installed in.
func Works(name string, args ...string) Feature {
	return Feature{"a working " + name, func() error { return exec.Command(name, args...).Run() }}
}

// OpenFiles is the feature of a limit of open files that lets a launch have n.
func OpenFiles(n uint64) Feature {
	return Feature{fmt.Sprintf("%d open files", n), func() error {
		var lim unix.Rlimit
		err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &lim)
		if err == nil && lim.Max < n {
			err = fmt.Errorf("the tests were started with a limit of %d", lim.Max)
		}
		return err
	}}
}

// ABIAtLeast is the feature of a kernel with at least this Landlock ABI.
func ABIAtLeast(n int) Feature {
	return Feature{fmt.Sprintf("Landlock ABI %d", n), func() error {
		abi, err := ll.LandlockGetABIVersion()
		if err == nil && abi < n {
			err = fmt.Errorf("this kernel has %d", abi)
		}
		return err
	}}
}

func runTrue(flags uintptr) error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	return cmd.Run()
}

// Has reports whether the machine has a feature.
func Has(f Feature) bool { return f.check() == nil }

// Need skips the test when the machine lacks a feature, with the reason. In CI,
// where the environment variable CI is set, the test fails instead.
func Need(tb testing.TB, features ...Feature) {
	tb.Helper()
	var errs []error
	for _, f := range features {
		if err := f.check(); err != nil {
			errs = append(errs, fmt.Errorf("needs %s: %w", f.name, err))
		}
	}
	err := errors.Join(errs...)
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		tb.Fatal(err)
	default:
		tb.Skip(err)
	}
}
