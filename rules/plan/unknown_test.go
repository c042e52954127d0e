package plan_test

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// What is not known is not taken for what is convenient.

// A directory above a hidden path that does not exist, and comes up after the
// plan, is granted to nobody: what is hidden may be made in it at any time.
func TestWalkParentAppears(t *testing.T) {
	for name, add := range map[string]string{
		"directory": "/srv/new/", "deeper": "/srv/new/tool/", "the hidden one, too": "/srv/new/tool/token/", "a link": "/srv/new -> work",
	} {
		forEachTree(t, name, func(t *testing.T, through through) {
			x := pathtest.New(base)
			tree, release := through(x)
			pl, err := plan.Make(policy("-/srv/new/tool/token"), user(x), tree)
			release()
			if err != nil {
				t.Fatal(err)
			}
			tree, release = through(x)
			var rec plan.Recorder
			_, err = pl.Walk(tree, &rec)
			release()
			if err != nil || !slices.ContainsFunc(rec.Grants, func(g plan.Grant) bool { return g.Path == "/srv/work" }) {
				t.Fatalf("before it came up: %v, %v", err, rec.Grants)
			}
			x.Add(add)
			tree, release = through(x)
			_, err = pl.Walk(tree, &plan.Recorder{})
			release()
			if !errors.Is(err, pathcheck.ErrChanged) {
				t.Errorf("got %v, want %v", err, pathcheck.ErrChanged)
			}
			checkOpen(t, x)
		})
	}
}

// /dev that comes up is not granted as any directory; a link in its place is no
// directory.
func TestWalkDevicesAppear(t *testing.T) {
	x := pathtest.New(base)
	pl, err := plan.Make(policy("-/srv/secret"), root(x), x)
	if err != nil {
		t.Fatal(err)
	}
	x.Add("/dev/sda block 8:0")
	if _, err := pl.Walk(x, &plan.Recorder{}); !errors.Is(err, pathcheck.ErrChanged) {
		t.Errorf("got %v, want %v", err, pathcheck.ErrChanged)
	}
	x = pathtest.New(base + "/dev -> other\n/other/null char 1:3")
	if pl, err = plan.Make(policy("-/srv/secret"), root(x), x); err != nil {
		t.Fatal(err)
	}
	if _, err := pl.Walk(x, &plan.Recorder{}); err != nil {
		t.Error(err)
	}
}

// Where /dev cannot be looked at, there is no plan.
func TestPrepareDeadDevices(t *testing.T) {
	for text, want := range map[string]error{"/dev/null char 1:3": nil, "/dev/ fail": syscall.ENOTCONN} {
		x := pathtest.New(base + text)
		if _, err := plan.Make(policy("-/srv/secret"), root(x), x); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", text, err, want)
		}
	}
}

// A mount of the hidden path's file system that cannot be looked at may show it.
func TestPrepareDeadMount(t *testing.T) {
	const nfs = base + "/n/ mount nfs 0:50\n/n/a/secret/f\n/n/b/\n/x bind /n/b\n"
	for text, want := range map[string]error{"": nil, "/x/ fail": syscall.ENOTCONN} {
		x := pathtest.New(nfs + text)
		l := user(x)
		for i := range l.Mounts {
			if l.Mounts[i].FSType == "nfs" {
				l.Mounts[i].Root = "/"
			}
		}
		if _, err := plan.Make(policy("-/n/a/secret"), l, x); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", text, err, want)
		}
	}
}

// A home directory that cannot be looked at is guarded where its path says.
func TestRootsDeadHome(t *testing.T) {
	for _, row := range []struct{ home, workspace, why string }{
		{"/home/u", "/home", "is above the home directory"},
		{"/h/u", "/home", "is above the home directory"},
		{"/home/u", "/srv/work", ""},
	} {
		x := pathtest.New("/home/\n/home/u/ fail\n/srv/work/\n/h -> home\n/dev/null char 1:3")
		p := policy("")
		p.Scope, p.Workspace, p.Toolchain.Mode = rules.ScopeWorkspace, row.workspace, rules.ToolchainNone
		_, err := plan.Make(p, plan.Launch{Cwd: "/", EUID: 1000, Homes: []string{row.home}, Mounts: x.Mounts()}, x)
		if row.why == "" && err != nil || row.why != "" && (err == nil || !strings.Contains(err.Error(), row.why)) {
			t.Errorf("%+v: %v", row, err)
		}
	}
}

// Toolchain directories are not made while it is not known what is hidden.
func TestMissingUnknownHidden(t *testing.T) {
	for text, want := range map[string]int{"/srv/dead/": 2, "/srv/dead/ fail": 0} {
		x := pathtest.New("/home/u/\n/ws/\n" + text)
		p := policy("-/srv/dead/secret")
		p.Scope, p.Workspace, p.Toolchain.Mode = rules.ScopeWorkspace, "/ws", rules.ToolchainUsual
		l := plan.Launch{EUID: 1000, Homes: []string{"/home/u"}, Env: []string{"HOME=/home/u"}, Mounts: x.Mounts()}
		if got := plan.Missing(p, l, pathcheck.Keep(x)); len(got) != want {
			t.Errorf("%s: %v, want %d", text, got, want)
		}
	}
}

// A directory above a hidden path is met as its sibling while somebody exchanges
// the two. What the plan does not know in it is hidden by the name that it has
// when it is back.
func TestWalkMovedAway(t *testing.T) {
	x := pathtest.New(base + "/srv/above/open/f\n/srv/other/")
	pl, err := plan.Make(policy("-/srv/above/new/token -/srv/above/file"), user(x), x)
	if err != nil {
		t.Fatal(err)
	}
	x.Add("/srv/above/new/\n/srv/above/file")
	unknown, file, open := x.Info("/srv/above/new").ID, x.Info("/srv/above/file").ID, x.Info("/srv/above/open").ID
	exchanged := false
	x.BeforeOpen = func(path string) {
		if path == "/srv/other" && !exchanged || path == "/srv/above" && exchanged {
			x.Exchange("/srv/above", "/srv/other")
			exchanged = !exchanged
		}
	}
	sink := &identities{ids: map[pathcheck.ID]string{}}
	// The one that is found at its own path by then is a change, too.
	if _, err := pl.Walk(x, sink); err != nil && !errors.Is(err, pathcheck.ErrChanged) {
		t.Fatal(err)
	}
	for _, id := range []pathcheck.ID{unknown, file} {
		if path, ok := sink.ids[id]; ok {
			t.Errorf("%s was granted", path)
		}
	}

	// Exchanged for the whole of the entries that are not known: those are left
	// out, and the others are granted.
	x.BeforeOpen = nil
	if exchanged {
		x.Exchange("/srv/above", "/srv/other")
	}
	l := user(x)
	l.Past = &plan.Past{}
	x.Remove("/srv/above/new")
	x.Remove("/srv/above/file")
	if _, err = plan.Make(policy("-/srv/above/new/token -/srv/above/file"), l, x); err != nil {
		t.Fatal(err)
	}
	x.Add("/srv/above/new/\n/srv/above/file")
	unknown, file = x.Info("/srv/above/new").ID, x.Info("/srv/above/file").ID
	x.Exchange("/srv/above", "/srv/other")
	if pl, err = plan.Make(policy("-/srv/above/new/token -/srv/above/file"), l, x); err != nil {
		t.Fatal(err)
	}
	sink = &identities{ids: map[pathcheck.ID]string{}}
	if _, err := pl.Walk(x, sink); err != nil {
		t.Fatal(err)
	}
	for _, id := range []pathcheck.ID{unknown, file} {
		if path, ok := sink.ids[id]; ok {
			t.Errorf("exchanged all the time: %s was granted", path)
		}
	}
	if sink.ids[open] != "/srv/other/open" {
		t.Errorf("exchanged all the time: granted are %v", sink.ids)
	}
}
