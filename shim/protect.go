package shim

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// A stake is something that the program must not change: the next launch
// would not be confined, or its report would be false.
type stake struct {
	what string
	loc  pathcheck.Location
	// limit is set for what is said and never refused.
	limit bool
	// way is set where only the symlinks on the way there are at stake.
	way bool
}

// A guard asks what of the next launch this one would put at stake.
type guard struct {
	*launch
	pl   *plan.Plan
	tree pathcheck.Tree
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

func (g *guard) resolve(loc *pathcheck.Location, path string) {
	var err error
	*loc, err = pathcheck.Resolve(g.tree, path)
	g.note(path, err)
}

// stakes lists what holds up the next launch, where it exists: the shim, the
// directory it stands in, the real program, the policy file, the profile, the
// report, and the symlinks that decide which places are hidden and exposed.
func (g *guard) stakes() []*stake {
	var out []*stake
	add := func(what, path string, limit bool) {
		if path == "" {
			return
		}
		s := &stake{what: what, limit: limit}
		if g.resolve(&s.loc, path); s.loc.Exists {
			out = append(out, s)
		}
	}
	here, me := cwd(), ""
	if g.me.invoked != "" {
		if me = absolute(here, g.me.invoked); me == "" {
			me = absolute(here, g.me.path)
		}
	}
	if me != "" {
		add("the shim", me, false)
		add("the directory of the shim", pathcheck.Parent(me), false)
	}
	add("the real program", absolute(here, g.target.path), false)
	add("the policy file", g.source.File, false)
	add("the profile", g.policy.ProfileFile, false)
	if g.out != nil {
		add("the report", g.out.to.Path, true)
	}
	for _, w := range g.pl.EntryLinks {
		out = append(out, &stake{what: "a symbolic link on the way to " + w.Key, loc: pathcheck.Location{Links: w.Links}, way: true})
	}
	return out
}

// gaps lists the stakes that the program could change.
func (g *guard) gaps(stakes []*stake) []rules.Gap {
	var gaps []rules.Gap
	for _, s := range stakes {
		gap := rules.Gap{What: "self-protection", Path: s.loc.Path, Why: "the program can write " + s.what, Limit: true}
		if s.way || g.writable(&s.loc) == "" {
			path, root := g.replaced(s)
			if root == "" {
				continue
			}
			gap.Path, gap.Why = path, "the program can replace "+s.what
		}
		gaps = append(gaps, gap)
	}
	return gaps
}

// writable returns the root in which the program could write a place itself, or
// "".
func (g *guard) writable(loc *pathcheck.Location) string {
	root := g.reached(loc)
	if root == "" || loc.Info.Kind == pathcheck.Directory && g.pl.Freezes(loc.Path) || !g.couldWrite(loc) {
		return ""
	}
	return root
}

// reached returns the root in which the confinement lets the program write at a
// place, or "".
func (g *guard) reached(loc *pathcheck.Location) string {
	if g.policy.Scope == rules.ScopeWorkspace {
		root, _ := g.pl.WritableRoot(*loc)
		return root
	}
	if g.pl.Hides(loc.Path) {
		return ""
	}
	return "/"
}

// replaced returns what of a stake and the symlinks on the way to it the program
// could replace, and in which root; "" if nothing.
func (g *guard) replaced(s *stake) (path, root string) {
	for _, path := range s.loc.Links {
		if root := g.replaceable(path); root != "" {
			return path, root
		}
	}
	if s.way || g.reached(&s.loc) == "" {
		return "", ""
	}
	return s.loc.Path, g.replaceable(s.loc.Path)
}

// protect refuses a launch of scope workspace whose writable roots hold one of
// its stakes, or a symlink on the way to one.
func (g *guard) protect(stakes []*stake) error {
	if g.policy.Scope != rules.ScopeWorkspace {
		return nil
	}
	for _, s := range stakes {
		if s.limit {
			continue
		}
		if path, root := g.replaced(s); root != "" {
			return &rules.Error{Key: "scope", Path: path, Msg: fmt.Sprintf("%s: the program could replace it, in the writable %q", s.what, root)}
		}
	}
	return nil
}

// replaceable returns the root in which the program may write, and this user could
// write or rename away, a file or a directory above it; "" if there is none.
func (g *guard) replaceable(path string) (root string) {
	for ; path != "/"; path = pathcheck.Parent(path) {
		var at unix.Stat_t
		if err := unix.Lstat(path, &at); err != nil {
			g.note(path, err)
			return ""
		}
		var loc, dir pathcheck.Location
		if at.Mode&unix.S_IFMT == unix.S_IFREG {
			g.resolve(&loc, path)
			if root := g.writable(&loc); root != "" {
				return root
			}
		}
		g.resolve(&dir, pathcheck.Parent(path))
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
	if !oneOf(err, unix.EACCES, unix.EPERM, unix.EROFS) {
		g.note(loc.Path, err)
	}
	return err == nil
}

func cwd() string {
	dir, err := unix.Getwd()
	if err != nil {
		return ""
	}
	return dir
}
