package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// linkPlaces are links to /data, which nothing names, and whether they are followed.
// HOME is /home/u, TMPDIR /t, and the launcher had XDG_CACHE_HOME=/xdg.
var linkPlaces = []struct {
	link     string
	followed bool
}{
	{"/tmp/l", false},
	{"/var/tmp/l", false},
	{"/dev/shm/l", false},
	{"/t/l", false},
	{"/xdg/l", false},
	{"/home/u/.cache/l", false},
	{"/home/u/.npm/l", false},
	{"/home/u/.gradle/caches/l", false},
	{"/home/u/go/pkg/mod/deep/l", false},
	{"/bind/l", false}, // a mount of /tmp/sub
	{"/srv/work/l", false},
	{"/home/u/l", true},
	{"/home/u/go/l", true},
	{"/srv/l", true},
	{"/l", true},
	{"/home/u/.gradle/l", true},
}

func placesTree(link string) *pathtest.Tree {
	return pathtest.New(base + `
		/data/sub/
		/dev/null char 1:3
		/dev/shm/
		/var/tmp/
		/t/
		/xdg/
		/home/u/.cache/
		/home/u/.npm/
		/home/u/.gradle/caches/
		/home/u/go/pkg/mod/deep/
		/tmp/sub/
		/bind bind /tmp/sub
		` + link + " -> /data\n")
}

func placesStage(tree *pathtest.Tree) stage {
	s := scoped(tree, "")
	s.l.Env, s.l.Outer = []string{"HOME=/home/u", "TMPDIR=/t"}, []string{"HOME=/home/u", "TMPDIR=/t", "XDG_CACHE_HOME=/xdg"}
	return s
}

// TestLinksInPlaces: where a link lies decides whether it is followed, whatever names
// the path and whatever is writable now.
func TestLinksInPlaces(t *testing.T) {
	for _, row := range linkPlaces {
		tree := placesTree(row.link)
		for use, set := range map[string]func(*stage){
			"workspace": func(s *stage) {
				s.p.Workspace, s.p.Writable = row.link, []rules.Entry{{Path: "/srv/work", Key: "writable[0]"}}
			},
			"writable": func(s *stage) { *s = s.writable(row.link + "/sub") },
			"owned":    func(s *stage) { s.p.Toolchain = rules.ToolchainDirs{Mode: rules.ToolchainOwned, Owned: row.link} },
			"PWD": func(s *stage) {
				s.l.Cwd, s.l.PWD, s.p.Writable = "/data", row.link, []rules.Entry{{Path: "/srv/work", Key: "writable[0]"}}
			},
		} {
			s := placesStage(tree)
			set(&s)
			_, err := plan.Make(s.p, s.l, tree)
			var perr *rules.Error
			switch {
			case row.followed && err != nil:
				t.Errorf("%s is %s: %v", use, row.link, err)
			case !row.followed && (!errors.As(err, &perr) || !strings.Contains(perr.Msg, "goes through the symlink") || !strings.Contains(perr.Msg, `name "/data`)):
				t.Errorf("%s is %s: %v", use, row.link, err)
			}
		}
		s := placesStage(tree)
		s.l.Env, s.p.Toolchain.Mode = append(s.l.Env, "GOCACHE="+row.link), rules.ToolchainUsual
		pl, err := plan.Make(s.p, s.l, tree)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(pl.WritableDirs(), "/data"); got != row.followed {
			t.Errorf("GOCACHE is %s: writable %v", row.link, got)
		}
		// What the shim writes, whatever the scope.
		for _, scope := range []rules.Scope{rules.ScopeWorkspace, rules.ScopeLocal} {
			if scope == rules.ScopeLocal && row.link == "/srv/work/l" {
				continue // no workspace
			}
			s := placesStage(tree)
			s.p.Scope = scope
			loc, err := pathcheck.Resolve(tree, row.link+"/made/x")
			if err != nil {
				t.Fatal(err)
			}
			if err := plan.CheckLinks(s.p, s.l, tree, loc); (err == nil) != row.followed {
				t.Errorf("the report at %s, scope %s: %v", row.link, scope, err)
			}
		}
	}
}

// $PWD counts where it leads to the current directory, and only there.
func TestPWDOfAnotherDirectory(t *testing.T) {
	tree := placesTree("/tmp/l")
	for _, pwd := range []string{"/tmp/l/sub", "/gone", ""} {
		s := placesStage(tree)
		s.l.Cwd, s.l.PWD = "/data", pwd
		pl, err := plan.Make(s.p, s.l, tree)
		if err != nil || pl.WritableDirs()[0] != "/data" {
			t.Errorf("PWD %q: %v", pwd, err)
		}
	}
}

// A temp directory that is a link itself, and a home that is, are followed.
func TestLinkedPlaces(t *testing.T) {
	tree := pathtest.New("/private/tmp/x/\n/tmp -> private/tmp\n/var/home/u/ws/\n/home -> var/home\n/scratch/\n/var/home/u/.cache -> /scratch\n/dev/null char 1:3")
	p := policy("")
	p.Scope, p.Workspace, p.Toolchain.Mode = rules.ScopeWorkspace, "/home/u/ws", rules.ToolchainUsual
	pl, err := plan.Make(p, plan.Launch{EUID: 1000, Homes: []string{"/home/u"}, Env: []string{"HOME=/home/u"}, Mounts: tree.Mounts()}, tree)
	if err != nil {
		t.Fatal(err)
	}
	if got := roots(pl); got != "/var/home/u/ws /private/tmp /scratch (/dev/null)" {
		t.Errorf("roots: %s", got)
	}
}

// Whether a directory that may not be searched is a limit, or a guarantee that is
// missing.
func TestClosedDirectories(t *testing.T) {
	const text = base + "/srv/closed/ nosearch\n/tmp/closed/ nosearch\n/home/u/.cache/closed/ nosearch\n/tmp/l -> /srv/closed\n/srv/l -> /srv/closed\n"
	for _, row := range []struct {
		hidden string
		uid    uint32 // of the launch; all that is there is 0's
		euid   int
		limit  bool
	}{
		{"/srv/closed/x", 1000, 1000, true},
		{"/srv/closed/x/y/z", 1000, 1000, true},
		{"/srv/l/x", 1000, 1000, true},
		{"/srv/closed/x", 0, 1000, false},    // its owner
		{"/srv/closed/x", 1000, 0, false},    // by capabilities
		{"/tmp/closed/x", 1000, 1000, false}, // in a place
		{"/home/u/.cache/closed/x", 1000, 1000, false},
		{"/tmp/l/x", 1000, 1000, false}, // through a link in a place
	} {
		tree := pathtest.New(text)
		l := user(tree)
		l.UID, l.EUID, l.Env, l.Homes = row.uid, row.euid, []string{"HOME=/home/u"}, []string{"/home/u"}
		l.Names = append(l.Names, row.hidden)
		pl, err := plan.Make(func() *rules.Policy { p := policy("-" + row.hidden); p.Frozen = rules.FrozenAllow; return p }(), l, tree)
		if err != nil {
			t.Errorf("%+v: %v", row, err)
			continue
		}
		i := slices.IndexFunc(pl.Gaps, func(g rules.Gap) bool { return g.What == "unresolved" })
		if i < 0 || pl.Gaps[i].Limit != row.limit {
			t.Errorf("%+v: %+v", row, pl.Gaps)
		}
		if _, err := pl.Walk(tree, &plan.Recorder{}); err != nil {
			t.Errorf("%+v: %v", row, err)
		}
	}
}

// Where the mount of "/" is not in the table, a mount of the same file system may show
// what is hidden; a file of it may not, unless its path says so.
func TestChrootWithMounts(t *testing.T) {
	for text, limit := range map[string]bool{
		"/m bind /home": false, "/m/ mount tmpfs 0:60": true, "/etc/hosts bind /etc/passwd": true, "/m bind /srv/secret/deep/key": false,
	} {
		tree := pathtest.New(base + text)
		l := user(tree)
		for i, m := range l.Mounts {
			if m.Point == "/" {
				l.Mounts = slices.Delete(slices.Clone(l.Mounts), i, i+1)
				break
			}
		}
		pl, err := plan.Make(policy("-/srv/secret"), l, tree)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(pl.Gaps, func(g rules.Gap) bool { return g.What == "mount-alias" })
		if i < 0 || pl.Gaps[i].Limit != limit {
			t.Errorf("%s: %+v", text, pl.Gaps)
		}
	}
}

// A layer of an overlay that may not be searched is missing where this user could
// have closed it and reaches the overlay.
func TestClosedLayers(t *testing.T) {
	for _, row := range []struct {
		uid   uint32
		layer string
		gap   bool
		limit bool
	}{
		{0, "/srv/closed/l", true, false},
		{1000, "/srv/closed/l", true, true},
		{0, "/gone", true, true},
		{0, "relative", true, true},
		{0, "/usr", false, false},
	} {
		tree := pathtest.New(base + "/srv/closed/ nosearch\n/merged/ mount overlay 0:40\n")
		l := user(tree)
		l.UID, l.Mounts[1].Layers = row.uid, []string{row.layer}
		pl, err := plan.Make(policy("-/srv/secret"), l, tree)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(pl.Gaps, func(g rules.Gap) bool { return g.What == "overlay" })
		if (i >= 0) != row.gap || row.gap && pl.Gaps[i].Limit != row.limit {
			t.Errorf("%+v: %+v", row, pl.Gaps)
		}
	}
	// Beside containers: the overlay stands where this user cannot go.
	tree := pathtest.New(base + "/srv/closed/m/ mount overlay 0:40\n/srv/closed/ nosearch\n")
	l := user(tree)
	l.Mounts[1].Layers = []string{"/srv/closed/l"}
	if pl, err := plan.Make(policy("-/srv/secret"), l, tree); err != nil || slices.ContainsFunc(pl.Gaps, func(g rules.Gap) bool { return g.What == "overlay" }) {
		t.Errorf("out of reach: %v", err)
	}
}
