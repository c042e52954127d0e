package output

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// A File is an open report or log. It is opened before the confinement and
// is closed by execve.
type File struct {
	fd int
	to rules.Destination
}

// Takes reports whether the file is this inherited descriptor, which is closed when
// the program starts. 2 stays the program's standard error.
func (f *File) Takes(fd int) bool { return f != nil && f.to.IsFD && f.fd == fd && fd > 2 }

// Open opens a destination for appending. A file must be a regular one
// of the caller's own with a single name: neither a symlink, nor a FIFO that
// could hang, nor a second name of another file is written to. It returns nil
// for the zero destination. inherited holds the descriptors that the launcher left
// open.
func Open(d rules.Destination, inherited []int) (*File, error) {
	switch {
	case d.IsZero():
		return nil, nil
	case d.IsFD:
		return openDescriptor(d, inherited)
	}
	fd, err := unix.Open(d.Path, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		if errors.Is(err, unix.ELOOP) {
			return nil, fmt.Errorf("open %q: is a symlink", d.Path)
		}
		return nil, fmt.Errorf("open %q: %w", d.Path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("open %q: %w", d.Path, err)
	}
	wrong := ""
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		wrong = "not a regular file"
	case int(st.Uid) != unix.Geteuid():
		wrong = "belongs to another user"
	case st.Nlink != 1:
		wrong = "has more than one name"
	}
	if wrong != "" {
		unix.Close(fd)
		return nil, fmt.Errorf("open %q: %s", d.Path, wrong)
	}
	return &File{fd: fd, to: d}, nil
}

// openDescriptor takes a descriptor that the launcher opened. Above 2 it is
// closed for the program; 2 stays the program's standard error.
func openDescriptor(d rules.Destination, inherited []int) (*File, error) {
	// A number that the launcher left free may be one of the shim's own by now.
	if !slices.Contains(inherited, d.FD) {
		return nil, fmt.Errorf("descriptor %d: %w", d.FD, unix.EBADF)
	}
	flags, err := unix.FcntlInt(uintptr(d.FD), unix.F_GETFL, 0)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", d.FD, err)
	}
	if flags&unix.O_ACCMODE == unix.O_RDONLY || flags&unix.O_PATH != 0 {
		return nil, fmt.Errorf("descriptor %d is not open for writing", d.FD)
	}
	// From here on it is the shim's own, see [File.Takes].
	if d.FD > 2 {
		if _, err := unix.FcntlInt(uintptr(d.FD), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
			return nil, fmt.Errorf("descriptor %d: %w", d.FD, err)
		}
	}
	return &File{fd: d.FD, to: d}, nil
}

// Write writes one line with one write(2), so that launches that share the
// file do not mix. A short write is an error: the rest would be torn off.
func (f *File) Write(line []byte) (int, error) {
	n, err := write(f.fd, line)
	switch {
	case err != nil:
		return 0, fmt.Errorf("write: %w", err)
	case n != len(line):
		return n, fmt.Errorf("write: only %d of %d bytes were taken", n, len(line))
	}
	return n, nil
}
