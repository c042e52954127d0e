package rules

import (
	"fmt"
	"slices"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
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
			if pl.closes(h, a) {
				continue
			}
			if err := pl.hideMount(t, h.Key, h.origin, a.Path, "shows "+quote(a.Shows)+" again"); err != nil {
				return err
			}
		}
	}
	if blind {
		pl.Limits = append(pl.Limits, Gap{
			What: "mount-alias", Limit: true,
			Why: "the mount table does not show the root directory, so other mounts of hidden paths cannot be found",
		})
	}
	return nil
}

// closes reports whether an alias of h needs nothing more to be done about it.
func (pl *Plan) closes(h Hidden, a pathcheck.Alias) bool {
	// A mounted /proc or /dev inside the hidden location is the same as /proc
	// or /dev, and those have rules of their own.
	if a.Shows != h.Path && (kernelFS(a.FSType) || deviceFS(a.FSType)) {
		return true
	}
	if pl.opened(h.Path, a.Shows) || pl.hidden[a.Path] {
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
	return slices.ContainsFunc(pl.open, func(x located) bool {
		return pathcheck.Beneath(hidden, x.loc.Path) && pathcheck.Within(x.loc.Path, path)
	})
}

// Covers reports, as an error, a path at which mounts show a hidden location
// and which the plan does not hide: a mount that came up after [Prepare]. An
// overlay that did may show anything.
func (pl *Plan) Covers(mounts pathcheck.Mounts) error {
	index := mounts.Index()
	for _, o := range overlayMounts(mounts) {
		if len(pl.Hidden) > 0 && !slices.ContainsFunc(pl.overlays, func(m pathcheck.Mount) bool { return m.Dev == o.Dev && m.Super == o.Super }) {
			return fmt.Errorf("an overlay came up at %s", quote(o.Point))
		}
	}
	for _, h := range pl.Hidden {
		aliases, _ := index.Aliases(h.Path)
		for _, a := range aliases {
			if !pl.closes(h, a) {
				return fmt.Errorf("a mount at %s shows %s", quote(a.Path), quote(a.Shows))
			}
		}
	}
	return nil
}

// sameInode finds by identity what the mount table does not tell: mounts of
// h's file system whose root is h or stands above it. An NFS client writes
// no roots into the table.
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
			return nil, fmt.Errorf("%s, which may show %s again: %w", quote(m.Point), quote(h.Path), err)
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

// A spot is a place in a file system, and the path beneath a hidden location at
// which it is seen, itself included.
type spot struct{ dev, inside, shows string }

// overlaid finds where overlays show h: they do under a device of their own, if
// a layer holds h or lies in it, and so do overlays on those overlays. The other
// way round, a layer that holds what h shows is a limit: it is where that content
// comes from.
func (pl *Plan) overlaid(t pathcheck.Tree, h Hidden) []pathcheck.Alias {
	if len(pl.overlays) == 0 {
		return nil
	}
	var spots []spot
	add := func(s spot) {
		if !slices.ContainsFunc(spots, func(o spot) bool { return o.dev == s.dev && o.inside == s.inside }) {
			spots = append(spots, s)
		}
	}
	if dev, inside, ok := pl.mounts.Inside(h.Path); ok {
		add(spot{dev, inside, h.Path})
	}
	for _, m := range pl.launch.Mounts {
		if pathcheck.Beneath(h.Path, m.Point) && pl.mounts.Reaches(m) {
			add(spot{m.Dev, m.Root, m.Point})
		}
	}
	own := len(spots)
	for i := 0; i < len(spots); i++ {
		for _, o := range pl.overlays {
			for _, layer := range o.Layers {
				if s, ok := pl.shownBy(t, o.Dev, layer, spots[i]); ok {
					add(s)
				}
			}
		}
	}
	var out []pathcheck.Alias
	for _, s := range spots[own:] {
		out = append(out, pl.mounts.Showing(s.dev, s.inside, s.shows)...)
	}
	pl.limitLayers(t, h)
	return out
}

// shownBy returns the place in an overlay at which a layer of it shows a spot,
// or a part of it.
func (pl *Plan) shownBy(t pathcheck.Tree, overlay, layer string, s spot) (spot, bool) {
	real, ok := pl.layer(t, layer)
	if !ok {
		return spot{}, false
	}
	dev, inside, ok := pl.mounts.Inside(real)
	switch {
	case !ok || dev != s.dev:
		return spot{}, false
	case pathcheck.Within(inside, s.inside):
		return spot{overlay, pathcheck.Join("/", pathcheck.Rel(inside, s.inside)), s.shows}, true
	case pathcheck.Beneath(s.inside, inside):
		return spot{overlay, "/", pathcheck.Join(s.shows, pathcheck.Rel(s.inside, inside))}, true
	}
	return spot{}, false
}

// limitLayers says what an overlay leaves open of h: where h stands on it, the
// layers that its content comes from, and beside h, layers that are not to be
// found.
func (pl *Plan) limitLayers(t pathcheck.Tree, h Hidden) {
	on, inside, _ := pl.mounts.Inside(h.Path)
	for _, o := range pl.overlays {
		for _, layer := range o.Layers {
			real, ok := pl.layer(t, layer)
			if !ok {
				pl.lostLayer(o, h)
				continue
			}
			if o.Dev != on {
				continue
			}
			if _, ok := pl.nearest(pathcheck.Join(real, pathcheck.Rel("/", inside))); !ok {
				pl.Limits = append(pl.Limits, Gap{
					What: "overlay", Path: real, Limit: true,
					Why: "is a layer of the overlay at " + quote(o.Point) + " and may hold what " + quote(h.Path) + " shows",
				})
			}
		}
	}
}

// overlayMounts returns one mount of each overlay.
func overlayMounts(mounts pathcheck.Mounts) []pathcheck.Mount {
	var out []pathcheck.Mount
	for _, m := range mounts {
		if len(m.Layers) > 0 && !slices.ContainsFunc(out, func(o pathcheck.Mount) bool { return o.Dev == m.Dev }) {
			out = append(out, m)
		}
	}
	return out
}

// lostLayer says that an overlay beside h has a layer that is not to be found:
// it was given by a relative path or in another mount namespace, or is gone.
func (pl *Plan) lostLayer(m pathcheck.Mount, h Hidden) {
	gap := Gap{
		What: "overlay", Path: m.Point, Limit: true,
		Why: "a layer of this overlay cannot be found; if it holds something hidden, the overlay shows it",
	}
	if !pathcheck.Within(m.Point, h.Path) && !pl.closed(m.Point) && !slices.Contains(pl.Limits, gap) {
		pl.Limits = append(pl.Limits, gap)
	}
}

// layer returns the real location of a layer of an overlay. Hosts of many
// containers share layers between mounts.
func (pl *Plan) layer(t pathcheck.Tree, path string) (string, bool) {
	real, ok := pl.layers[path]
	if !ok {
		if loc, err := pathcheck.Resolve(t, path); err == nil && loc.Exists {
			real = loc.Path
		}
		pl.layers[path] = real
	}
	return real, real != ""
}

// kernelFS tells the file systems whose files act on the kernel itself. Outside
// /proc and /sys, where they are granted for reading, root does not reach them.
func kernelFS(fstype string) bool {
	switch fstype {
	case "proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "binfmt_misc",
		"securityfs", "configfs", "efivarfs", "bpf", "pstore":
		return true
	}
	return false
}

// deviceFS tells the file systems of which every mount is the same device nodes.
func deviceFS(fstype string) bool {
	return fstype == "devtmpfs" || fstype == "devpts" || fstype == "mqueue" || fstype == "nsfs"
}

// kernelKey is the key of what no policy entry hides, but addKernelMounts.
const kernelKey = "hidden"

// addKernelMounts splits off the mounts by which root would leave the domain:
// a second procfs has a second core_pattern. A second devtmpfs has the disks,
// for whoever may open them.
//
// Only those at which where holds are looked at.
func (pl *Plan) addKernelMounts(t pathcheck.Tree, where func(point string) bool) error {
	for _, m := range pl.launch.Mounts {
		if !where(m.Point) {
			continue
		}
		root := kernelFS(m.FSType) && pl.launch.EUID == 0
		if !root && m.FSType != "devtmpfs" {
			continue
		}
		if pathcheck.Within("/proc", m.Point) || pathcheck.Within("/sys", m.Point) || m.Point == "/" {
			continue
		}
		if m.FSType == "devtmpfs" && pathcheck.Within("/dev", m.Point) || !pl.mounts.Reaches(m) {
			continue
		}
		if pl.closed(m.Point) || m.FSType == "devtmpfs" && harmlessNode(t, m.Point) {
			continue
		}
		if set, err := pl.setApart(t, m.Point); err != nil {
			return err
		} else if set {
			continue
		}
		if err := pl.hideMount(t, kernelKey, fromPolicy, m.Point, "is a mounted "+m.FSType); err != nil {
			return err
		}
	}
	return nil
}

// setApart deals with a bind mount of /proc or /sys itself, as a chroot has
// one. It is the same inode, so the rule that makes /proc readable makes it
// readable too, and hiding it would take /proc away. What counts is that no
// rule above it makes it writable.
func (pl *Plan) setApart(t pathcheck.Tree, point string) (bool, error) {
	loc, err := pathcheck.Resolve(t, point)
	if err != nil || !loc.Exists {
		return false, err
	}
	for _, of := range []string{"/proc", "/sys"} {
		own, err := pathcheck.Resolve(t, of)
		if err != nil || !own.Exists || own.Info.ID != loc.Info.ID || pl.closed(of) {
			continue
		}
		pl.hidden[loc.Path] = true // not granted as an entry either
		pl.apart = append(pl.apart, Hidden{Key: kernelKey, Path: loc.Path, Alias: true, origin: fromPolicy, above: loc.Above})
		return true, nil
	}
	return false, nil
}

// isApart reports whether path is set apart, or lies beneath what is: it must
// not be granted by what its path looks like.
func (pl *Plan) isApart(path string) bool {
	return slices.ContainsFunc(pl.apart, func(h Hidden) bool { return pathcheck.Within(h.Path, path) })
}

// harmlessNode reports whether one device node is mounted at path, as a
// container engine mounts /dev/null over what it masks, and not a disk's.
func harmlessNode(t pathcheck.Tree, path string) bool {
	loc, err := pathcheck.Resolve(t, path)
	return err == nil && loc.Exists && loc.Path == path &&
		loc.Info.Kind == pathcheck.CharDevice && !rawDevice(path, loc.Info)
}

func (pl *Plan) hideMount(t pathcheck.Tree, key string, from origin, path, why string) error {
	loc, err := pathcheck.Resolve(t, path)
	if err != nil {
		return fmt.Errorf("%s, which %s: %w", quote(path), why, err)
	}
	if loc.Path != path {
		return fmt.Errorf("%s, which %s: %w", quote(path), why, ErrChanged)
	}
	if path == "/" {
		return &Error{Key: key, Msg: "the root directory " + why}
	}
	pl.addHidden(Hidden{Key: key, Path: path, Exists: loc.Exists, Info: loc.Info, Alias: true, origin: from, above: loc.Above})
	return nil
}
