package planner

import (
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/target"
)

// Protected lists what the next launch rests on and a read-only mount can close: the
// shim's file, or its directory where that holds nothing but shims, the real program,
// the policy file and the profile. The paths are real, but that the last component may
// be a symbolic link, which is then followed by what it leads to.
func Protected(in Input) []string {
	if !in.Policy.ConfinesFiles() {
		return nil
	}
	tree := pathcheck.Keep(pathcheck.OS{})
	defer tree.Release()
	var out []string
	add := func(path string) {
		for _, o := range out {
			if pathcheck.Within(o, path) {
				return
			}
		}
		out = append(out, path)
	}
	shim, rest := in.named()
	if dir, err := pathcheck.Resolve(tree, pathcheck.Parent(shim)); shim != "" && err == nil && dir.Exists && target.OnlyShims(dir.Path) {
		add(dir.Path)
	}
	for _, path := range append([]string{shim}, rest...) {
		if path == "" {
			continue
		}
		dir, err := pathcheck.Resolve(tree, pathcheck.Parent(path))
		at, err2 := pathcheck.Resolve(tree, path)
		if err != nil || err2 != nil || !at.Exists || at.Info.Kind != pathcheck.Regular {
			continue // what is not there, or no file, is nothing that a next launch would take
		}
		add(pathcheck.Join(dir.Path, pathcheck.Rel(pathcheck.Parent(path), path)))
		add(at.Path)
	}
	return out
}

// named returns the absolute paths by which this launch came to the shim, "" if
// nothing tells, and to the other files that it rests on.
func (in *Input) named() (shim string, rest []string) {
	here := Cwd()
	if in.Self.Invoked != "" {
		if shim = pathcheck.Absolute(here, in.Self.Invoked); shim == "" {
			shim = pathcheck.Absolute(here, in.Self.Path)
		}
	}
	return shim, []string{pathcheck.Absolute(here, in.Program.Path), in.Source.File, in.Policy.ProfileFile}
}
