package probe

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// execveCheck is AT_EXECVE_CHECK of linux/fcntl.h.
const execveCheck = 0x10000

// executeCheck makes the kernel check an execve without doing it
// (AT_EXECVE_CHECK of execveat(2), Linux 6.14). An older kernel does not know the
// flag and answers EINVAL.
func executeCheck(name string) syscall.Errno {
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return unix.ENOENT
	}
	argv, envp, cwd := [2]*byte{p}, [1]*byte{}, unix.AT_FDCWD
	_, _, errno := unix.Syscall6(unix.SYS_EXECVEAT, uintptr(cwd), uintptr(unsafe.Pointer(p)),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envp[0])), execveCheck, 0)
	return errno
}
