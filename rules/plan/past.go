package plan

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// Past remembers, over all plans of one launch, which inodes were hidden and
// which stood above them. A plan is made again when the file system changes
// under it. A peer may swap directories between two plans and swap back: what
// was once hidden stays hidden. The zero value has no plans in it.
type Past struct{ earlier, now identities }

type identities struct{ hidden, above map[pathcheck.ID]string }

func (i *identities) add(more identities) {
	if i.hidden == nil {
		i.hidden, i.above = map[pathcheck.ID]string{}, map[pathcheck.ID]string{}
	}
	maps.Copy(i.hidden, more.hidden)
	maps.Copy(i.above, more.above)
}

// begin starts a plan.
func (s *Past) begin() {
	if s != nil {
		s.earlier.add(s.now)
		s.now = identities{}
	}
}

// note keeps the identities of h, also when its plan comes to nothing.
func (s *Past) note(h Hidden) {
	if s == nil {
		return
	}
	s.now.add(identities{})
	if h.Exists {
		s.now.hidden[h.Info.ID] = h.Path
	}
	for _, a := range h.above {
		s.now.above[a.ID] = a.Path
	}
}

// addPast adds what earlier plans of the launch found to what is never granted.
// What stood above something hidden is granted entry by entry wherever it is now.
func (pl *Plan) addPast() error {
	if pl.launch.Past == nil {
		return nil
	}
	earlier := pl.launch.Past.earlier
	for path, id := range pl.expand {
		if was, ok := earlier.hidden[id]; ok {
			return fmt.Errorf("%s is what %s was: %w", strconv.Quote(path), strconv.Quote(was), pathcheck.ErrChanged)
		}
	}
	for id, path := range earlier.above {
		if _, ok := pl.ungranted[id]; !ok {
			pl.ungranted[id] = path
			pl.ancestors[id] = !pathcheck.Within("/dev", path)
		}
	}
	for id, path := range earlier.hidden {
		pl.ungranted[id] = path
		delete(pl.ancestors, id)
	}
	return nil
}
