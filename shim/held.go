package shim

import (
	"fmt"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// maxHeld bounds how many hidden locations are held open: a table of more than
// 64 descriptors would have to grow, which stalls a process that has threads.
const maxHeld = 32

// held keeps the first hidden locations open from planning to the proof, so
// that the proof is about these inodes whatever their names are by then.
type held []pathcheck.Node

// hold opens the first hidden locations that exist.
func hold(pl *plan.Plan, t pathcheck.Tree) (held, error) {
	var out held
	for _, h := range pl.Hidden {
		if !h.Exists || len(out) == maxHeld {
			continue
		}
		n, err := pathcheck.Lookup(t, h.Path)
		if err == nil && n.Info().ID != h.Info.ID {
			n.Close()
			err = pathcheck.ErrChanged
		}
		if err != nil {
			out.close()
			return nil, fmt.Errorf("%q: %w (%w)", h.Path, pathcheck.ErrChanged, err)
		}
		out = append(out, n)
	}
	return out, nil
}

func (hs held) close() {
	for _, n := range hs {
		n.Close()
	}
}
