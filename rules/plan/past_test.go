package plan_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// TestPast: a peer exchanges something after the first plan. The second plan
// grants neither what was hidden before nor what stood above it, under the
// names that they have meanwhile; without the memory it does.
func TestPast(t *testing.T) {
	const tree = `
		/srv/above/secret/f
		/srv/above/decoy/f
		/srv/above/open/f
		/srv/other/secret/f
		/srv/other/open/f
	`
	for name, c := range map[string]struct {
		a, b string
		// secret is where the hidden directory is found meanwhile.
		secret string
		// grants are made anyway, exposes would open the hidden directory.
		grants, exposes string
	}{
		"hidden": {"/srv/above/secret", "/srv/above/decoy", "/srv/above/decoy", "/srv/above/open", "/srv/above/decoy"},
		"above":  {"/srv/above", "/srv/other", "/srv/other/secret", "/srv/other/open", "/srv/other"},
	} {
		for _, remember := range []bool{true, false} {
			x := pathtest.New(tree)
			l := user(x)
			if remember {
				l.Past = &plan.Past{}
			}
			p := policy("-/srv/above/secret")
			if _, err := plan.Make(p, l, x); err != nil {
				t.Fatal(err)
			}
			secret := x.Info("/srv/above/secret").ID
			x.Exchange(c.a, c.b)
			if got := x.Info(c.secret).ID; got != secret {
				t.Fatalf("%s: the hidden directory is not at %s", name, c.secret)
			}
			pl, err := plan.Make(p, l, x)
			if err != nil {
				t.Fatal(err)
			}
			var rec plan.Recorder
			if _, err := pl.Walk(x, &rec); err != nil {
				t.Fatal(err)
			}
			granted := func(path string) bool {
				return slices.ContainsFunc(rec.Grants, func(g plan.Grant) bool { return g.Path == path })
			}
			if got := granted(c.exposes); got == remember {
				t.Errorf("%s, remember %v: %s granted: %v", name, remember, c.exposes, got)
			}
			if remember && (granted(c.secret) || !granted(c.grants)) {
				t.Errorf("%s: granted are %v", name, rec.Grants)
			}
		}
	}
}

// TestPastAbove: what was hidden stands above the hidden path now. Its entries
// are not granted one by one.
func TestPastAbove(t *testing.T) {
	x := pathtest.New(`
		/srv/secret/secret/f
		/srv/secret/f
		/srv/decoy/f
	`)
	l := user(x)
	l.Past = &plan.Past{}
	if _, err := plan.Make(policy("-/srv/secret"), l, x); err != nil {
		t.Fatal(err)
	}
	x.Rename("/srv/secret", "/moved")
	x.Remove("/srv")
	x.Rename("/moved", "/srv")
	if _, err := plan.Make(policy("-/srv/secret"), l, x); !errors.Is(err, pathcheck.ErrChanged) {
		t.Errorf("got %v, want %v", err, pathcheck.ErrChanged)
	}

	// Nor are they once it stands elsewhere.
	x.Rename("/srv", "/aside")
	x.Add("/srv/secret/new")
	pl, err := plan.Make(policy("-/srv/secret"), l, x)
	if err != nil {
		t.Fatal(err)
	}
	var rec plan.Recorder
	if _, err := pl.Walk(x, &rec); err != nil {
		t.Fatal(err)
	}
	for _, g := range rec.Grants {
		if pathcheck.Within("/aside", g.Path) {
			t.Errorf("%s is granted, and was hidden", g.Path)
		}
	}
}
