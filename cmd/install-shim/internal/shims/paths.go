package shims

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// ID returns the identity of a file.
func ID(st *unix.Stat_t) pathcheck.ID { return pathcheck.ID{Dev: uint64(st.Dev), Ino: st.Ino} }

// IDAt returns the identity of the file at a path, symbolic links followed.
func IDAt(path string) (id pathcheck.ID, ok bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return id, false
	}
	return ID(&st), true
}

// FromCwd makes a path absolute and leaves ".." in it, which counts from where
// a symbolic link before it leads.
func FromCwd(p string) (string, error) {
	if p == "" {
		return "", errors.New("the path is empty")
	}
	if path.IsAbs(p) {
		return p, nil
	}
	cwd, err := os.Getwd()
	return strings.TrimSuffix(cwd, "/") + "/" + p, err
}

// Absolute makes a path absolute and clean without resolving its last
// component. Where it holds "..", the directory is resolved, because ".."
// counts from where a symbolic link before it leads. The error names no path.
func Absolute(p string) (string, error) {
	p, err := FromCwd(p)
	if err != nil || !slices.Contains(strings.Split(p, "/"), "..") {
		return path.Clean(p), voice.Bare(err)
	}
	dir, base := path.Split(strings.TrimRight(p, "/"))
	if base == ".." || base == "." {
		dir, base = dir+base, ""
	}
	dir, err = filepath.EvalSymlinks(dir)
	return path.Join(dir, base), voice.Bare(err)
}

// Executable reports whether execvp(3) would take the file.
func Executable(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&0o111 != 0 &&
		unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) == nil
}

// ErrLeased: another process holds a lease on the file (F_SETLEASE of fcntl(2)), for
// which an open for reading would wait up to /proc/sys/fs/lease-break-time.
var ErrLeased = errors.New("another process holds a lease on it")

// ErrNotRegular: opening a device has effects, and reading a pipe takes from it.
var ErrNotRegular = errors.New("is not a regular file")

// leaseWait is how long leases are waited for in all: a file server gives its own up
// at once, and many files must not add up.
var leaseWait = time.Second

// Open opens a regular file for reading, without waiting for a FIFO's other end or
// for a lease. The name is one in the directory dir; flags is 0 or O_NOFOLLOW. A
// directory gives EISDIR, anything else that is no regular file [ErrNotRegular].
func Open(dir int, name string, flags int) (*os.File, error) {
	var st unix.Stat_t
	follow := 0
	if flags&unix.O_NOFOLLOW != 0 {
		follow = unix.AT_SYMLINK_NOFOLLOW
	}
	if err := unix.Fstatat(dir, name, &st, follow); err != nil {
		return nil, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		return nil, unix.EISDIR
	default:
		return nil, ErrNotRegular
	}
	for {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC|flags, 0)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), name), nil
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, err
		case leaseWait <= 0:
			return nil, ErrLeased
		default:
			const pause = 20 * time.Millisecond
			time.Sleep(pause)
			leaseWait -= pause
		}
	}
}
