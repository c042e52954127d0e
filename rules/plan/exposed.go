package plan

import (
	"fmt"
	"slices"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// located is a policy entry and where it leads.
type located struct {
	rules.Entry
	loc pathcheck.Location
	// base is where the Beneath of a template leads.
	base pathcheck.Location
}

func (pl *Plan) locateExposed(p *rules.Policy, t pathcheck.Tree) error {
	for _, e := range p.Exposed {
		at := located{Entry: e}
		var err error
		if e.Derived != nil {
			if at, err = locateDerived(t, e); err != nil {
				return err
			}
		} else if at.loc, err = pathcheck.Resolve(t, e.Path); err != nil {
			return lookupError(e, err)
		}
		if !at.loc.Exists {
			return &rules.Error{Key: e.Key, Path: e.Path, Msg: "does not exist"}
		}
		pl.exposedEntries = append(pl.exposedEntries, at)
	}
	return nil
}

// findExposed checks that each exposed location can be open while everything
// hidden is closed.
func (pl *Plan) findExposed(t pathcheck.Tree) error {
	for _, e := range pl.exposedEntries {
		loc := e.loc
		bad := func(format string, args ...any) error {
			return &rules.Error{Key: e.Key, Path: e.Path, Msg: fmt.Sprintf(format, args...)}
		}
		var under, isHidden, reveals string
		for _, h := range slices.Concat(pl.Hidden, pl.kernelMounts) {
			switch {
			case h.Path == loc.Path || h.Exists && h.Info.ID == loc.Info.ID:
				isHidden = h.Key
			case pathcheck.Beneath(loc.Path, h.Path):
				reveals = h.Key
			case pathcheck.Beneath(h.Path, loc.Path) && len(h.Path) > len(under):
				under = h.Path
			}
		}
		switch {
		case isHidden != "":
			return bad("is itself hidden, by %s", isHidden)
		case reveals != "":
			return bad("would reveal what %s hides", reveals)
		case under == "":
			return bad("is beneath no hidden path")
		}
		if e.Derived != nil {
			if err := pl.checkDerived(e); err != nil {
				return err
			}
		}
		for _, link := range loc.Links {
			if _, ok := pl.nearest(link); ok {
				return bad("goes through a symlink beneath the hidden path")
			}
		}
		if loc.Info.Kind == pathcheck.BlockDevice {
			return bad("is a block device")
		}
		if raw, err := rawExposed(t, loc); err != nil {
			return fmt.Errorf("%s: %w", e.Key, err)
		} else if raw {
			return bad("is or holds a device that reaches memory or a disk")
		}
		pl.addLinks(e.Key, loc)
		if !pl.exposed[loc.Path] {
			pl.exposed[loc.Path] = true
			pl.Exposed = append(pl.Exposed, Exposed{Key: e.Key, Path: loc.Path, Info: loc.Info})
		}
	}
	return nil
}

// rawExposed looks for the devices that are granted nowhere in an exposed
// location of /dev.
func rawExposed(t pathcheck.Tree, loc pathcheck.Location) (bool, error) {
	if rawDevice(loc.Path, loc.Info) {
		return true, nil
	}
	if loc.Info.Kind != pathcheck.Directory || !pathcheck.Beneath("/dev", loc.Path) {
		return false, nil
	}
	n, err := pathcheck.Lookup(t, loc.Path)
	if err != nil {
		return false, changed(err)
	}
	defer n.Close()
	return holdsRawDevice(loc.Path, n, maxDeviceDepth)
}
