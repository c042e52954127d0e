package seccomp

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Load puts the calling thread behind the filter of c, for itself and all that
// it starts; there is no way back. The caller has locked the thread and set
// no_new_privs (seccomp(2)). The errno stays reachable by errors.Is.
func Load(c Config) error {
	filter, err := c.program()
	if err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return fmt.Errorf("load the seccomp filter: %w", errno)
	}
	return nil
}

// Available reports why a filter cannot be loaded, nil if it can: the kernel
// lacks seccomp, or a container's profile forbids it.
func Available() error {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}
