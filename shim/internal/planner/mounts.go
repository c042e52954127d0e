package planner

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// A mountWatch is an open /proc/self/mountinfo: the table of mounts, and the
// news that it changed (proc_pid_mountinfo(5): poll(2) gives POLLPRI).
type mountWatch struct{ fd int }

// watchMounts opens the mount table. Without /proc there is none, and no alias
// of a hidden path can be found: absent is then true.
func watchMounts() (w *mountWatch, absent bool, err error) {
	fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("open /proc/self/mountinfo: %w", err)
	}
	return &mountWatch{fd: fd}, false, nil
}

// read reads the whole table from its start.
func (w *mountWatch) read() (pathcheck.Mounts, error) {
	if w == nil {
		return nil, nil
	}
	return parse(w.text())
}

func (w *mountWatch) text() (string, error) {
	if _, err := unix.Seek(w.fd, 0, 0); err != nil {
		return "", fmt.Errorf("read /proc/self/mountinfo: %w", err)
	}
	var text strings.Builder
	buf := make([]byte, 8<<10) // the usual table fits, and few pages are touched
	for {
		n, err := unix.Read(w.fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("read /proc/self/mountinfo: %w", err)
		}
		if n == 0 {
			return text.String(), nil
		}
		text.Write(buf[:n])
	}
}

// changed reports whether the table changed since it was opened or this was
// last asked.
func (w *mountWatch) changed() (bool, error) {
	if w == nil {
		return false, nil
	}
	fds := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLPRI}}
	for {
		n, err := unix.Poll(fds, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("poll /proc/self/mountinfo: %w", err)
		}
		return n > 0, nil
	}
}

func (w *mountWatch) close() {
	if w != nil {
		unix.Close(w.fd)
	}
}

// MountTable reads the table of mounts once, and of it what is of these types of file
// systems; nil means all. To take a line apart costs more than to read it.
func MountTable(types func(fstype string) bool) (pathcheck.Mounts, error) {
	w, absent, err := watchMounts()
	if err != nil {
		return nil, err
	}
	if absent {
		return nil, errNoProc
	}
	defer w.close()
	text, err := w.text()
	if err != nil || types == nil {
		return parse(text, err)
	}
	var some strings.Builder
	for line := range strings.Lines(text) {
		_, right, _ := strings.Cut(line, " - ")
		if fstype, _, _ := strings.Cut(right, " "); types(fstype) {
			some.WriteString(line)
		}
	}
	return pathcheck.ParseMounts(some.String())
}

func parse(text string, err error) (pathcheck.Mounts, error) {
	if err != nil {
		return nil, err
	}
	return pathcheck.ParseMounts(text)
}

var errNoProc = errors.New("/proc is not mounted")
