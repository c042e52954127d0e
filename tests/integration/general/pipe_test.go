package general_test

import (
	"os"

	"golang.org/x/sys/unix"
)

const directPipe = unix.O_DIRECT

func pipe2(flags int) (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], flags|unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "read"), os.NewFile(uintptr(fds[1]), "write"), nil
}
