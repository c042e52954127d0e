package rules

import (
	"slices"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// HidesID reports whether the inode is a hidden location, and which.
func (pl *Plan) HidesID(id pathcheck.ID) (path string, ok bool) {
	for _, h := range pl.Hidden {
		if h.Exists && h.Info.ID == id {
			return h.Path, true
		}
	}
	return "", false
}

// ExposesID reports whether the inode is an exposed location.
func (pl *Plan) ExposesID(id pathcheck.ID) bool {
	for _, x := range pl.Exposed {
		if x.Info.ID == id {
			return true
		}
	}
	return false
}

// HidesOn returns a hidden location that exists on a file system, or beneath
// which it is mounted. It is given as [pathcheck.ID] has its device and as
// [pathcheck.Mount] has it.
func (pl *Plan) HidesOn(dev uint64, name string) (path string, ok bool) {
	for _, h := range pl.Hidden {
		if h.Exists && h.Info.ID.Dev == dev {
			return h.Path, true
		}
		for _, m := range pl.launch.Mounts {
			if pathcheck.Beneath(h.Path, m.Point) && m.Dev == name {
				return h.Path, true
			}
		}
	}
	return "", false
}

// HasMount reports whether the table of mounts of this launch has an ID.
func (pl *Plan) HasMount(id uint64) bool {
	return slices.ContainsFunc(pl.launch.Mounts, func(m pathcheck.Mount) bool { return uint64(m.ID) == id })
}
