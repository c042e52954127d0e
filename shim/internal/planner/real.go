package planner

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// real returns where a path leads at which the shim itself is to write. A link that
// an earlier launch may have made is an error, see [plan.CheckLinks].
func (in *Input) real(path string) (pathcheck.Location, error) {
	tree := pathcheck.Keep(pathcheck.OS{})
	defer tree.Release()
	loc, err := pathcheck.Resolve(tree, path)
	if err != nil || len(loc.Links) == 0 {
		return loc, err
	}
	mounts, err := MountTable()
	if err != nil && !errors.Is(err, errNoProc) {
		return loc, err
	}
	if err := plan.CheckLinks(in.Policy, in.facts(mounts), tree, loc); err != nil {
		return loc, err
	}
	return loc, tree.Err()
}

// OpenParent opens the directory in which a file of the shim's own stands or is to be
// made, and returns the file's name in it. path is absolute.
func (in *Input) OpenParent(path string) (dir int, name string, err error) {
	loc, err := in.real(parentOf(path))
	switch {
	case err != nil:
		return -1, "", err
	case loc.Denied:
		return -1, "", unix.EACCES
	case !loc.Exists:
		return -1, "", unix.ENOENT
	}
	dir, err = descend(loc.Path, openOnly)
	return dir, baseOf(path), err
}

// openDir opens a directory by one name, never through a symlink. O_PATH needs
// no permission on it, waits for nothing and has no effect (open(2)).
const openDir = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// descend opens the directory at a clean absolute path by opening each component in the
// one before, without following a symlink, so that nobody who changes the path
// meanwhile leads it elsewhere.
func descend(path string, next func(dir int, name string) (int, error)) (int, error) {
	dir, err := unix.Open("/", openDir, 0)
	if err != nil {
		return -1, err
	}
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name == "" {
			continue // path is "/"
		}
		below, err := next(dir, name)
		unix.Close(dir)
		if err != nil {
			return -1, err
		}
		dir = below
	}
	return dir, nil
}

func openOnly(dir int, name string) (int, error) {
	fd, err := unix.Openat(dir, name, openDir, 0)
	if err != nil {
		return -1, fmt.Errorf("open %q: %w", name, notDirectory(dir, name, err))
	}
	return fd, nil
}

// parentOf returns the directory above an absolute path without empty or "."
// components; a ".." is left to the kernel.
func parentOf(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 1)] }
