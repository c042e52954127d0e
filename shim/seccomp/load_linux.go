package seccomp

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Filters are loaded by prctl(PR_SET_SECCOMP), which does what seccomp(2) does
// without flags. A supervisor with a list of allowed system calls leaves prctl, which
// every runtime calls, but often kills whoever calls seccomp(2): so does systemd with
// SystemCallFilter=@system-service.

// Load puts the calling thread behind the filter of c, for itself and all that
// it starts; there is no way back. The caller has locked the thread and set
// no_new_privs (seccomp(2)). The errno stays reachable by errors.Is.
func Load(c Config) error {
	filter, err := c.program()
	if err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	errno := setSeccomp(unsafe.Pointer(&prog))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return fmt.Errorf("load the seccomp filter: %w", errno)
	}
	return nil
}

var errAnswered = errors.New("seccomp: something answers in the kernel's place")

// Available reports why a filter cannot be loaded, nil if it can: the kernel
// lacks seccomp, or a supervisor forbids it.
func Available() error {
	// A kernel with filters reads the program, and there is none at 0.
	switch errno := setSeccomp(nil); errno {
	case unix.EFAULT:
		return nil
	case 0:
		return errAnswered
	default:
		return fmt.Errorf("seccomp: %w", errno)
	}
}

func setSeccomp(prog unsafe.Pointer) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(prog), 0, 0, 0)
	return errno
}

// Filtered reports whether the calling thread stands behind a filter already. A
// system call that such a filter kills for cannot be tried.
func Filtered() bool {
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return err != nil || mode != 0
}
