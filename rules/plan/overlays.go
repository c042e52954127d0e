package plan

import (
	"slices"
	"strconv"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

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

// lostLayer says that an overlay beside h has a layer that is not to be found:
// it was given by a relative path or in another mount namespace, or is gone.
func (pl *Plan) lostLayer(m pathcheck.Mount, h Hidden) {
	gap := rules.Gap{
		What: "overlay", Path: m.Point, Limit: true,
		Why: "a layer of this overlay cannot be found; if it holds something hidden, the overlay shows it",
	}
	if !pathcheck.Within(m.Point, h.Path) && !pl.closed(m.Point) && !slices.Contains(pl.Limits, gap) {
		pl.Limits = append(pl.Limits, gap)
	}
}

// layer returns the real location of a layer of an overlay.
func (pl *Plan) layer(t pathcheck.Tree, path string) (string, bool) {
	loc, err := pl.resolveOnce(t, path)
	return loc.Path, err == nil && loc.Exists
}
