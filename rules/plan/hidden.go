package plan

import (
	"errors"
	"fmt"
	"maps"
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
		pl.addHidden(Hidden{Key: e.Key, Path: loc.Path, Exists: loc.Exists, Info: loc.Info, author: authorOf(e), above: loc.Above})
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

// addHidden adds a hidden location, unless it is there: then the stronger author
// counts.
func (pl *Plan) addHidden(h Hidden) {
	if i, ok := pl.hidden[h.Path]; ok {
		if x := &pl.Hidden[i]; x.author < h.author {
			x.author, x.Key = h.author, h.Key
		}
		return
	}
	pl.hidden[h.Path] = len(pl.Hidden)
	pl.Hidden = append(pl.Hidden, h)
	pl.noteAbove(h.Path)
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

// noteAbove adds the directories above a path to aboveHidden. Where one is there,
// so are those above it.
func (pl *Plan) noteAbove(path string) {
	for path != "/" {
		if path = pathcheck.Parent(path); pl.aboveHidden[path] {
			return
		}
		pl.aboveHidden[path] = true
	}
}

// isHidden reports whether path is a hidden location or one of kernelMounts.
func (pl *Plan) isHidden(path string) bool {
	_, ok := pl.hidden[path]
	return ok || slices.ContainsFunc(pl.kernelMounts, func(h Hidden) bool { return h.Path == path })
}

// covered returns the nearest hidden location at or above path, unless an
// exposed one lies between. path is absolute and clean, or "".
func (pl *Plan) covered(path string) (Hidden, bool) {
	for ; path != "" && path != "/"; path = pathcheck.Parent(path) {
		if pl.exposed[path] {
			return Hidden{}, false
		}
		if i, ok := pl.hidden[path]; ok {
			return pl.Hidden[i], true
		}
	}
	return Hidden{}, false
}

// nearest returns the nearest hidden location at or above path, whatever is
// exposed.
func (pl *Plan) nearest(path string) (Hidden, bool) {
	for ; path != "/"; path = pathcheck.Parent(path) {
		if i, ok := pl.hidden[path]; ok {
			return pl.Hidden[i], true
		}
	}
	return Hidden{}, false
}

// collect finds what is never granted, and what is granted entry by entry. A
// directory cannot be both, as it would be where a mount that the table does not
// show leads to a hidden one.
func (pl *Plan) collect() error {
	hidden := map[pathcheck.ID]Hidden{}
	for _, h := range slices.Concat(pl.Hidden, pl.kernelMounts) {
		if h.Exists {
			hidden[h.Info.ID] = h
			pl.ungranted[h.Info.ID] = h.Path
		}
		for _, a := range h.above {
			pl.ungranted[a.ID] = a.Path
			if _, covered := pl.covered(a.Path); !covered && !pl.inKernelMount(a.Path) {
				pl.expand[a.Path] = a.ID
				// Devices are told by their names in /dev, and only there.
				pl.ancestors[a.ID] = !pathcheck.Within("/dev", a.Path)
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(pl.expand)) {
		h, ok := hidden[pl.expand[path]]
		if !ok {
			continue
		}
		if _, known := pl.mounts.Of(path); known {
			return fmt.Errorf("%s is what %s was: %w", strconv.Quote(path), strconv.Quote(h.Path), pathcheck.ErrChanged)
		}
		return &rules.Error{Key: h.Key, Path: h.Path, Msg: "is the same directory as " + strconv.Quote(path) + ", which stands above something hidden"}
	}
	return nil
}
