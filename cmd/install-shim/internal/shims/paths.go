package shims

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

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

// Open opens a file for reading and waits for nothing. The name is one in the
// directory dir; the flags are added.
func Open(dir int, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
