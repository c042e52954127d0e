package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// identities is a sink that keeps the inodes.
type identities struct {
	ids  map[pathcheck.ID]string
	fail error
}

func (s *identities) Grant(g plan.Grant, n pathcheck.Node) error {
	if s.fail != nil {
		return s.fail
	}
	s.ids[n.Info().ID] = g.Path
	return nil
}

// A through is how a tree is looked at in one pass: as it is, or by a Kept. The
// pass ends with release.
type through func(pathcheck.Tree) (t pathcheck.Tree, release func())

// throughs are both ways.
var throughs = [...]through{
	func(x pathcheck.Tree) (pathcheck.Tree, func()) { return x, func() {} },
	func(x pathcheck.Tree) (pathcheck.Tree, func()) {
		k := pathcheck.Keep(x)
		return k, k.Release
	},
}

// forEachTree runs a test both ways.
func forEachTree(t *testing.T, name string, test func(*testing.T, through)) {
	for i, pass := range throughs {
		t.Run(name+[]string{"", ", kept"}[i], func(t *testing.T) { test(t, pass) })
	}
}

// TestWalkChanges swaps things at every step of the walk. Whatever the time,
// no grant lands on what is hidden or stands above it, nor on a symlink.
func TestWalkChanges(t *testing.T) {
	const tree = base + "/srv/link -> work\n/srv/other/\n/home/u/x/"
	changes := map[string]func(*pathtest.Tree){
		"hidden with a neighbour":     func(x *pathtest.Tree) { x.Exchange("/srv/secret", "/srv/work") },
		"hidden with a far one":       func(x *pathtest.Tree) { x.Exchange("/srv/secret", "/etc") },
		"hidden with a link":          func(x *pathtest.Tree) { x.Exchange("/srv/secret", "/srv/link") },
		"above hidden with another":   func(x *pathtest.Tree) { x.Exchange("/srv", "/home") },
		"above hidden moved":          func(x *pathtest.Tree) { x.Rename("/srv", "/new") },
		"above hidden becomes a link": func(x *pathtest.Tree) { x.Rename("/srv", "/new"); x.Add("/srv -> new") },
		"above hidden made again":     func(x *pathtest.Tree) { x.Rename("/srv", "/new"); x.Add("/srv/secret/key") },
		"hidden moved up":             func(x *pathtest.Tree) { x.Rename("/srv/secret", "/secret") },
		"hidden moved aside":          func(x *pathtest.Tree) { x.Rename("/srv/secret", "/srv/a") },
		"hidden made again":           func(x *pathtest.Tree) { x.Rename("/srv/secret", "/srv/zz"); x.Add("/srv/secret/") },
		"exposed with a hidden one":   func(x *pathtest.Tree) { x.Exchange("/srv/secret/open", "/srv/secret/deep") },
		"exposed with a link":         func(x *pathtest.Tree) { x.Add("/srv/l -> deep"); x.Exchange("/srv/secret/open", "/srv/l") },
		"exposed with what is above":  func(x *pathtest.Tree) { x.Rename("/srv", "/old"); x.Rename("/old/secret/open", "/srv") },
		"file becomes a link":         func(x *pathtest.Tree) { x.Exchange("/home/u/notes", "/srv/link") },
		"linked":                      func(x *pathtest.Tree) { x.Add("/zz == /srv/secret") },
	}
	for name, change := range changes {
		forEachTree(t, name, func(t *testing.T, through through) {
			ok, changed := 0, 0
			for step := 0; ; step++ {
				x := pathtest.New(tree)
				bad := map[pathcheck.ID]string{}
				for _, path := range []string{"/", "/srv", "/srv/secret", "/srv/secret/deep", "/home", "/home/u", "/home/u/.ssh", "/srv/link"} {
					bad[x.Info(path).ID] = path
				}
				tree, release := through(x)
				pl, err := plan.Make(policy("-/srv/secret -/home/u/.ssh +/srv/secret/open"), user(x), tree)
				if err != nil {
					t.Fatal(err)
				}
				release()
				steps, done := 0, false
				hook := func(string) {
					if steps == step && !done {
						change(x)
						done = true
					}
					steps++
				}
				x.BeforeOpen, x.BeforeList = hook, hook
				sink := &identities{ids: map[pathcheck.ID]string{}}
				tree, release = through(x)
				_, err = pl.Walk(tree, sink)
				release()
				for id, path := range sink.ids {
					if was, ok := bad[id]; ok {
						t.Errorf("step %d: %q was granted, as %q", step, was, path)
					}
				}
				checkOpen(t, x)
				switch {
				case err == nil:
					ok++
				case errors.Is(err, pathcheck.ErrChanged):
					changed++
				default:
					t.Errorf("step %d: %v", step, err)
				}
				if !done {
					if ok == 0 {
						t.Error("the walk fails without a change too")
					}
					t.Logf("%d steps, %d of them end in ErrChanged", step, changed)
					return
				}
			}
		})
	}
}

// TestWalkChangedBefore: a change between planning and the walk.
func TestWalkChangedBefore(t *testing.T) {
	for name, change := range map[string]func(*pathtest.Tree){
		"above hidden exchanged": func(x *pathtest.Tree) { x.Exchange("/srv", "/home") },
		"above hidden gone":      func(x *pathtest.Tree) { x.Remove("/srv") },
		"above hidden a link":    func(x *pathtest.Tree) { x.Rename("/srv", "/new"); x.Add("/srv -> new") },
		"above hidden a file":    func(x *pathtest.Tree) { x.Remove("/srv"); x.Add("/srv") },
		"exposed exchanged":      func(x *pathtest.Tree) { x.Exchange("/srv/secret/open", "/srv/secret/deep") },
		"exposed gone":           func(x *pathtest.Tree) { x.Remove("/srv/secret/open") },
		"exposed a link":         func(x *pathtest.Tree) { x.Remove("/srv/secret/open"); x.Add("/srv/secret/open -> deep") },
	} {
		forEachTree(t, name, func(t *testing.T, through through) {
			x := pathtest.New(base)
			tree, release := through(x)
			pl, err := plan.Make(policy("-/srv/secret +/srv/secret/open"), user(x), tree)
			if err != nil {
				t.Fatal(err)
			}
			release()
			change(x)
			tree, release = through(x)
			if _, err := pl.Walk(tree, &plan.Recorder{}); !errors.Is(err, pathcheck.ErrChanged) {
				t.Errorf("got %v, want %v", err, pathcheck.ErrChanged)
			}
			release()
			checkOpen(t, x)
		})
	}
}

func TestWalkSinkFails(t *testing.T) {
	x := pathtest.New(base)
	pl, err := plan.Make(policy("-/srv/secret"), user(x), x)
	if err != nil {
		t.Fatal(err)
	}
	want := errors.New("no more rules")
	if _, err := pl.Walk(x, &identities{fail: want}); !errors.Is(err, want) || !strings.Contains(err.Error(), `"/etc"`) {
		t.Errorf("got %v", err)
	}
	checkOpen(t, x)
}

// TestWalkTwice: a plan is not used up by a walk.
func TestWalkTwice(t *testing.T) {
	x := pathtest.New(base + "/dev/disk/sda block 8:0\n/dev/disk/x char 5:0")
	pl, err := plan.Make(policy("-/srv/secret"), user(x), x)
	if err != nil {
		t.Fatal(err)
	}
	var one, two plan.Recorder
	if _, err := pl.Walk(x, &one); err != nil {
		t.Fatal(err)
	}
	if _, err := pl.Walk(x, &two); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one.Grants, two.Grants); diff != "" || len(one.Grants) == 0 {
		t.Errorf("(-first +second):\n%s", diff)
	}
}
