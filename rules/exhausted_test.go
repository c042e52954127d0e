package rules_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// failing is a tree in which one open fails, the one numbered at.
type failing struct {
	pathcheck.Tree
	opens *int
	at    int
	errno syscall.Errno
}

type failingNode struct {
	pathcheck.Node
	tree failing
}

func (f failing) next(open func() (pathcheck.Node, error)) (pathcheck.Node, error) {
	*f.opens++
	if *f.opens == f.at {
		return nil, fmt.Errorf("open: %w", f.errno)
	}
	n, err := open()
	if err != nil {
		return nil, err
	}
	return failingNode{n, f}, nil
}

func (f failing) Root() (pathcheck.Node, error) { return f.next(f.Tree.Root) }

func (n failingNode) Open(name string) (pathcheck.Node, error) {
	return n.tree.next(func() (pathcheck.Node, error) { return n.Node.Open(name) })
}

// Whichever open fails for want of a descriptor, a plan grants no more than it
// would grant otherwise, or there is none: what cannot be looked at now could be
// the place of an alias, of a disk, of the home directory.
func TestExhausted(t *testing.T) {
	const tree = `
		/srv/secret/key
		/srv/work/f
		/home/u/.ssh/id
		/home/u/ws/
		/home/u/.cache/
		/mnt/alias bind /srv/secret
		/mnt/home bind /home
		/lower/a/key
		/dev/ mount devtmpfs 0:5
		/dev/null char 1:3
		/dev/sda block 8:0
		/dev/disk/by-id/
		/tmp/link -> /srv/work
		/proc/ mount proc 0:21
		/sys/ mount sysfs 0:22
	`
	workspace := func(hidden string) *rules.Policy {
		p := policy(hidden)
		p.Scope, p.Workspace, p.Toolchain.Mode = rules.ScopeWorkspace, "/home/u/ws", rules.ToolchainUsual
		return p
	}
	for name, p := range map[string]*rules.Policy{
		"hidden":    policy("-/srv/secret -/home/u/.ssh"),
		"workspace": workspace(""),
		"both":      workspace("-/srv/secret"),
	} {
		for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
			t.Run(name+"/"+errno.Error(), func(t *testing.T) {
				// A default that is home under another path, which the guard finds.
				plan := func(at int) (grants []rules.Grant, opens int, err error) {
					x := pathtest.New(tree)
					f := failing{Tree: x, opens: &opens, at: at, errno: errno}
					l := root(x)
					l.Homes, l.Env = []string{"/home/u"}, []string{"HOME=/home/u", "XDG_CACHE_HOME=/mnt/home/u", "TMPDIR=/tmp/link"}
					k := pathcheck.Keep(f)
					pl, err := rules.Prepare(p, l, k)
					k.Release()
					if err == nil {
						err = k.Err()
					}
					if err != nil {
						return nil, opens, err
					}
					anew := pathcheck.Keep(f)
					var rec rules.Recorder
					_, err = pl.Walk(anew, &rec)
					anew.Release()
					if err == nil {
						err = anew.Err()
					}
					if x.Open() != 0 {
						t.Errorf("open %d fails: %d nodes stay open", at, x.Open())
					}
					return rec.Grants, opens, err
				}
				want, opens, err := plan(-1)
				if err != nil || opens < 20 {
					t.Fatalf("without a failure: %v, %d opens", err, opens)
				}
				failed := 0
				for at := 1; at <= opens; at++ {
					grants, _, err := plan(at)
					switch {
					case err != nil:
						failed++
					case len(grants) < len(want)-1:
						t.Errorf("open %d of %d fails and is forgotten: %v", at, opens, grants)
					}
					for _, g := range grants {
						if !slices.ContainsFunc(want, func(w rules.Grant) bool {
							return pathcheck.Within(w.Path, g.Path) && g.Access&^w.Access == 0
						}) {
							t.Errorf("open %d of %d fails, and %v is granted", at, opens, g)
						}
					}
				}
				if failed == 0 {
					t.Error("no failure was noticed")
				}
				t.Logf("%d opens, %d failures noticed", opens, failed)
			})
		}
	}
}
