package plan

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// refuse sets bad in the candidates that may not be writable, whoever names them.
func (f *rootFinder) refuse() {
	protected := f.protected()
	for _, c := range f.list {
		c.bad = protected.reason(c.loc)
	}
	// A confined program must not choose what the next launch may write. That one
	// may have another policy: where no policy names the path, what toolchain
	// directories can be writable counts as if it was.
	now := writable{}
	for _, c := range f.list {
		if c.bad == "" {
			now.add(c.loc)
		}
	}
	for _, e := range f.policy.Exposed {
		if loc, err := f.resolve(e.Path); err == nil {
			now.add(loc)
		}
	}
	for _, d := range f.deviceRoots() {
		now[d.Info.ID] = d.Path
	}
	var ever writable
	for _, c := range f.list {
		if c.bad != "" || len(c.loc.Links) == 0 {
			continue
		}
		in := now
		if !c.named {
			if ever == nil {
				ever = f.everWritable(now, protected)
			}
			in = ever
		}
		for i, link := range c.loc.Links {
			if root, ok := f.linkIn(in, link, c.loc.LinkDirs[i]); ok {
				c.bad = fmt.Sprintf("goes through the symlink %s in %s, which the program can write", strconv.Quote(link), strconv.Quote(root))
				break
			}
		}
	}
}

// writable holds directories that a program may write, with their paths.
type writable map[pathcheck.ID]string

func (w writable) add(loc pathcheck.Location) {
	if loc.Exists && loc.Info.Kind == pathcheck.Directory {
		w[loc.Info.ID] = loc.Path
	}
}

// everWritable adds to what is writable now the toolchain directories of every
// mode.
func (f *rootFinder) everWritable(now writable, g protectedPaths) writable {
	ever := maps.Clone(now)
	for _, mode := range []rules.ToolchainMode{rules.ToolchainUsual, rules.ToolchainLeaves} {
		list, _ := rules.ToolchainDirs{Mode: mode}.In(f.launch.Env)
		for _, w := range list {
			if loc, err := f.resolve(w.Path); err == nil && g.reason(loc) == "" {
				ever.add(loc)
			}
		}
	}
	return ever
}

// linkIn returns the writable directory in which a symlink lies. dirs are the
// directories through which the lookup came to the link; it may also lie in a
// writable directory by another mount.
func (f *rootFinder) linkIn(in writable, link string, dirs []pathcheck.ID) (root string, ok bool) {
	for _, id := range dirs {
		if root, ok := in[id]; ok {
			return root, true
		}
	}
	for _, other := range f.mounts.Others(pathcheck.Parent(link)) {
		for _, root := range in {
			if pathcheck.Within(root, other) {
				return root, true
			}
		}
	}
	return "", false
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
