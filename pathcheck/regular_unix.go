//go:build unix

package pathcheck

import (
	"errors"
	"io"
	"syscall"
)

// openRegular opens a regular file for reading, through symbolic links. It
// does not wait for the other end of a pipe: that is what O_NONBLOCK does
// for a FIFO (open(2)), and on a regular file it changes nothing.
//
// It calls the kernel directly, since package os would start the poller of
// the runtime, four system calls and two descriptors for one file.
func openRegular(path string) (io.ReadCloser, error) {
	flags := syscall.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_CLOEXEC
	fd, err := retryEINTR(func() (int, error) { return syscall.Open(path, flags, 0) })
	if err != nil {
		return nil, err
	}
	var st syscall.Stat_t
	if _, err := retryEINTR(func() (int, error) { return 0, syscall.Fstat(fd, &st) }); err != nil {
		_ = syscall.Close(fd)
		return nil, err
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		_ = syscall.Close(fd)
		return nil, ErrNotRegular
	}
	return descriptor(fd), nil
}

// A descriptor is an open file of the kernel.
type descriptor int

func (d descriptor) Read(p []byte) (int, error) {
	n, err := retryEINTR(func() (int, error) { return syscall.Read(int(d), p) })
	switch {
	case err != nil:
		return 0, err
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

func (d descriptor) Close() error { return syscall.Close(int(d)) }

// retryEINTR repeats a call that a signal interrupted.
func retryEINTR(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
