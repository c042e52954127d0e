package main

import "golang.org/x/sys/unix"

// call80 makes a system call by the entry for 32-bit programs.
func call80(nr, a, b, c uintptr) uintptr

func socket32(*w) error {
	const socket = 359
	return result32(call80(socket, unix.AF_INET, unix.SOCK_STREAM, 0))
}

func ioctl32(fd int, request, arg uintptr) error {
	const ioctl = 54
	return result32(call80(ioctl, uintptr(fd), request, arg))
}

func result32(r uintptr) error {
	if int(r) < 0 {
		return unix.Errno(-int(r))
	}
	return nil
}
