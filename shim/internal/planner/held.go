package planner

import (
	"errors"
	"fmt"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// maxHeld bounds how many hidden locations are held open: a table of more than
// 64 descriptors would have to grow, which stalls a process that has threads.
const maxHeld = 32

// hold opens the first hidden locations that exist. They stay open to the proof,
// which is then about these inodes, whatever their names are by then.
func hold(pl *plan.Plan, t pathcheck.Tree) (out []pathcheck.Node, err error) {
	for _, h := range pl.Hidden {
		if !h.Exists || len(out) == maxHeld {
			continue
		}
		n, err := pathcheck.Lookup(t, h.Path)
		if err == nil && n.Info().ID != h.Info.ID {
			n.Close()
			err = errors.New("is another one")
		}
		if err != nil {
			for _, held := range out {
				held.Close()
			}
			if !pathcheck.Exhausted(err) {
				err = fmt.Errorf("%w (%w)", pathcheck.ErrChanged, err)
			}
			return nil, fmt.Errorf("%q: %w", h.Path, err)
		}
		out = append(out, n)
	}
	return out, nil
}
