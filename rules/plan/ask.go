package plan

import (
	"slices"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// HidesID reports whether the inode is a hidden location, and which.
func (pl *Plan) HidesID(id pathcheck.ID) (path string, ok bool) {
	for _, h := range pl.Hidden {
		if h.Exists && h.Info.ID == id {
			return h.Path, true
		}
	}
	return "", false
}

// ExposesID reports whether the inode is an exposed location.
func (pl *Plan) ExposesID(id pathcheck.ID) bool {
	for _, x := range pl.Exposed {
		if x.Info.ID == id {
			return true
		}
	}
	return false
}

// HidesOn returns a hidden location that is on a file system, or beneath which it
// is mounted. dev is its device as in [pathcheck.ID], name as in
// [pathcheck.Mount].
func (pl *Plan) HidesOn(dev uint64, name string) (path string, ok bool) {
	for _, h := range pl.Hidden {
		if h.Exists && h.Info.ID.Dev == dev {
			return h.Path, true
		}
		for _, m := range pl.launch.Mounts {
			if pathcheck.Beneath(h.Path, m.Point) && m.Dev == name {
				return h.Path, true
			}
		}
	}
	return "", false
}

// HasMount reports whether the table of mounts of this launch has an ID.
func (pl *Plan) HasMount(id uint64) bool {
	return slices.ContainsFunc(pl.launch.Mounts, func(m pathcheck.Mount) bool { return uint64(m.ID) == id })
}

// Hides reports whether the plan leaves the real path unreachable.
func (pl *Plan) Hides(path string) bool {
	_, ok := pl.covered(path)
	return ok
}

// Freezes reports whether the directory at the real path takes no new entries.
func (pl *Plan) Freezes(path string) bool {
	_, ok := pl.expand[path]
	return ok
}

// WritableDirs returns the real locations that a report and a notice name as
// writable, in order: the workspace, the policy's writable roots, and the
// toolchain directories.
func (pl *Plan) WritableDirs() []string {
	var out []string
	for _, r := range pl.Roots {
		if r.Listed {
			out = append(out, r.Path)
		}
	}
	return out
}

// WritableRoot returns the root or exposed location of scope workspace in which
// loc lies, by its path, by another mount or by the inodes above it.
func (pl *Plan) WritableRoot(loc pathcheck.Location) (string, bool) {
	if !pl.scoped || pl.Hides(loc.Path) {
		return "", false
	}
	others := pl.mounts.Others(loc.Path)
	in := func(path string, id pathcheck.ID) bool {
		return pathcheck.Within(path, loc.Path) || loc.Exists && loc.Info.ID == id ||
			slices.ContainsFunc(loc.Above, func(a pathcheck.Place) bool { return a.ID == id }) ||
			slices.ContainsFunc(others, func(o string) bool { return pathcheck.Within(path, o) && !pl.Hides(o) })
	}
	for _, r := range pl.Roots {
		if r.Access&WriteFile != 0 && in(r.Path, r.Info.ID) {
			return r.Path, true
		}
	}
	for _, x := range pl.Exposed {
		if in(x.Path, x.Info.ID) {
			return x.Path, true
		}
	}
	return "", false
}

// ReadOnly returns the real locations of those directories in which scope
// workspace lets nobody make a file. Without that scope there are none. The
// error is that of a lookup; what does not exist is left out.
func (pl *Plan) ReadOnly(t pathcheck.Tree, dirs ...string) ([]string, error) {
	if !pl.scoped {
		return nil, nil
	}
	var out []string
	for _, dir := range dirs {
		loc, err := pathcheck.Resolve(t, dir)
		if err != nil {
			return nil, err
		}
		if _, writable := pl.WritableRoot(loc); loc.Exists && !writable {
			out = append(out, loc.Path)
		}
	}
	return out, nil
}
