package planner

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// An asset is a file or link that the program must not change: the next launch
// would not be confined, or its report would be false.
type asset struct {
	what string
	loc  pathcheck.Location
	// limit is set for what is said and never refused.
	limit bool
	// linksOnly is set where only the symlinks in loc matter.
	linksOnly bool
}

// protect finds what of the next launch the program could change. A launch of scope
// workspace is refused for it; in other scopes it is a limit.
func (in *Input) protect(pl *plan.Plan, mounts pathcheck.Mounts, tree pathcheck.Tree) ([]rules.Gap, error) {
	g := &guard{Input: in, pl: pl, tree: tree, mounts: mounts, euid: Power()}
	all := g.assets()
	var gaps []rules.Gap
	for i := range all {
		s := &all[i]
		gaps = append(gaps, g.attributes(s)...)
		if in.Policy.Scope == rules.ScopeWorkspace && !s.limit {
			if path, root := g.replaced(s); root != "" {
				return nil, &rules.Error{Key: "scope", Path: path, Msg: fmt.Sprintf("%s: the program could replace it, in the writable %q", s.what, root)}
			}
		}
		if gap, ok := g.gap(s); ok {
			gaps = append(gaps, gap)
		}
	}
	return gaps, g.err
}

// A guard finds files that the program could change to weaken the next launch.
type guard struct {
	*Input
	pl     *plan.Plan
	tree   pathcheck.Tree
	mounts pathcheck.Mounts
	euid   int // 0 as well where capabilities are held
	// err is the first question that got no answer. What the others say is then
	// not enough.
	err error
}

func (g *guard) note(path string, err error) {
	if err == nil || g.err != nil {
		return
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = pathcheck.ErrChanged // the plan has seen it
	}
	g.err = fmt.Errorf("%q: %w", path, err)
}

func (g *guard) resolve(path string) pathcheck.Location {
	loc, err := pathcheck.Resolve(g.tree, path)
	g.note(path, err)
	return loc
}

// assets lists what holds up the next launch, where it exists: the shim, the
// directory it stands in, the real program, the policy file, the profile, the
// report, and the symlinks that decide which places are hidden and exposed.
func (g *guard) assets() []asset {
	var out []asset
	add := func(what, path string, limit bool) {
		if path == "" {
			return
		}
		if loc := g.resolve(path); loc.Exists {
			out = append(out, asset{what: what, loc: loc, limit: limit})
		}
	}
	me, rest := g.named()
	if me != "" {
		add("the shim", me, false)
		// A name that is a mount point is not replaced in it, nor is it taken away from root.
		if loc := g.resolve(me); g.euid != 0 || !g.sealed(loc.Path) {
			add("the directory of the shim", pathcheck.Parent(me), false)
		}
	}
	for i, what := range []string{"the real program", "the policy file", "the profile"} {
		add(what, rest[i], false)
	}
	add("the report", g.Report, true)
	for _, w := range g.pl.EntryLinks {
		out = append(out, asset{what: "a symbolic link on the way to " + w.Key, loc: pathcheck.Location{Links: w.Links}, linksOnly: true})
	}
	return out
}

// gap says of an asset that the program can change it.
func (g *guard) gap(s *asset) (rules.Gap, bool) {
	gap := rules.Gap{What: "self-protection", Path: s.loc.Path, Why: "the program can write " + s.what, Limit: true}
	if !s.linksOnly && g.writable(&s.loc) != "" {
		return gap, true
	}
	path, root := g.replaced(s)
	gap.Path, gap.Why = path, "the program can replace "+s.what
	return gap, root != ""
}

// writable returns the root in which the program could write a place itself, or
// "".
func (g *guard) writable(loc *pathcheck.Location) string {
	root := g.reached(loc)
	if root == "" || g.sealed(loc.Path) || loc.Info.Kind == pathcheck.Directory && g.pl.Freezes(loc.Path) || !g.couldWrite(loc) {
		return ""
	}
	return root
}

// reached returns the root in which the confinement lets the program write at a
// place, or "".
func (g *guard) reached(loc *pathcheck.Location) string {
	if g.Policy.Scope == rules.ScopeWorkspace {
		root, _ := g.pl.WritableRoot(*loc)
		return root
	}
	if g.pl.Hides(loc.Path) {
		return ""
	}
	return "/"
}

// replaced returns what of an asset and the symlinks on the way to it the program
// could replace, and in which root; "" if nothing.
func (g *guard) replaced(s *asset) (path, root string) {
	for _, path := range s.loc.Links {
		if root := g.replaceable(path); root != "" {
			return path, root
		}
	}
	if s.linksOnly || g.reached(&s.loc) == "" {
		return "", ""
	}
	return s.loc.Path, g.replaceable(s.loc.Path)
}

// replaceable returns the root in which the program may write, and this user could
// write or rename away, a file or a directory above it; "" if there is none.
func (g *guard) replaceable(path string) (root string) {
	for ; path != "/"; path = pathcheck.Parent(path) {
		if g.sealed(path) {
			continue // a mount point is neither written nor renamed: EROFS, EBUSY
		}
		var at unix.Stat_t
		if err := unix.Lstat(path, &at); err != nil {
			g.note(path, err)
			return ""
		}
		if at.Mode&unix.S_IFMT == unix.S_IFREG {
			loc := g.resolve(path)
			if root := g.writable(&loc); root != "" {
				return root
			}
		}
		dir := g.resolve(pathcheck.Parent(path))
		// In a sticky directory only the owners and root rename (inode(7)).
		me := uint32(unix.Geteuid())
		if dir.Info.Mode&unix.S_ISVTX != 0 && me != 0 && me != at.Uid && me != dir.Info.UID {
			continue
		}
		if root := g.writable(&dir); root != "" {
			return root
		}
	}
	return ""
}

// couldWrite reports whether this user may write the inode, or may give itself
// the permission as its owner.
func (g *guard) couldWrite(loc *pathcheck.Location) bool {
	if int(loc.Info.UID) == unix.Geteuid() {
		return true
	}
	err := unix.Faccessat(unix.AT_FDCWD, loc.Path, unix.W_OK, unix.AT_EACCESS)
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EROFS) {
		g.note(loc.Path, err)
	}
	return err == nil
}
