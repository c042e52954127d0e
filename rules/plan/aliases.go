package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// addAliases hides the hidden locations where other mounts show them again.
// What an alias shows of an exposed location stays open there too.
func (pl *Plan) addAliases(t pathcheck.Tree) error {
	blind := false
	for _, h := range slices.Clone(pl.Hidden) {
		aliases, known := pl.mounts.Aliases(h.Path)
		blind = blind || !known && len(pl.launch.Mounts) > 0
		same, err := pl.sameInode(t, h)
		if err != nil {
			return err
		}
		for _, a := range slices.Concat(aliases, same, pl.overlaid(t, h)) {
			if pl.aliasClosed(h, a) {
				continue
			}
			if err := pl.hideMount(t, h.Key, h.author, a.Path, "shows "+strconv.Quote(a.Shows)+" again"); err != nil {
				return err
			}
		}
	}
	if blind {
		pl.Limits = append(pl.Limits, rules.Gap{
			What: "mount-alias", Limit: true,
			Why: "the mount table does not show the root directory, so other mounts of hidden paths cannot be found",
		})
	}
	return nil
}

// aliasClosed reports whether an alias of h is closed already, or is to stay open.
func (pl *Plan) aliasClosed(h Hidden, a pathcheck.Alias) bool {
	// A mounted /proc or /dev inside the hidden location is the same as /proc
	// or /dev, and those have rules of their own.
	if a.Shows != h.Path && (kernelFS(a.FSType) || deviceFS(a.FSType)) {
		return true
	}
	if pl.isHidden(a.Path) || pl.opened(h.Path, a.Shows) {
		return true
	}
	return pl.closed(a.Path)
}

// closed reports whether path lies beneath something hidden, and is closed
// with it.
func (pl *Plan) closed(path string) bool {
	near, ok := pl.nearest(path)
	return ok && !pl.opened(near.Path, path)
}

// opened reports whether an exposed location beneath the hidden one stands at
// or above path.
func (pl *Plan) opened(hidden, path string) bool {
	return slices.ContainsFunc(pl.exposedEntries, func(x located) bool {
		return pathcheck.Beneath(hidden, x.loc.Path) && pathcheck.Within(x.loc.Path, path)
	})
}

// CheckMounts reports, as an error, a path at which mounts show a hidden location
// and which the plan does not hide: a mount that came up after [Make]. An
// overlay that did may show anything.
func (pl *Plan) CheckMounts(mounts pathcheck.Mounts) error {
	index := mounts.Index()
	for _, o := range overlayMounts(mounts) {
		if len(pl.Hidden) > 0 && !slices.ContainsFunc(pl.overlays, func(m pathcheck.Mount) bool { return m.Dev == o.Dev && m.Super == o.Super }) {
			return fmt.Errorf("an overlay came up at %s", strconv.Quote(o.Point))
		}
	}
	for _, h := range pl.Hidden {
		aliases, _ := index.Aliases(h.Path)
		for _, a := range aliases {
			if !pl.aliasClosed(h, a) {
				return fmt.Errorf("a mount at %s shows %s", strconv.Quote(a.Path), strconv.Quote(a.Shows))
			}
		}
	}
	return nil
}

// sameInode returns the aliases of h that the mount table does not show: mounts
// of its file system whose root is the inode of h or of a directory above it. An
// NFS client writes no roots into the table.
func (pl *Plan) sameInode(t pathcheck.Tree, h Hidden) ([]pathcheck.Alias, error) {
	mounts := pl.mounts
	own, ok := mounts.Of(h.Path)
	if !ok {
		return nil, nil
	}
	var out []pathcheck.Alias
	for _, m := range pl.launch.Mounts {
		if m.ID == own.ID || m.Dev != own.Dev || !mounts.Reaches(m) {
			continue
		}
		loc, err := pathcheck.Resolve(t, m.Point)
		if err != nil {
			return nil, fmt.Errorf("%s, which may show %s again: %w", strconv.Quote(m.Point), strconv.Quote(h.Path), err)
		}
		if !loc.Exists {
			continue // not to be opened: no grant lands there
		}
		at := func(above string) {
			a := pathcheck.Join(m.Point, pathcheck.Rel(above, h.Path))
			if by, ok := mounts.Of(a); ok && by.ID == m.ID {
				out = append(out, pathcheck.Alias{Path: a, Shows: h.Path, FSType: m.FSType})
			}
		}
		if h.Exists && h.Info.ID == loc.Info.ID {
			at(h.Path)
		}
		for _, a := range h.above {
			if a.ID == loc.Info.ID && pathcheck.Within(own.Point, a.Path) {
				at(a.Path)
			}
		}
	}
	return out, nil
}

// hideMount hides path, a mount point or a path below one, because of what a
// mount shows there; why ends the sentence in an error.
func (pl *Plan) hideMount(t pathcheck.Tree, key string, by author, path, why string) error {
	loc, err := pathcheck.Resolve(t, path)
	if err != nil {
		return fmt.Errorf("%s, which %s: %w", strconv.Quote(path), why, err)
	}
	if loc.Path != path {
		return fmt.Errorf("%s, which %s: %w", strconv.Quote(path), why, pathcheck.ErrChanged)
	}
	if path == "/" {
		return &rules.Error{Key: key, Msg: "the root directory " + why}
	}
	pl.addHidden(Hidden{Key: key, Path: path, Exists: loc.Exists, Info: loc.Info, author: by, above: loc.Above})
	return nil
}
