package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A fileID is the identity of a file: one inode of one file system.
type fileID struct{ dev, ino uint64 }

func idOf(st *unix.Stat_t) fileID { return fileID{uint64(st.Dev), st.Ino} }

// absolute makes a path absolute and clean without resolving its last
// component. Where it holds "..", the directory is resolved, because ".."
// counts from where a symbolic link before it leads.
func absolute(p string) (string, error) {
	if p == "" {
		return "", fmt.Errorf("the path is empty")
	}
	if !path.IsAbs(p) {
		cwd, err := os.Getwd()
		if err != nil {
			return "", err
		}
		p = cwd + "/" + p
	}
	if !slices.Contains(strings.Split(p, "/"), "..") {
		return path.Clean(p), nil
	}
	dir, base := path.Split(strings.TrimRight(p, "/"))
	if base == ".." || base == "." {
		dir, base = dir+base, ""
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	return path.Join(dir, base), nil
}

// chain returns the identity of the file at p, and before it that of every
// symbolic link by which p's last component leads to it. It ends early where
// the links do.
func chain(p string) []fileID {
	var ids []fileID
	const maxLinks = 40 // as in the kernel (path_resolution(7))
	for range maxLinks + 1 {
		var st unix.Stat_t
		if unix.Lstat(p, &st) != nil {
			return ids
		}
		ids = append(ids, idOf(&st))
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			return ids
		}
		target, err := os.Readlink(p)
		if err != nil {
			return ids
		}
		if !path.IsAbs(target) {
			// Not cleaned: ".." counts from where the directory leads.
			target = path.Dir(p) + "/" + target
		}
		p = target
	}
	return ids
}

// pathDirs returns the absolute entries of PATH in their order. A relative or
// empty entry depends on who asks, and is left out.
func (a *admin) pathDirs() []string {
	var dirs []string
	for _, dir := range strings.Split(a.getenv("PATH"), ":") {
		if !path.IsAbs(dir) {
			continue
		}
		if clean, err := absolute(dir); err == nil {
			dirs = append(dirs, clean)
		}
	}
	return dirs
}
