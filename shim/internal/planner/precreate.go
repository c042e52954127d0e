package planner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// Precreate makes the directories of the policy and their parents, and what its
// exposed templates ask for, with mode 0700 (a file: 0600) less the umask. What
// exists stays as it is. It returns the paths of the key precreate.
//
// Nothing is made through a link that [plan.CheckLinks] refuses, and below the
// directory that a template declares through none at all.
func (in *Input) Precreate() ([]string, error) {
	p := in.Policy
	var out []string
	for _, e := range p.Precreate {
		if err := in.makeEntry(e, p.Root); err != nil {
			return out, fmt.Errorf("%s: %q: %w", e.Key, e.Path, shorn(err))
		}
		out = append(out, e.Path)
	}
	for _, e := range p.Exposed {
		if e.Derived == nil || e.Derived.Kind == rules.KindNone {
			continue
		}
		if err := in.makeEntry(e, p.Root); err != nil {
			return out, fmt.Errorf("%s: %q: %w", e.Key, e.Path, shorn(err))
		}
	}
	return out, nil
}

func (in *Input) makeEntry(e rules.Entry, root string) error {
	switch {
	case e.Derived != nil && e.Derived.Beneath != "" && e.Derived.Base == "":
		return errNotChosen
	case e.Derived != nil && e.Derived.Beneath != "":
		if _, err := in.real(e.Derived.Beneath); err != nil {
			return err
		}
		return makeReal(pathcheck.Join(e.Derived.Base, pathcheck.Rel(e.Derived.Beneath, e.Path)), e.Derived.Kind)
	case e.Derived == nil || !pathcheck.Within(root, e.Path):
		return in.makeDirs(e.Path)
	}
	// An operator may have put a symlink in the place of an existing directory.
	if info, err := os.Stat(e.Path); err == nil && info.IsDir() {
		return nil
	}
	loc, err := in.real(root)
	if err != nil {
		return err
	}
	return makeReal(pathcheck.Join(loc.Path, pathcheck.Rel(root, e.Path)), e.Derived.Kind)
}

// makeDirs makes a directory and its parents, where the path really leads.
func (in *Input) makeDirs(path string) error {
	loc, err := in.real(path)
	switch {
	case err != nil:
		return err
	case loc.Denied:
		return fs.ErrPermission
	case loc.Exists && loc.Info.Kind != pathcheck.Directory:
		return fs.ErrExist
	case loc.Exists:
		return nil
	}
	return makeReal(loc.Path, rules.KindDir)
}

// makeReal makes what stands at a clean absolute path and the directories above
// it. A file that exists is not opened.
func makeReal(path string, kind rules.EntryKind) error {
	file := ""
	if kind == rules.KindFile {
		path, file = parentOf(path), baseOf(path)
	}
	dir, err := descend(path, openOrMake)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if file == "" {
		return nil
	}
	return makeFile(dir, file)
}

func openOrMake(dir int, name string) (int, error) {
	fd, err := openOnly(dir, name)
	if !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	if err := unix.Mkdirat(dir, name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, fmt.Errorf("make %q: %w", name, err)
	}
	return openOnly(dir, name)
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
