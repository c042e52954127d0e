package plan

import (
	"slices"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// usual returns the names that are tried in a directory that cannot be listed.
func usual(dir string) []string {
	switch dir {
	case "/":
		return []string{
			"bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "media", "mnt", "nix", "opt", "proc", "root",
			"run", "sbin", "snap", "srv", "sys", "tmp", "usr", "var",
		}
	case "/dev":
		return []string{"full", "mqueue", "net", "null", "ptmx", "pts", "random", "shm", "tty", "urandom", "zero"}
	}
	return nil
}

// named returns the entries of dir that can be named without listing it.
func (w *walk) named(dir string) []string {
	seen := map[string]bool{}
	add := func(path string) {
		// A PATH may hold anything; "." and ".." would lead out of dir.
		if name, ok := below(dir, path); ok && name != "." && name != ".." && !strings.Contains(name, "\x00") {
			seen[name] = true
		}
	}
	for _, name := range usual(dir) {
		seen[name] = true
	}
	for _, m := range w.launch.Mounts {
		add(m.Point)
	}
	for _, name := range w.launch.Names {
		add(name)
		if loc, err := pathcheck.Resolve(w.tree, name); err == nil {
			add(loc.Path)
		}
	}
	for _, n := range w.launch.Needed {
		if loc, err := pathcheck.Resolve(w.tree, n.Path); err == nil {
			add(loc.Path)
		}
	}
	out := make([]string, 0, len(seen))
	for name := range seen {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// below returns the first component of path beneath dir.
func below(dir, path string) (string, bool) {
	if !pathcheck.Beneath(dir, path) {
		return "", false
	}
	name, _, _ := strings.Cut(pathcheck.Rel(dir, path), "/")
	return name, true
}
