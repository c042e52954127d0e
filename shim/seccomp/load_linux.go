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

// A try is a call that would do nothing without the filter.
type try struct {
	wants wants
	call  uintptr
	args  [3]uintptr
	errno unix.Errno
	what  string
}

const none = ^uintptr(0) // no descriptor, no operation, no limit

var tries = []try{
	{noTCP, unix.SYS_SOCKET, [3]uintptr{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, unix.EACCES, "a TCP socket"},
	{noNetwork, unix.SYS_SOCKET, [3]uintptr{unix.AF_PACKET, unix.SOCK_RAW | unix.SOCK_CLOEXEC}, unix.EACCES, "a packet socket"},
	{noUDP, unix.SYS_SOCKET, [3]uintptr{unix.AF_INET, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, unix.EACCES, "a UDP socket"},
	{noUnix, unix.SYS_SOCKET, [3]uintptr{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, unix.EACCES, "a unix socket"},
	{noInput, unix.SYS_IOCTL, [3]uintptr{none, unix.TIOCSTI}, unix.EPERM, "terminal input"},
	{noFiles, unix.SYS_IOCTL, [3]uintptr{none, snapCreate}, unix.EPERM, "a snapshot"},
	{noNetwork, unix.SYS_IOCTL, [3]uintptr{none, unix.TUNSETIFF}, unix.EPERM, "a network device"},
	{noKeyrings, unix.SYS_KEYCTL, [3]uintptr{none}, unix.EPERM, "keyctl"},
	{noKeyrings, unix.SYS_ADD_KEY, [3]uintptr{}, unix.EPERM, "add_key"},
	{noKeyrings, unix.SYS_REQUEST_KEY, [3]uintptr{}, unix.EPERM, "request_key"},
	{noLimits, unix.SYS_PRLIMIT64, [3]uintptr{1, none, 1}, unix.EPERM, "a limit of a process"},
	{noLimits, unix.SYS_SETPRIORITY, [3]uintptr{unix.PRIO_PGRP, none >> 1}, unix.EPERM, "the priority of a group"},
	{noLimits, unix.SYS_IOPRIO_SET, [3]uintptr{ioprioWhoPgrp, none >> 1}, unix.EPERM, "the I/O priority of a group"},
}

// snapCreate is BTRFS_IOC_SNAP_CREATE (linux/btrfs.h).
const snapCreate = 0x50009401

var errNoAnswer = errors.New("the seccomp filter does not answer")

// Prove asks the filter of c, which has a Mark, for its answer. A filter is loaded as a
// whole or not at all, so the answer speaks for all of it; another launch's filter has
// another mark. Then it tries what the filter is there to refuse, unless the thread
// stood behind somebody's filter before: that one may kill for what is tried.
func Prove(c Config, behind bool) error {
	if !ask(proofQuestion, uintptr(c.Mark)) {
		return errNoAnswer
	}
	if behind {
		return nil
	}
	w := c.wants()
	for _, t := range tries {
		if w&t.wants == 0 {
			continue
		}
		r, _, errno := unix.RawSyscall(t.call, t.args[0], t.args[1], t.args[2])
		if errno == 0 && t.call == unix.SYS_SOCKET {
			unix.Close(int(r))
		}
		if errno != t.errno {
			return fmt.Errorf("%s: expected %w, got errno %d", t.what, t.errno, errno)
		}
	}
	return nil
}
