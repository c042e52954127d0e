package plan

import (
	"fmt"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// causable reports whether an earlier launch could have made that a lookup was denied,
// and so chosen what this one does not see: the directory that may not be searched
// belongs to this user, who may have changed its mode; or it, or a link on the way to
// it, lies in a place that some launch could have made writable; or this launch may
// search it all the same, by its capabilities or as its owner, whom root can become.
//
// In a sticky directory nobody can put or move what belongs to another user (inode(7)):
// what such a one keeps in a temp directory is not of this launch's making.
func (pl *Plan) causable(t pathcheck.Tree, loc pathcheck.Location) (bool, error) {
	if pl.launch.EUID == 0 {
		return true, nil
	}
	closed, err := infoOf(t, loc.Above[len(loc.Above)-1])
	if err != nil || closed.UID == pl.launch.UID {
		return true, err
	}
	if pl.places == nil {
		f := &rootFinder{policy: pl.policy, launch: pl.launch, tree: t, mounts: pl.mounts}
		pl.places = f.anyPlaces()
	}
	if _, ok := pl.places.planted(loc); ok {
		return true, nil
	}
	for i, above := range loc.Above {
		if _, ok := pl.places.dirs[above.ID]; !ok {
			continue
		}
		if i == len(loc.Above)-1 {
			return true, nil
		}
		dir, err := infoOf(t, above)
		if err != nil {
			return true, err
		}
		below, err := infoOf(t, loc.Above[i+1])
		const sticky = 0o1000
		return dir.Mode&sticky == 0 || dir.UID == pl.launch.UID || below.UID == pl.launch.UID, err
	}
	return false, nil
}

// infoOf looks again at a directory that a lookup went through.
func infoOf(t pathcheck.Tree, p pathcheck.Place) (pathcheck.Info, error) {
	n, err := pathcheck.Lookup(t, p.Path)
	if err != nil {
		return pathcheck.Info{}, changed(err)
	}
	defer n.Close()
	if n.Info().ID != p.ID {
		return pathcheck.Info{}, fmt.Errorf("%s: %w", rules.QuotePath(p.Path), pathcheck.ErrChanged)
	}
	return n.Info(), nil
}
