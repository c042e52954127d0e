package plan

import (
	"errors"
	"strconv"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// The rule about symbolic links that an earlier launch may have made:
//
// A symbolic link is not followed when it lies in a place that some launch could have
// made writable: every place that the toolchain directories of any mode can have, a
// temp directory (/tmp, /var/tmp, /dev/shm, $TMPDIR), or the workspace, a writable root
// or an exposed path of this policy, at whatever path a mount shows that place. What
// counts is where the link lies, not who owns it. A link elsewhere is followed.
//
// It holds for the roots of scope workspace, whoever names them, for the current
// directory where it is the workspace, as far as $PWD tells how the launcher came
// there, and for all that the shim itself makes or writes: the report, the log, what
// is precreated, and toolchain directories. Where a link is meant, the real path is
// named in its place.
//
// docs/policy.md has the same rule under "scope".

// tempDirs are the temp directories besides $TMPDIR.
var tempDirs = []string{"/tmp", "/var/tmp", "/dev/shm"}

// places are the directories that some launch could have made writable, with
// their paths.
type places struct {
	dirs   map[pathcheck.ID]string
	mounts *pathcheck.MountIndex
}

func (p *places) add(loc pathcheck.Location) {
	if loc.Exists && loc.Info.Kind == pathcheck.Directory {
		p.dirs[loc.Info.ID] = loc.Path
	}
}

// findPlaces finds the places of the rule. roots are the real locations that this
// launch may make writable itself. A toolchain directory that never is one, such as
// the home directory, is no place.
func (f *rootFinder) findPlaces(roots []pathcheck.Location, never protectedPaths) *places {
	p := &places{dirs: map[pathcheck.ID]string{}, mounts: f.mounts}
	for _, loc := range roots {
		p.add(loc)
	}
	for _, e := range f.policy.Exposed {
		if loc, err := f.resolve(e.Path); err == nil {
			p.add(loc)
		}
	}
	for _, path := range tempDirs {
		if loc, err := f.resolve(path); err == nil {
			p.add(loc)
		}
	}
	paths := append(rules.ToolchainPlaces(f.launch.Env), rules.ToolchainPlaces(f.launch.Outer)...)
	seen := map[string]bool{}
	for _, path := range paths {
		if seen[path] {
			continue
		}
		seen[path] = true
		if loc, err := f.resolve(path); err == nil && never.reason(loc) == "" {
			p.add(loc)
		}
	}
	return p
}

// A plantedLink is a symbolic link that is not followed.
type plantedLink struct {
	link, place string
	// real is where the whole path leads.
	real string
}

func (l plantedLink) String() string {
	return "goes through the symlink " + strconv.Quote(l.link) + " in " + strconv.Quote(l.place) +
		", which a program could have made; if it is meant, name " + strconv.Quote(l.real)
}

// planted returns the first link of a lookup that is not followed.
func (p *places) planted(loc pathcheck.Location) (plantedLink, bool) {
	for i, link := range loc.Links {
		if place, ok := p.holds(link, loc.LinkDirs[i]); ok {
			return plantedLink{link, place, loc.Path}, true
		}
	}
	return plantedLink{}, false
}

// holds returns the place in which a link lies. dirs are the directories through which
// the lookup came to it; it may also lie in a place by another mount.
func (p *places) holds(link string, dirs []pathcheck.ID) (place string, ok bool) {
	for _, id := range dirs {
		if place, ok := p.dirs[id]; ok {
			return place, true
		}
	}
	for _, other := range p.mounts.Others(pathcheck.Parent(link)) {
		for _, place := range p.dirs {
			if pathcheck.Within(place, other) {
				return place, true
			}
		}
	}
	return "", false
}

// CheckLinks says, as an error, that what the shim itself would write at a path goes
// through a link that is not followed. loc is where the path leads; p need not confine
// anything. Roots that cannot be looked up are no places: the plan says what is wrong
// with them.
func CheckLinks(p *rules.Policy, l Launch, t pathcheck.Tree, loc pathcheck.Location) error {
	if len(loc.Links) == 0 {
		return nil
	}
	f := &rootFinder{policy: p, launch: l, tree: t, mounts: l.Mounts.Index()}
	if link, ok := f.anyPlaces().planted(loc); ok {
		return errors.New(link.String())
	}
	return nil
}

// anyPlaces is findPlaces where the roots are not known yet.
func (f *rootFinder) anyPlaces() *places {
	never := f.protected()
	var roots []pathcheck.Location
	if f.policy.Scope == rules.ScopeWorkspace {
		all, _ := f.collect()
		for _, c := range all {
			if loc, err := f.resolve(c.path); err == nil && never.reason(loc) == "" {
				roots = append(roots, loc)
			}
		}
	}
	return f.findPlaces(roots, never)
}
