package plan

import (
	"slices"
	"strconv"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// A devicePath is a device, a path within it, and the path at or beneath a hidden
// location that it shows.
type devicePath struct{ dev, inside, shows string }

// overlaid returns where overlays show h through one of their layers, or through
// a layer that is an overlay itself. An overlay has a device of its own, so the
// mount table alone does not tell. What a layer shows of an h that stands on the
// overlay is a limit.
func (pl *Plan) overlaid(t pathcheck.Tree, h Hidden) []pathcheck.Alias {
	if len(pl.overlays) == 0 {
		return nil
	}
	var found []devicePath
	add := func(s devicePath) {
		if !slices.ContainsFunc(found, func(o devicePath) bool { return o.dev == s.dev && o.inside == s.inside }) {
			found = append(found, s)
		}
	}
	if dev, inside, ok := pl.mounts.Inside(h.Path); ok {
		add(devicePath{dev, inside, h.Path})
	}
	for _, m := range pl.launch.Mounts {
		if pathcheck.Beneath(h.Path, m.Point) && pl.mounts.Reaches(m) {
			add(devicePath{m.Dev, m.Root, m.Point})
		}
	}
	own := len(found)
	for i := 0; i < len(found); i++ {
		for _, o := range pl.overlays {
			for _, layer := range o.Layers {
				if s, ok := pl.shownBy(t, o.Dev, layer, found[i]); ok {
					add(s)
				}
			}
		}
	}
	var out []pathcheck.Alias
	for _, s := range found[own:] {
		out = append(out, pl.mounts.Showing(s.dev, s.inside, s.shows)...)
	}
	pl.limitLayers(t, h)
	return out
}

// shownBy returns where in an overlay one of its layers shows s, or a part of it.
func (pl *Plan) shownBy(t pathcheck.Tree, overlay, layer string, s devicePath) (devicePath, bool) {
	real, ok := locateLayer(t, layer)
	if !ok {
		return devicePath{}, false
	}
	dev, inside, ok := pl.mounts.Inside(real)
	switch {
	case !ok || dev != s.dev:
		return devicePath{}, false
	case pathcheck.Within(inside, s.inside):
		return devicePath{overlay, pathcheck.Join("/", pathcheck.Rel(inside, s.inside)), s.shows}, true
	case pathcheck.Beneath(s.inside, inside):
		return devicePath{overlay, "/", pathcheck.Join(s.shows, pathcheck.Rel(s.inside, inside))}, true
	}
	return devicePath{}, false
}

// limitLayers reports what overlays leave open of h: where h stands on one, the
// layers that its content comes from; where it does not, layers that cannot be
// found.
func (pl *Plan) limitLayers(t pathcheck.Tree, h Hidden) {
	on, inside, _ := pl.mounts.Inside(h.Path)
	for _, o := range pl.overlays {
		for _, layer := range o.Layers {
			real, ok := locateLayer(t, layer)
			if !ok {
				pl.lostLayer(o, h)
				continue
			}
			if o.Dev != on {
				continue
			}
			if _, ok := pl.nearest(pathcheck.Join(real, pathcheck.Rel("/", inside))); !ok {
				pl.Limits = append(pl.Limits, rules.Gap{
					What: "overlay", Path: real, Limit: true,
					Why: "is a layer of the overlay at " + strconv.Quote(o.Point) + " and may hold what " + strconv.Quote(h.Path) + " shows",
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

// lostLayer reports an overlay, not one that h stands on, with a layer that cannot
// be found: it was given by a relative path or in another mount namespace, or is
// gone.
func (pl *Plan) lostLayer(m pathcheck.Mount, h Hidden) {
	gap := rules.Gap{
		What: "overlay", Path: m.Point, Limit: true,
		Why: "a layer of this overlay cannot be found; if it holds something hidden, the overlay shows it",
	}
	if !pathcheck.Within(m.Point, h.Path) && !pl.closed(m.Point) && !slices.Contains(pl.Limits, gap) {
		pl.Limits = append(pl.Limits, gap)
	}
}

// locateLayer returns the real location of a layer of an overlay.
func locateLayer(t pathcheck.Tree, path string) (string, bool) {
	loc, err := pathcheck.Resolve(t, path)
	return loc.Path, err == nil && loc.Exists
}
