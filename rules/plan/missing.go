package plan

import (
	"slices"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// A MissingDir is a toolchain directory that is not there and should be made:
// Names beneath Above, one in the other.
type MissingDir struct {
	// Path is the real location.
	Path string
	// Above is the nearest directory that exists.
	Above pathcheck.Place
	Names []string
	Mode  uint32
}

// Missing returns the toolchain directories of p that should be made before
// the launch is planned. None of them is where [Make] would
// refuse it as a root, or beneath something hidden.
func Missing(p *rules.Policy, l Launch, t pathcheck.Tree) []MissingDir {
	if p.Scope != rules.ScopeWorkspace {
		return nil
	}
	f := &rootFinder{policy: p, launch: l, tree: t}
	all, err := f.collect()
	if err != nil || !slices.ContainsFunc(all, f.isMissing) || f.candidates() != nil {
		return nil // Make says what is wrong
	}
	f.mounts = l.Mounts.Index() // only now: nearly always nothing is missing
	f.refuse()
	var hidden []pathcheck.Location
	for _, e := range p.Hidden {
		loc, err := pathcheck.Resolve(t, e.Path)
		if err != nil {
			return nil // as before
		}
		hidden = append(hidden, loc)
	}
	var out []MissingDir
	for _, c := range f.list {
		under := func(h pathcheck.Location) bool { return pathcheck.Within(h.Path, c.loc.Path) }
		if c.make == 0 || c.bad != "" || c.loc.Exists || c.loc.Denied || slices.ContainsFunc(hidden, under) || f.dangles(c) {
			continue
		}
		above := c.loc.Above[len(c.loc.Above)-1]
		out = append(out, MissingDir{
			Path: c.loc.Path, Above: above, Mode: c.make,
			Names: strings.Split(pathcheck.Rel(above.Path, c.loc.Path), "/"),
		})
	}
	return out
}

// isMissing reports whether a candidate should be made.
func (f *rootFinder) isMissing(c *candidate) bool {
	if c.make == 0 {
		return false
	}
	loc, err := f.resolve(c.path)
	return err == nil && !loc.Exists
}

// dangles reports whether a candidate that does not exist is reached through a
// symlink to nothing: mkdir(2) does not follow one.
func (f *rootFinder) dangles(c *candidate) bool {
	dir := c.path
	for dir != "/" {
		name := dir
		dir = pathcheck.Parent(dir)
		loc, err := f.resolve(dir)
		if err != nil {
			return true
		}
		if loc.Exists {
			next, err := f.resolve(name)
			return err != nil || len(next.Links) > len(loc.Links)
		}
	}
	return true
}
