package shim

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
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

// stakes lists what holds up the next launch, where it exists: the shim, the
// directory it stands in, the real program, the policy file, the profile, the
// report, and the symlinks that decide which places are hidden and exposed.
func (l *launch) stakes(pl *rules.Plan, t pathcheck.Tree) []stake {
	var out []stake
	add := func(what, path string, limit bool) {
		if loc, err := pathcheck.Resolve(t, path); err == nil && loc.Exists {
			out = append(out, stake{what: what, loc: loc, limit: limit})
		}
	}
	if me := absolute(cwd(), l.me.invoked); l.me.invoked != "" && me != "" {
		add("the shim", me, false)
		add("the directory of the shim", pathcheck.Parent(me), false)
	}
	add("the real program", l.target.path, false)
	if l.source.File != "" {
		add("the policy file", l.source.File, false)
	}
	if l.policy.ProfileFile != "" {
		add("the profile", l.policy.ProfileFile, false)
	}
	if l.out != nil && l.out.to.Path != "" {
		add("the report", l.out.to.Path, true)
	}
	for _, w := range pl.Ways {
		out = append(out, stake{what: "a symbolic link on the way to " + w.Key, loc: pathcheck.Location{Links: w.Links}, way: true})
	}
	return out
}

// selfProtection lists the stakes that the program could change.
func (l *launch) selfProtection(pl *rules.Plan, stakes []stake, t pathcheck.Tree) []rules.Gap {
	var gaps []rules.Gap
	for _, s := range stakes {
		gap := rules.Gap{What: "self-protection", Path: s.loc.Path, Why: "the program can write " + s.what, Limit: true}
		if !l.writable(pl, s) {
			path, _, ok := l.replaced(pl, s, t)
			if !ok {
				continue
			}
			gap.Path, gap.Why = path, "the program can replace "+s.what
		}
		gaps = append(gaps, gap)
	}
	return gaps
}

// writable reports whether the program could write a stake itself.
func (l *launch) writable(pl *rules.Plan, s stake) bool {
	if _, in := l.reached(pl, s.loc); s.way || !in || pl.Hides(s.loc.Path) {
		return false
	}
	dir := s.loc.Info.Kind == pathcheck.Directory
	return (!dir || !pl.Freezes(s.loc.Path)) && couldWrite(s.loc)
}

// reached reports whether the confinement lets the program write at a place,
// and in which root.
func (l *launch) reached(pl *rules.Plan, loc pathcheck.Location) (root string, ok bool) {
	if l.policy.Scope == rules.ScopeWorkspace {
		return pl.WritableRoot(loc)
	}
	return "/", !pl.Hides(loc.Path)
}

// replaced returns what of a stake and the symlinks on the way to it the program
// could replace, and in which root.
func (l *launch) replaced(pl *rules.Plan, s stake, t pathcheck.Tree) (path, root string, ok bool) {
	paths := slices.Clone(s.loc.Links)
	if _, in := l.reached(pl, s.loc); in && !s.way {
		paths = append(paths, s.loc.Path)
	}
	for _, path := range paths {
		if root, ok := l.replaceable(pl, path, t); ok {
			return path, root, true
		}
	}
	return "", "", false
}

// protectItself refuses a launch of scope workspace whose writable roots hold
// one of its stakes, or a symlink on the way to one.
func (l *launch) protectItself(pl *rules.Plan, stakes []stake, t pathcheck.Tree) error {
	if l.policy.Scope != rules.ScopeWorkspace {
		return nil
	}
	for _, s := range stakes {
		if s.limit {
			continue
		}
		if path, root, ok := l.replaced(pl, s, t); ok {
			return &rules.Error{Key: "scope", Path: path, Msg: fmt.Sprintf("%s: the program could replace it, in the writable %q", s.what, root)}
		}
	}
	return nil
}

// replaceable reports whether a file, or a directory above it, lies where the
// program may write and could be written or renamed away by this user.
func (l *launch) replaceable(pl *rules.Plan, path string, t pathcheck.Tree) (root string, ok bool) {
	for ; path != "/"; path = pathcheck.Parent(path) {
		var at, dir unix.Stat_t
		parent := pathcheck.Parent(path)
		if unix.Lstat(path, &at) != nil || unix.Lstat(parent, &dir) != nil {
			continue
		}
		if at.Mode&unix.S_IFMT == unix.S_IFREG {
			if loc, err := pathcheck.Resolve(t, path); err == nil && couldWrite(loc) {
				if root, ok := l.reached(pl, loc); ok {
					return root, true
				}
			}
		}
		loc, err := pathcheck.Resolve(t, parent)
		if err != nil || !couldWrite(loc) || pl.Freezes(loc.Path) {
			continue
		}
		// In a sticky directory only the owners and root rename (inode(7)).
		me := uint32(unix.Geteuid())
		if dir.Mode&unix.S_ISVTX != 0 && me != 0 && me != at.Uid && me != dir.Uid {
			continue
		}
		if root, ok := l.reached(pl, loc); ok {
			return root, true
		}
	}
	return "", false
}

// couldWrite reports whether this user may write the inode, or may give itself
// the permission as its owner.
func couldWrite(loc pathcheck.Location) bool {
	if int(loc.Info.UID) == unix.Geteuid() {
		return true
	}
	return unix.Faccessat(unix.AT_FDCWD, loc.Path, unix.W_OK, unix.AT_EACCESS) == nil
}

func cwd() string {
	dir, err := unix.Getwd()
	if err != nil {
		return ""
	}
	return dir
}
