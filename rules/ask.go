package rules

import "github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"

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
