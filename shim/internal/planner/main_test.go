package planner

import (
	"encoding/json"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/target"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/child"
)

func TestMain(m *testing.M) {
	os.Exit(child.Main(m, map[string]child.Func{"mounts": mountsChild}))
}

func inputOf(p *rules.Policy) Input {
	return Input{
		Policy: p, Env: []string{"PATH=/usr/bin:/bin"}, Program: target.At("/bin/true", "true"),
		Step: func(string) {}, Debug: func(string, ...any) {},
	}
}

func hide(paths ...string) []rules.Entry {
	var out []rules.Entry
	for _, path := range paths {
		out = append(out, rules.Entry{Key: "hidden", Path: path})
	}
	return out
}

// A sink counts grants and calls f for each.
type sink struct{ f func(plan.Grant) error }

func (s sink) Grant(g plan.Grant, _ pathcheck.Node) error { return s.f(g) }

// A mounting is what a child mounts, and when.
type mounting struct {
	Hidden, From, Onto string
	// During is set for a mount in the middle of the walk.
	During bool
}

type mounted struct {
	Plans  int
	Hidden []string
	Later  string // what MountsUnchanged says
}

// mountsChild plans in a mount namespace of its own in which something is mounted
// meanwhile.
func mountsChild(in []byte) (any, error) {
	var m mounting
	if err := json.Unmarshal(in, &m); err != nil {
		return nil, err
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return nil, err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, err
	}
	mount := func() error { return unix.Mount(m.From, m.Onto, "", unix.MS_BIND, "") }
	var out mounted
	input, once := inputOf(&rules.Policy{Version: 1, Hidden: hide(m.Hidden)}), false
	pl, err := Make(input, func([]string) (plan.Sink, error) {
		out.Plans++
		return sink{func(plan.Grant) error {
			if !m.During || once {
				return nil
			}
			once = true
			return mount()
		}}, nil
	})
	if err != nil {
		return nil, err
	}
	defer pl.Close()
	for _, h := range pl.Files.Hidden {
		out.Hidden = append(out.Hidden, h.Path)
	}
	if !m.During {
		if err := mount(); err != nil {
			return nil, err
		}
	}
	if err := pl.MountsUnchanged(); err != nil {
		out.Later = err.Error()
	}
	return out, nil
}
