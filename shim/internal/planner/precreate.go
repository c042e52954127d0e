package planner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// Precreate makes the directories of the policy and their parents, and what its
// exposed templates ask for, with mode 0700 (a file: 0600) less the umask. What
// exists stays as it is. It returns the paths of the key precreate.
//
// A plain path goes through symlinks. Below the directory that a template
// declares nothing is made through one.
func Precreate(p *rules.Policy) ([]string, error) {
	var out []string
	for _, e := range p.Precreate {
		if err := makeEntry(e, p.Root); err != nil {
			return out, fmt.Errorf("%s: %q: %w", e.Key, e.Path, shorn(err))
		}
		out = append(out, e.Path)
	}
	for _, e := range p.Exposed {
		if e.Derived == nil || e.Derived.Kind == rules.KindNone {
			continue
		}
		if err := makeEntry(e, p.Root); err != nil {
			return out, fmt.Errorf("%s: %q: %w", e.Key, e.Path, shorn(err))
		}
	}
	return out, nil
}

func makeEntry(e rules.Entry, root string) error {
	switch {
	case e.Derived == nil:
		return makeDirs(e.Path)
	case e.Derived.Beneath != "" && e.Derived.Base == "":
		return errNotChosen
	case e.Derived.Beneath != "":
		return makeReal(pathcheck.Join(e.Derived.Base, pathcheck.Rel(e.Derived.Beneath, e.Path)), e.Derived.Kind)
	case !pathcheck.Within(root, e.Path):
		return makeDirs(e.Path)
	}
	// An operator may have put a symlink in the place of an existing directory.
	if info, err := os.Stat(e.Path); err == nil && info.IsDir() {
		return nil
	}
	loc, err := pathcheck.Resolve(pathcheck.OS{}, root)
	if err != nil {
		return err
	}
	return makeReal(pathcheck.Join(loc.Path, pathcheck.Rel(root, e.Path)), e.Derived.Kind)
}

// makeDirs makes a directory and its parents, through symlinks.
func makeDirs(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fs.ErrExist
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if parent := parentOf(path); parent != path {
		if err := makeDirs(parent); err != nil {
			return err
		}
	}
	err = os.Mkdir(path, 0o700)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	// Another launch was faster, or the name is a symlink to nothing.
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return fs.ErrExist
	}
	return nil
}

// parentOf returns the directory above an absolute path without empty or "."
// components; a ".." is left to the kernel.
func parentOf(path string) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '/' {
			return path[:i]
		}
	}
	return "/"
}

// openDir opens a directory by one name, never through a symlink. O_PATH needs
// no permission on it, waits for nothing and has no effect (open(2)).
const openDir = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// makeReal makes what stands at a clean absolute path and the directories above
// it. Each component is opened in the one before, without following a symlink,
// so that nobody who changes the path meanwhile leads it elsewhere. A file that
// exists is not opened.
func makeReal(path string, kind rules.EntryKind) error {
	names := strings.Split(strings.TrimPrefix(path, "/"), "/")
	file := ""
	if kind == rules.KindFile {
		file, names = names[len(names)-1], names[:len(names)-1]
	}
	dir, err := unix.Open("/", openDir, 0)
	if err != nil {
		return err
	}
	defer func() { unix.Close(dir) }()
	for _, name := range names {
		next, err := openOrMake(dir, name)
		if err != nil {
			return err
		}
		unix.Close(dir)
		dir = next
	}
	if file == "" {
		return nil
	}
	return makeFile(dir, file)
}

func openOrMake(dir int, name string) (int, error) {
	fd, err := unix.Openat(dir, name, openDir, 0)
	if errors.Is(err, unix.ENOENT) {
		if err := unix.Mkdirat(dir, name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return -1, fmt.Errorf("make %q: %w", name, err)
		}
		fd, err = unix.Openat(dir, name, openDir, 0)
	}
	if err != nil {
		return -1, fmt.Errorf("open %q: %w", name, notDirectory(dir, name, err))
	}
	return fd, nil
}

// notDirectory says of a failed open when it met a symlink.
func notDirectory(dir int, name string, err error) error {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return errSymlink
	}
	return err
}

// errNotChosen is a fault of the shim: a template's path that nobody has looked up.
var errNotChosen = errors.New("the place of its directory is not known")

var errSymlink = errors.New("is a symbolic link")

// makeFile makes an empty file. O_EXCL follows no symlink, and leaves alone
// whatever has the name already; the plan will look at it.
func makeFile(dir int, name string) error {
	const flags = unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, name, flags, 0o600)
	switch {
	case errors.Is(err, unix.EEXIST):
		return nil
	case err != nil:
		return fmt.Errorf("make %q: %w", name, err)
	}
	return unix.Close(fd)
}

// shorn takes an operation and a path out of an error that the message names
// itself.
func shorn(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
