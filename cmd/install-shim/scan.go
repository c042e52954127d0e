package main

import (
	"os"
	"slices"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// shimAt reports whether the file at a path, symbolic links followed, is a
// shim, and returns its record. What cannot be read is none.
func shimAt(path string) (bool, record.Record) {
	f, err := os.Open(path)
	if err != nil {
		return false, record.Record{}
	}
	defer f.Close()
	if is, err := record.FileIsShim(f); err != nil || !is {
		return false, record.Record{}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return true, record.Record{}
	}
	r, _, err := record.Read(data)
	if err != nil {
		return true, record.Record{}
	}
	return true, r
}

// ours returns the names in a directory that an install is about: those of
// shims, and those that have a sibling but are no shim any more. Files that
// this user cannot read are passed over.
func (d *directory) ours() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, refused(d.path, "%w", bare(err))
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if isTemp(name) {
			continue
		}
		if base, ok := strings.CutSuffix(name, siblingSuffix); ok {
			names = append(names, base)
			continue
		}
		if !e.Type().IsRegular() {
			continue
		}
		if e, err := d.look(name); err == nil && e.kind == aShim {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func isTemp(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".shim-new")
}

// A knownShim is an installed shim.
type knownShim struct {
	path string
	record.Record
}

// allShims returns the installed shims on PATH and in the directories of the
// changes.
func (a *admin) allShims(changes []*change) []knownShim {
	dirs := a.pathDirs()
	for _, c := range changes {
		dirs = append(dirs, c.dir.path)
	}
	var shims []knownShim
	seen := make(map[fileID]bool)
	for _, path := range dirs {
		d, err := openDirectory(path)
		if err != nil {
			continue
		}
		if !seen[d.id] {
			seen[d.id] = true
			names, _ := d.ours() // what cannot be listed cannot be asked
			for _, name := range names {
				if is, r := shimAt(d.join(name)); is && r.Real != "" {
					shims = append(shims, knownShim{d.join(name), r})
				}
			}
		}
		d.close()
	}
	return shims
}
