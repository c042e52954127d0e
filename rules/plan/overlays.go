package plan

import (
	"fmt"
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
func (pl *Plan) overlaid(t pathcheck.Tree, h Hidden) ([]pathcheck.Alias, error) {
	if len(pl.overlays) == 0 {
		return nil, nil
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
	return out, pl.limitLayers(t, h)
}

// shownBy returns where in an overlay one of its layers shows s, or a part of it.
func (pl *Plan) shownBy(t pathcheck.Tree, overlay, layer string, s devicePath) (devicePath, bool) {
	// One that may not be searched is taken for what its path says.
	loc, err := pathcheck.Resolve(t, layer)
	if err != nil || !loc.Exists && !loc.Denied {
		return devicePath{}, false
	}
	dev, inside, ok := pl.mounts.Inside(loc.Path)
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
func (pl *Plan) limitLayers(t pathcheck.Tree, h Hidden) error {
	on, inside, _ := pl.mounts.Inside(h.Path)
	for _, o := range pl.overlays {
		for _, layer := range o.Layers {
			loc, err := pathcheck.Resolve(t, layer)
			if err != nil || !loc.Exists {
				if err := pl.lostLayer(t, o, loc, h); err != nil {
					return err
				}
				continue
			}
			if o.Dev != on {
				continue
			}
			if _, ok := pl.nearest(pathcheck.Join(loc.Path, pathcheck.Rel("/", inside))); !ok {
				pl.Gaps = append(pl.Gaps, rules.Gap{
					What: "overlay", Path: loc.Path, Limit: true,
					Why: "is a layer of the overlay at " + strconv.Quote(o.Point) + " and may hold what " + strconv.Quote(h.Path) + " shows",
				})
			}
		}
	}
	return nil
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
// be found: it was given by a relative path or in another mount namespace, or is gone,
// which is a limit; or an earlier launch could have made that it may not be searched.
// An overlay that the program cannot reach shows nothing.
func (pl *Plan) lostLayer(t pathcheck.Tree, m pathcheck.Mount, layer pathcheck.Location, h Hidden) error {
	if pathcheck.Within(m.Point, h.Path) || pl.closed(m.Point) {
		return nil
	}
	merged, err := pathcheck.Resolve(t, m.Point)
	if err != nil {
		return fmt.Errorf("%s, an overlay: %w", strconv.Quote(m.Point), err)
	}
	if !merged.Exists {
		if !merged.Denied {
			return nil
		}
		if ours, err := pl.causable(t, merged); err != nil || !ours {
			return err
		}
	}
	ours := false
	if layer.Denied {
		if ours, err = pl.causable(t, layer); err != nil {
			return err
		}
	}
	gap := rules.Gap{
		What: "overlay", Path: m.Point, Limit: !ours,
		Why: "a layer of this overlay cannot be found; if it holds something hidden, the overlay shows it",
	}
	if !slices.Contains(pl.Gaps, gap) {
		pl.Gaps = append(pl.Gaps, gap)
	}
	return nil
}
