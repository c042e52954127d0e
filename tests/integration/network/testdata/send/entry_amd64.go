package main

import "golang.org/x/sys/unix"

// call80 makes a system call by the entry for 32-bit programs.
func call80(nr, a, b, c uintptr) uintptr

func int80() error {
	const socket = 359
	return withSocket(uintptr(int32(call80(socket, unix.AF_INET, unix.SOCK_STREAM, 0))))
}

func x32() error {
	const x32Bit = 0x40000000
	fd, _, errno := unix.Syscall(x32Bit|unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0)
	if errno != 0 {
		return errno
	}
	return withSocket(fd)
}

func withSocket(fd uintptr) error {
	if int(fd) < 0 {
		return unix.Errno(-int(fd))
	}
	return connectFD(int(fd), addr4())
}
