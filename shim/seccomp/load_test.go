package seccomp_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/seccomp"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/child"
)

// A filter is in force for the calling thread when Load says so, and only then.
func TestLoad(t *testing.T) {
	if err := seccomp.Available(); err != nil {
		child.Unavailable(t, err.Error())
	}
	tcp := func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
	child.Thread(func() {
		if err := tcp(); err != nil || seccomp.Marked() {
			t.Errorf("before: %v, marked %v", err, seccomp.Marked())
		}
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = seccomp.Load(seccomp.Config{Sockets: seccomp.LocalSockets, Mark: 7})
		}
		if refused := tcp(); err != nil || refused != unix.EACCES || !seccomp.Marked() {
			t.Errorf("after: %v, %v, marked %v", err, refused, seccomp.Marked())
		}
	})
	errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_PRCTL, Some: true, Arg: 0, Is: unix.PR_SET_SECCOMP}, unix.EPERM, func() {
		if err := seccomp.Load(seccomp.Config{Mark: 7}); !errors.Is(err, unix.EPERM) || seccomp.Marked() {
			t.Errorf("not loaded: %v", err)
		}
		if err := seccomp.Available(); !errors.Is(err, unix.EPERM) {
			t.Errorf("not available: %v", err)
		}
	})
}
