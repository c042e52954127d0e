package plan_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// failing is a tree in which one call fails, the one numbered at.
type failing struct {
	pathcheck.Tree
	calls *int
	at    int
	errno syscall.Errno
}

type failingNode struct {
	pathcheck.Node
	tree failing
}

func (f failing) turn() error {
	*f.calls++
	if *f.calls == f.at {
		return fmt.Errorf("call: %w", f.errno)
	}
	return nil
}

func (f failing) next(open func() (pathcheck.Node, error)) (pathcheck.Node, error) {
	if err := f.turn(); err != nil {
		return nil, err
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

func (n failingNode) List() ([]string, error) {
	if err := n.tree.turn(); err != nil {
		return nil, err
	}
	return n.Node.List()
}

func (n failingNode) ReadLink() (string, error) {
	if err := n.tree.turn(); err != nil {
		return "", err
	}
	return n.Node.ReadLink()
}

// Whichever call fails for want of a descriptor or of memory, there is no plan:
// what cannot be looked at now could be the place of an alias, of a disk, of the
// home directory.
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
		/mnt/link -> /srv/work
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
				pl := func(at int) (grants []plan.Grant, calls int, err error) {
					x := pathtest.New(tree)
					f := failing{Tree: x, calls: &calls, at: at, errno: errno}
					l := root(x)
					l.Homes, l.Env = []string{"/home/u"}, []string{"HOME=/home/u", "XDG_CACHE_HOME=/mnt/home/u", "TMPDIR=/mnt/link"}
					k := pathcheck.Keep(f)
					pl, err := plan.Make(p, l, k)
					k.Release()
					if err == nil {
						err = k.Err()
					}
					if err != nil {
						return nil, calls, err
					}
					anew := pathcheck.Keep(f)
					var rec plan.Recorder
					_, err = pl.Walk(anew, &rec)
					anew.Release()
					if err == nil {
						err = anew.Err()
					}
					if x.Open() != 0 {
						t.Errorf("open %d fails: %d nodes stay open", at, x.Open())
					}
					return rec.Grants, calls, err
				}
				want, calls, err := pl(-1)
				if err != nil || len(want) < 5 {
					t.Fatalf("without a failure: %v, %v", err, want)
				}
				for at := 1; at <= calls; at++ {
					var policyError *rules.Error
					// For EMFILE, a Kept gives up what it has and asks again.
					grants, _, err := pl(at)
					switch {
					case err == nil && errno == syscall.EMFILE && cmp.Equal(grants, want):
					case !errors.Is(err, errno):
						t.Errorf("call %d of %d fails: %v, %v", at, calls, err, grants)
					case errors.As(err, &policyError) || errors.Is(err, pathcheck.ErrChanged):
						t.Errorf("call %d of %d fails: the policy or a change is blamed: %v", at, calls, err)
					}
				}
				t.Logf("%d calls", calls)
			})
		}
	}
}
