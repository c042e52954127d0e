// Package shims finds installed shims and the programs that they stand for. It
// changes nothing.
package shims

import (
	"errors"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// ErrNotOnPath: PATH has no program of a name.
var ErrNotOnPath = errors.New("is not on PATH")

// PathDirs returns the absolute entries of PATH in their order. A relative or
// empty entry depends on who asks, and is left out.
func PathDirs(v *voice.Caller) []string {
	var dirs []string
	for _, dir := range strings.Split(v.Getenv("PATH"), ":") {
		if !path.IsAbs(dir) {
			continue
		}
		if clean, err := Absolute(dir); err == nil {
			dirs = append(dirs, clean)
		}
	}
	return dirs
}

// once leaves out directories that do not exist, and those that came before.
func once(dirs []string) []string {
	seen := make(map[pathcheck.ID]bool)
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		id, ok := IDAt(dir)
		again := !ok || seen[id]
		seen[id] = true
		return again
	})
}

// OnPath returns what PATH has under a name, in its order: regular files that
// this user may execute. A directory counts once.
func OnPath(v *voice.Caller, name string) []File {
	var found []File
	for _, dir := range once(PathDirs(v)) {
		if p := pathcheck.Join(dir, name); Executable(p) {
			found = append(found, At(p))
		}
	}
	return found
}

// Find returns the file that a command line means: the first of the name on PATH,
// which must be executable, or what is at the path, which need not exist.
func Find(v *voice.Caller, target string) (File, error) {
	if !strings.Contains(target, "/") {
		if found := OnPath(v, target); target != "" && len(found) > 0 {
			return found[0], nil
		}
		return File{}, voice.Refused(target, "%w", ErrNotOnPath)
	}
	p, err := Absolute(target)
	if err != nil {
		return File{}, voice.Refused(target, "%w", err)
	}
	return At(p), nil
}

// All returns the installed shims in directories.
func All(dirs []string) []File {
	var found []File
	for _, dir := range once(dirs) {
		names, _ := Names(dir) // what cannot be listed cannot be asked
		for _, name := range names {
			if f := At(pathcheck.Join(dir, name)); f.Record.Real != "" {
				found = append(found, f)
			}
		}
	}
	return found
}

// Suffix is what the real program behind a shim in place has behind its name.
const Suffix = record.InPlaceSuffix

// TempName is where the new file for a name is written. It is the same every
// time, so that what a crash left is found and removed.
func TempName(name string) string { return "." + name + tempSuffix }

const tempSuffix = ".shim-new"

// Names returns the names in a directory that an install is about: those of
// shims, and those that have a real program beside them but are no shim any more.
// Files that this user cannot read are passed over.
func Names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, voice.Refused(dir, "%w", voice.Bare(err))
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") && strings.HasSuffix(name, tempSuffix) {
			continue
		}
		if base, ok := strings.CutSuffix(name, Suffix); ok {
			names = append(names, base)
		} else if e.Type().IsRegular() && At(pathcheck.Join(dir, name)).IsShim {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// NoRecord is the error for a shim that was not installed.
func NoRecord(path string) error {
	return voice.Refused(path, "is a shim without a record: it was copied there, not installed")
}
