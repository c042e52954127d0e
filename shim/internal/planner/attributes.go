package planner

import (
	"slices"
	"strconv"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// attributes says what of an asset the program can change without writing it: no
// access right of Landlock covers mode, owner, access control list and extended
// attributes, and each of them decides whether the next launch finds, starts or reads
// what it rests on.
func (g *guard) attributes(s *asset) (gaps []rules.Gap) {
	if s.linksOnly || s.limit {
		return nil
	}
	gap := func(path, why string) {
		gaps = append(gaps, rules.Gap{What: "self-protection", Path: path, Why: why, Limit: true})
	}
	const can = "the program can change the mode, owner, ACL and extended attributes of "
	directory := s.loc.Info.Kind == pathcheck.Directory
	if other := g.otherName(s); g.owns(s.loc.Info) && (other != "" || !g.sealed(s.loc.Path)) {
		gap(s.loc.Path, can+s.what+other)
	}
	if directory || g.euid == 0 { // root passes a directory without the search permission
		return gaps
	}
	for path := pathcheck.Parent(s.loc.Path); path != "/"; path = pathcheck.Parent(path) {
		if above := g.resolve(path); g.owns(above.Info) && !g.sealed(path) {
			gap(path, "the program can take the search permission, by mode or ACL, from the directory above "+s.what)
			break
		}
	}
	return gaps
}

// owns reports whether this user may change the attributes of an inode.
func (g *guard) owns(info pathcheck.Info) bool {
	return g.euid == 0 || int(info.UID) == g.euid
}

// sealed reports whether a mount of this launch keeps a place from being changed.
func (g *guard) sealed(path string) bool {
	return slices.ContainsFunc(g.ReadOnly, func(dir string) bool { return pathcheck.Within(dir, path) })
}

// otherName says by which way around a read-only mount the inode can be reached, or "".
func (g *guard) otherName(s *asset) string {
	if !g.sealed(s.loc.Path) {
		return ""
	}
	for _, path := range g.mounts.Index().Others(s.loc.Path) {
		return ", by the mount at " + strconv.Quote(path)
	}
	if s.loc.Info.Kind == pathcheck.Regular && s.loc.Info.Links > 1 {
		return ", by another of its " + strconv.FormatUint(s.loc.Info.Links, 10) + " names"
	}
	return ""
}
