package plan

import (
	"strconv"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// refuse sets bad in the candidates that may not be writable, whoever names them.
func (f *rootFinder) refuse() {
	protected := f.protected()
	var good []pathcheck.Location
	for _, c := range f.list {
		if c.bad = protected.reason(c.loc); c.bad == "" {
			good = append(good, c.loc)
		}
	}
	for _, c := range f.list {
		if c.bad != "" || len(c.loc.Links) == 0 {
			continue
		}
		if f.places == nil {
			f.places = f.findPlaces(good, protected)
		}
		if l, ok := f.places.planted(c.loc); ok {
			c.bad = l.String()
		}
	}
}

// protectedPaths is what no root may be or stand above, with what it is to the
// launch.
type protectedPaths struct {
	ids   map[pathcheck.ID]string
	paths []protectedPath
}

type protectedPath struct{ path, what string }

// protected returns "/", the home directories and the places of the shim.
func (f *rootFinder) protected() protectedPaths {
	g := protectedPaths{ids: map[pathcheck.ID]string{}}
	add := func(path, what string) {
		loc := f.nearestLocation(path)
		g.paths = append(g.paths, protectedPath{loc.Path, what})
		if loc.Path != "/" {
			aliases, _ := f.mounts.Aliases(loc.Path)
			for _, a := range aliases {
				g.paths = append(g.paths, protectedPath{a.Path, what})
			}
		}
		if loc.Exists && loc.Info.Kind == pathcheck.Directory {
			g.ids[loc.Info.ID] = what
		}
		for _, a := range loc.Above {
			if _, ok := g.ids[a.ID]; !ok {
				g.ids[a.ID] = "above " + what
			}
		}
	}
	add("/", "/")
	for _, home := range f.launch.Homes {
		add(home, "the home directory")
	}
	for _, shim := range f.launch.Shims {
		add(shim, "the shim")
	}
	return g
}

// nearestLocation returns where a path leads. What cannot be looked up, such as a
// dead mount, is taken to be where its text says, below what can be.
func (f *rootFinder) nearestLocation(path string) pathcheck.Location {
	for dir := path; ; dir = pathcheck.Parent(dir) {
		loc, err := f.resolve(dir)
		switch {
		case err == nil && dir == path:
			return loc
		case err == nil:
			if loc.Exists {
				loc.Above = append(loc.Above, pathcheck.Place{Path: loc.Path, ID: loc.Info.ID})
			}
			return pathcheck.Location{Path: pathcheck.Join(loc.Path, pathcheck.Rel(dir, path)), Above: loc.Above}
		case dir == "/":
			return pathcheck.Location{Path: path}
		}
	}
}

// reason says why a place may not be writable, or "".
func (g protectedPaths) reason(loc pathcheck.Location) string {
	if loc.Path == "/" {
		return "is /"
	}
	for _, p := range g.paths {
		switch {
		case loc.Path == p.path:
			return "is " + p.what
		case pathcheck.Beneath(loc.Path, p.path):
			return "is above " + p.what + " " + strconv.Quote(p.path)
		}
	}
	if what, ok := g.ids[loc.Info.ID]; ok && loc.Exists {
		return "is " + what + " under another path"
	}
	return ""
}
