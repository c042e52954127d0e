package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Inherited lists the descriptors that the launcher left open, which is all
// that are open before the shim opens its first, but for the stand-ins of
// closed ones.
func Inherited(closed [3]bool) ([]int, error) {
	fds, err := openDescriptors()
	return slices.DeleteFunc(fds, func(fd int) bool { return fd < len(closed) && closed[fd] }), err
}

func openDescriptors() ([]int, error) {
	dir, err := unix.Open("/proc/self/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return probedDescriptors()
	}
	if err != nil {
		return nil, fmt.Errorf("open /proc/self/fd: %w", err)
	}
	defer unix.Close(dir)
	var names []string
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.ReadDirent(dir, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list /proc/self/fd: %w", err)
		}
		if n == 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	var out []int
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd != dir {
			place, _ := slices.BinarySearch(out, fd)
			out = slices.Insert(out, place, fd)
		}
	}
	return out, nil
}

// probedDescriptors asks for every number that can be open, for when /proc is
// not mounted.
func probedDescriptors() ([]int, error) {
	size, err := tableSize()
	if err != nil {
		return nil, err
	}
	var out []int
	for fd := range size {
		switch _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err {
		case nil:
			out = append(out, fd)
		case unix.EBADF:
		default:
			return nil, err
		}
	}
	return out, nil
}

// tableSize returns a number above all open descriptors. The limit may have been
// lowered since these were opened; pselect(2) rejects only numbers inside the table.
func tableSize() (int, error) {
	for size := 64; ; size *= 2 {
		if _, err := unix.FcntlInt(uintptr(size), unix.F_GETFD, 0); err == nil {
			continue
		}
		set, now := make([]byte, size/8+8), unix.Timespec{}
		set[size/8] = 1
		switch _, _, errno := unix.Syscall6(unix.SYS_PSELECT6, uintptr(size+1), uintptr(unsafe.Pointer(&set[0])), 0, 0,
			uintptr(unsafe.Pointer(&now)), 0); errno {
		case 0:
			return size, nil
		case unix.EBADF: // there is room
		default:
			return 0, errno
		}
	}
}
