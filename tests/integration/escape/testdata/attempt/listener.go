package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// listener puts this thread under a filter of its own that asks another thread,
// which tells the kernel to go on with the call (seccomp_unotify(2)).
func listener(*w) error {
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SOCKET, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, err := call(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, ptr(&prog))
	if err != nil {
		return setup(err)
	}
	go func() {
		var request [10]uint64 // struct seccomp_notif
		const receive, send = 0xc0502100, 0xc0182101
		if did(unix.SYS_IOCTL, fd, receive, ptr(&request)) != nil {
			return
		}
		answer := struct {
			ID           uint64
			Val          int64
			Error, Flags uint32
		}{ID: request[0], Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, send, uintptr(unsafe.Pointer(&answer)))
	}()
	return onlySocket(unix.AF_INET, unix.SOCK_STREAM, 0)
}
