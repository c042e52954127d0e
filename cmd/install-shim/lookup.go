package main

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// errNotOnPath: PATH has no program of a name.
var errNotOnPath = errors.New("is not on PATH")

// A finding is a file that PATH gives for a name.
type finding struct {
	path string
	shim bool
	// rec is the shim's record, the zero value for other files and for a shim
	// without one.
	rec record.Record
}

// findings returns what PATH has under a name, in its order: regular files
// that this user may execute. A directory counts once.
func (a *admin) findings(name string) []finding {
	var found []finding
	seen := make(map[fileID]bool)
	for _, dir := range a.pathDirs() {
		var st unix.Stat_t
		if unix.Stat(dir, &st) != nil || seen[idOf(&st)] {
			continue
		}
		seen[idOf(&st)] = true
		p := (&directory{path: dir}).join(name)
		if !executable(p) {
			continue
		}
		f := finding{path: p}
		f.shim, f.rec = shimAt(p)
		found = append(found, f)
	}
	return found
}

// executable reports whether execvp(3) would take the file.
func executable(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&0o111 != 0 &&
		unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) == nil
}

// lookUp finds the program that a shim called name in dir is to stand for.
// Shims in other directories are passed over: a shim in front of a shim would
// confine twice.
func (a *admin) lookUp(name string, dir *directory) (string, error) {
	for _, f := range a.findings(name) {
		var st unix.Stat_t
		switch {
		case dir != nil && unix.Stat(parent(f.path), &st) == nil && idOf(&st) == dir.id:
			continue
		case f.shim && f.rec.InPlace:
			return "", refused(name, "PATH has it at %s, which already is a shim in place", show(f.path))
		case f.shim:
			continue
		}
		return f.path, nil
	}
	return "", &hinted{refused(name, "%w", errNotOnPath), "name the real program with --real"}
}
