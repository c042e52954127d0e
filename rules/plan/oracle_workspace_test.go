package plan_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// rights is a sink that keeps what each inode was granted.
type rights map[pathcheck.ID]plan.Access

func (r rights) Grant(g plan.Grant, n pathcheck.Node) error {
	r[n.Info().ID] |= g.Access
	return nil
}

// TestWorkspaceAgainstText plans random policies of scope workspace on random
// trees. What lies in a root or in what is exposed, and is neither hidden nor
// above it, can be written; what does not, under whatever path, cannot; and
// reading is as without the scope.
func TestWorkspaceAgainstText(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(seeds) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		text := randomTree(rnd)
		tree := pathtest.New(text)
		var hidden, exposed []string
		if rnd.IntN(4) > 0 {
			hidden, exposed = randomPolicy(rnd, tree)
		}
		p := policy(strings.TrimSpace(strings.Join(append(marked("-", hidden), marked("+", exposed)...), " ")))
		p.Scope, p.Toolchain.Mode, p.Frozen = rules.ScopeWorkspace, rules.ToolchainNone, rules.FrozenAllow
		named := randomRoots(rnd, tree)
		if len(named) == 0 {
			continue
		}
		p.Workspace = named[0]
		for _, path := range named[1:] {
			p.Writable = append(p.Writable, rules.Entry{Path: path, Key: "writable[0]"})
		}
		says := read(tree, hidden, exposed)

		pass := throughs[seed%2]
		seen, release := pass(tree)
		pl, err := plan.Make(p, plan.Launch{EUID: 1000, Mounts: tree.Mounts()}, seen)
		release()
		if err != nil {
			if !says.contradictory {
				t.Fatalf("seed %d: hidden %v, exposed %v, roots %v: %v\n%s", seed, hidden, exposed, named, err, text)
			}
			count["refused"]++
			continue
		}
		granted := rights{}
		seen, release = pass(tree)
		_, err = pl.Walk(seen, granted)
		release()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		checkOpen(t, tree)

		within := func(path string) bool {
			return slices.ContainsFunc(slices.Concat(named, exposed), func(d string) bool { return pathcheck.Within(d, path) })
		}
		maybe := map[pathcheck.ID]bool{} // what can be reached in a root, by some path
		tree.Each(func(path string, info pathcheck.Info) {
			if within(path) {
				maybe[info.ID] = true
			}
		})
		for _, pl := range says.places {
			var a plan.Access
			inRoot := false
			for _, id := range pl.line {
				a |= granted[id]
				inRoot = inRoot || maybe[id]
			}
			write := a&(plan.WriteFile|plan.MakeReg|plan.RemoveFile|plan.Refer|plan.Truncate) != 0
			fail := func(what string) {
				t.Fatalf("seed %d: hidden %v, exposed %v, roots %v: %q %s (%v)\n%s", seed, hidden, exposed, named, pl.path, what, a, text)
			}
			switch {
			case pl.closed && a != 0:
				fail("is hidden, and open")
			case pl.open && a&plan.ReadFile == 0:
				fail("is not hidden, and cannot be read")
			case !inRoot && write:
				fail("is in no root, and can be written")
			case pl.open && within(pl.path) && !write:
				fail("is in a root, and cannot be written")
			case pl.closed:
				count["closed"]++
			case write:
				count["writable"]++
			case pl.open:
				count["read-only"]++
			}
			if a&(plan.MakeChar|plan.MakeBlock) != 0 {
				fail("may make devices")
			}
		}
	}
	t.Log(count)
	for what, n := range map[string]int{"closed": 3000, "writable": 5000, "read-only": 5000, "refused": 5} {
		if count[what] < n {
			t.Errorf("%d were %s, too few to say anything", count[what], what)
		}
	}
}

// randomRoots returns a directory and up to two more places.
func randomRoots(rnd *rand.Rand, tree *pathtest.Tree) []string {
	var dirs, all []string
	tree.Each(func(path string, info pathcheck.Info) {
		// A mount of "/" is the root under another path.
		if path == "/" || info.ID == tree.Info("/").ID {
			return
		}
		switch info.Kind {
		case pathcheck.Directory:
			dirs = append(dirs, path)
			all = append(all, path)
		case pathcheck.Regular:
			if info.Links == 1 {
				all = append(all, path)
			}
		}
	})
	if len(dirs) == 0 {
		return nil
	}
	out := []string{dirs[rnd.IntN(len(dirs))]}
	for range rnd.IntN(3) {
		out = append(out, all[rnd.IntN(len(all))])
	}
	return out
}
