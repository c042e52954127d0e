package main

import "golang.org/x/sys/unix"

// onlyBind binds a TCP socket to a port of the loopback device.
func onlyBind(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: local4})
}

// listen listens on a TCP socket that was never bound.
func listen() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Listen(fd, 1)
}
