package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

func (pl *Plan) findHidden(p *rules.Policy, t pathcheck.Tree) error {
	for _, e := range p.Hidden {
		loc, err := pathcheck.Resolve(t, e.Path)
		if err != nil {
			return lookupError(e, err)
		}
		switch {
		case loc.Path == "/":
			return &rules.Error{Key: e.Key, Path: e.Path, Msg: "is /, and hiding / hides everything"}
		case pathcheck.Within("/proc", loc.Path):
			return &rules.Error{Key: e.Key, Path: e.Path, Msg: "is in /proc, which can only be granted as a whole: its entries come and go"}
		}
		for _, link := range loc.Links {
			if magicLink(link) {
				return &rules.Error{Key: e.Key, Path: e.Path, Msg: "goes through a link of /proc, whose text need not say where it leads"}
			}
		}
		if loc.Denied {
			pl.Limits = append(pl.Limits, rules.Gap{
				What: "unresolved", Path: loc.Path, Limit: true,
				Why: "a directory on the way may not be searched; if a symbolic link there leads elsewhere, that place stays open",
			})
		}
		pl.addLinks(e.Key, loc)
		pl.addHidden(Hidden{Key: e.Key, Path: loc.Path, Exists: loc.Exists, Info: loc.Info, origin: originOf(e), above: loc.Above})
	}
	return nil
}

// lookupError is what Make returns when an entry cannot be resolved: the
// policy's fault, unless the tree was changing or cannot be looked at.
func lookupError(e rules.Entry, err error) error {
	if errors.Is(err, pathcheck.ErrChanged) || pathcheck.Exhausted(err) {
		return fmt.Errorf("%s: %w", e.Key, err)
	}
	return &rules.Error{Key: e.Key, Path: e.Path, Msg: err.Error()}
}

// magicLink reports whether a symlink is one of those in /proc that lead to an
// inode and not to their text (proc(5)): root, cwd, exe and fd/* of a process
// in another root or mount namespace read like paths of this one.
func magicLink(path string) bool {
	if !pathcheck.Beneath("/proc", path) {
		return false
	}
	switch pathcheck.Rel("/proc", path) {
	case "self", "thread-self", "mounts", "net":
		return false
	}
	return true
}

func (pl *Plan) addHidden(h Hidden) {
	if pl.hidden[h.Path] {
		for i := range pl.Hidden {
			if x := &pl.Hidden[i]; x.Path == h.Path && x.origin < h.origin {
				x.origin, x.Key = h.origin, h.Key
			}
		}
		return
	}
	pl.hidden[h.Path] = true
	pl.Hidden = append(pl.Hidden, h)
	pl.launch.Past.note(h)
	if h.Exists && h.Info.Kind == pathcheck.Regular && h.Info.Links > 1 {
		pl.Limits = append(pl.Limits, rules.Gap{
			What: "hard-link", Path: h.Path, Limit: true,
			Why: fmt.Sprintf("the file has %d names; one of them in a readable directory leads to it", h.Info.Links),
		})
	}
}

// checkNeeded refuses a policy under which the program could not start.
func (pl *Plan) checkNeeded(t pathcheck.Tree) error {
	for _, n := range pl.launch.Needed {
		loc, err := pathcheck.Resolve(t, n.Path)
		if err != nil || !loc.Exists {
			continue // execve will say so, better
		}
		if h, ok := pl.covered(loc.Path); ok {
			return &rules.Error{Key: h.Key, Path: h.Path, Msg: fmt.Sprintf("hides %s %s, without which the launch fails", n.Role, strconv.Quote(loc.Path))}
		}
		for _, h := range pl.Hidden {
			if h.Exists && h.Info.ID == loc.Info.ID {
				return &rules.Error{Key: h.Key, Path: h.Path, Msg: fmt.Sprintf("is the same file as %s %s", n.Role, strconv.Quote(loc.Path))}
			}
		}
	}
	return nil
}

// covered returns the nearest hidden location at or above path, unless an
// exposed one lies between.
func (pl *Plan) covered(path string) (Hidden, bool) {
	near, ok := pl.nearest(path)
	if !ok {
		return Hidden{}, false
	}
	for _, x := range pl.Exposed {
		if pathcheck.Within(x.Path, path) && pathcheck.Beneath(near.Path, x.Path) {
			return Hidden{}, false
		}
	}
	return near, true
}

// nearest returns the nearest hidden location at or above path.
func (pl *Plan) nearest(path string) (Hidden, bool) {
	var near Hidden
	for _, h := range pl.Hidden {
		if pathcheck.Within(h.Path, path) && len(h.Path) > len(near.Path) {
			near = h
		}
	}
	return near, near.Path != ""
}

// bar collects what is never granted, and what is granted entry by entry.
func (pl *Plan) bar() {
	for _, h := range slices.Concat(pl.Hidden, pl.apart) {
		if h.Exists {
			pl.barred[h.Info.ID] = h.Path
		}
		for _, a := range h.above {
			pl.barred[a.ID] = a.Path
			if _, covered := pl.covered(a.Path); !covered && !pl.isApart(a.Path) {
				pl.expand[a.Path] = a.ID
				// Devices are told by their names in /dev, and only there.
				pl.above[a.ID] = !pathcheck.Within("/dev", a.Path)
			}
		}
	}
	for _, h := range pl.Hidden {
		delete(pl.above, h.Info.ID)
	}
}
