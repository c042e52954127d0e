package plan_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// base is a small system.
const base = `
	/usr/bin/tool
	/usr/lib/ld.so
	/bin -> usr/bin
	/etc/passwd
	/home/u/.ssh/id
	/home/u/notes
	/srv/secret/deep/key
	/srv/secret/open/f
	/srv/work/main.c
	/tmp/
`

// policy makes one from fields: "-/srv/secret +/srv/secret/open" hides and exposes.
func policy(text string) *rules.Policy {
	p := &rules.Policy{Version: 1, Required: true, Frozen: rules.FrozenRefuse, Scope: rules.ScopeLocal}
	for f := range strings.FieldsSeq(text) {
		if path, ok := strings.CutPrefix(f, "+"); ok {
			p.Exposed = append(p.Exposed, rules.Entry{Path: path, Key: fmt.Sprintf("exposed[%d]", len(p.Exposed))})
		} else {
			p.Hidden = append(p.Hidden, rules.Entry{Path: f[1:], Key: fmt.Sprintf("hidden[%d]", len(p.Hidden))})
		}
	}
	return p
}

// user and root are launches on the tree.
func user(tree *pathtest.Tree) plan.Launch {
	return plan.Launch{
		Cwd: "/srv/work", TempDir: "/tmp", EUID: 1000, Mounts: tree.Mounts(),
		Needed: []plan.Need{{Role: "the program", Path: "/bin/tool"}, {Role: "its loader", Path: "/usr/lib/ld.so"}},
	}
}

func root(tree *pathtest.Tree) plan.Launch {
	l := user(tree)
	l.EUID = 0
	return l
}

func TestPrepareErrors(t *testing.T) {
	tests := []struct {
		name, tree, policy string
		want               string // "key path: part of the message"; "" for none
	}{
		{"nothing wrong", "", "-/srv/secret +/srv/secret/open", ""},
		{"root", "", "-/", `hidden[0] /: is /`},
		{"root by a link", "/l -> /", "-/srv/secret -/l", `hidden[1] /l: is /`},
		{"proc", "/proc/ mount proc 0:21", "-/proc", `hidden[0] /proc: is in /proc`},
		{"in proc", "/proc/ mount proc 0:21", "-/proc/1/environ", `hidden[0] /proc/1/environ: is in /proc`},
		{"through a magic link", "/proc/ mount proc 0:21\n/proc/1/root -> /", "-/proc/1/root/srv/secret", `hidden[0] /proc/1/root/srv/secret: goes through a link of /proc`},
		{"not a directory on the way", "", "-/etc/passwd/x", `hidden[0] /etc/passwd/x: "/etc/passwd": not a directory`},
		{"loop", "/l -> l", "-/l", `hidden[0] /l: too many levels`},

		{"the program", "", "-/usr/bin/tool", `hidden[0] /usr/bin/tool: hides the program "/usr/bin/tool"`},
		{"above the program", "", "-/srv/secret -/usr/bin", `hidden[1] /usr/bin: hides the program "/usr/bin/tool"`},
		{"the program by a link", "", "-/bin", `hidden[0] /usr/bin: hides the program "/usr/bin/tool"`},
		{"the loader", "", "-/usr/lib/ld.so", `hidden[0] /usr/lib/ld.so: hides its loader "/usr/lib/ld.so"`},
		{"a hard link of the program", "/srv/tool == /usr/bin/tool", "-/srv/tool", `hidden[0] /srv/tool: is the same file as the program`},
		{"the program through a mount", "/srv/usr bind /usr", "-/srv/usr/bin", `hidden[0] /usr/bin: hides the program`},
		{"the program is exposed", "", "-/usr +/usr/bin +/usr/lib", ""},
		{"a program that is not there", "", "-/usr/lib/gone", ""},

		{"exposed is missing", "", "-/srv/secret +/srv/secret/gone", `exposed[0] /srv/secret/gone: does not exist`},
		{"exposed beneath nothing", "", "-/srv/secret +/srv/work", `exposed[0] /srv/work: is beneath no hidden path`},
		{"exposed, nothing hidden", "", "+/srv/work", `exposed[0] /srv/work: is beneath no hidden path`},
		{"exposed is a neighbour by name", "/srv/secret2/", "-/srv/secret +/srv/secret2", `is beneath no hidden path`},
		{"exposed is hidden", "", "-/srv/secret +/srv/secret", `exposed[0] /srv/secret: is itself hidden, by hidden[0]`},
		{"exposed is hidden by another", "", "-/srv/secret -/srv/secret/open +/srv/secret/open", `is itself hidden, by hidden[1]`},
		{"exposed is a hard link of a hidden file", "/srv/secret/open/g == /etc/passwd", "-/srv/secret -/etc/passwd +/srv/secret/open/g", `is itself hidden, by hidden[1]`},
		{"exposed reveals", "", "-/srv -/srv/secret/deep +/srv/secret", `exposed[0] /srv/secret: would reveal what hidden[1] hides`},
		{"exposed reveals what is not there yet", "", "-/srv -/srv/secret/new +/srv/secret", `would reveal what hidden[1] hides`},
		{"exposed beneath two", "", "-/srv -/srv/secret +/srv/secret/open", ""},
		{"exposed twice", "", "-/srv/secret +/srv/secret/open +/srv/secret/open", ""},
		{"exposed in exposed", "", "-/srv +/srv/secret +/srv/secret/open", ""},
		{"exposed is a link in the hidden", "/srv/secret/l -> open", "-/srv/secret +/srv/secret/l", `goes through a symlink beneath the hidden path`},
		{"exposed through a link in the hidden", "/srv/secret/l -> .", "-/srv/secret +/srv/secret/l/open", `goes through a symlink beneath the hidden path`},
		{"exposed leads out", "/srv/secret/l -> /srv/work", "-/srv/secret +/srv/secret/l", `is beneath no hidden path`},
		{"exposed leads from one hidden into another", "/srv/secret/l -> /home/u/.ssh", "-/srv/secret -/home/u/.ssh +/srv/secret/l/id", `goes through a symlink beneath the hidden path`},
		{"exposed through a link above the hidden", "/l -> srv", "-/srv/secret +/l/secret/open", ""},
		{"exposed block device", "/srv/secret/sda block 8:0", "-/srv/secret +/srv/secret/sda", `is a block device`},
		{"exposed memory", "/srv/secret/m char 1:1", "-/srv/secret +/srv/secret/m", `reaches memory or a disk`},
		{"exposed directory of disks", "/dev/mapper/x block 252:0", "-/dev +/dev/mapper", `reaches memory or a disk`},
		{"exposed is a mount of what stands above", "/srv/secret/all bind /", "-/srv/secret/deep -/srv/secret +/srv/secret/all", `would reveal`},
		{"exposed holds a mount of what is hidden", "/srv/secret/open/m bind /srv/secret/deep", "-/srv/secret +/srv/secret/open", `would reveal what hidden[0] hides`},
		{"exposed holds a mount of what is exposed", "/srv/secret/a/\n/srv/secret/open/m bind /srv/secret/a", "-/srv/secret +/srv/secret/open +/srv/secret/a", ""},
		{"exposed is a mount of /dev", "/dev/null char 1:3\n/srv/secret/dev bind /dev", "-/srv/secret +/srv/secret/dev", `is the same directory as "/dev"`},

		{"temp directory", "", "-/tmp", `hidden[0] /tmp: hides the temp directory "/tmp"`},
		{"in the temp directory", "", "-/tmp/x", `hidden[0] /tmp/x: would freeze the temp directory "/tmp"`},
		{"in a mount of the temp directory", "/srv/t bind /tmp", "-/srv/t/x", `would freeze the temp directory "/tmp"`},
		{"beside the temp directory", "/tmp2/", "-/tmp2/x", ""},
		{"the root through a mount", "/srv/all bind /", "-/srv/all", `hidden[0] : the root directory shows "/srv/all" again`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := pathtest.New(base + tt.tree)
			_, err := plan.Make(policy(tt.policy), user(tree), tree)
			if tree.Open() != 0 {
				t.Errorf("%d nodes stay open", tree.Open())
			}
			if tt.want == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			var perr *rules.Error
			if !errors.As(err, &perr) {
				t.Fatalf("got %v, want a policy error", err)
			}
			if got := perr.Key + " " + perr.Path + ": " + perr.Msg; !strings.Contains(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestFrozenAllow(t *testing.T) {
	for _, hidden := range []string{"-/tmp", "-/tmp/x"} {
		tree := pathtest.New(base)
		p := policy(hidden)
		p.Frozen = rules.FrozenAllow
		pl, err := plan.Make(p, user(tree), tree)
		if err != nil {
			t.Fatal(err)
		}
		if hidden == "-/tmp/x" && !pl.Freezes("/tmp") {
			t.Error("/tmp is not said to be frozen")
		}
	}
}

// TestTempDir: it is $TMPDIR that counts, through links, and nothing if it is
// not there.
func TestTempDir(t *testing.T) {
	tests := []struct {
		temp string
		ok   bool
	}{
		{"/srv", false}, {"/srv/secret/deep", false}, {"/l", false}, {"/l/work", true}, {"/tmp", true}, {"/gone", true}, {"/", false}, {"", true},
	}
	for _, tt := range tests {
		tree := pathtest.New(base + "/l -> srv")
		l := user(tree)
		l.TempDir = tt.temp
		if _, err := plan.Make(policy("-/srv/secret"), l, tree); (err == nil) != tt.ok {
			t.Errorf("TMPDIR %q: %v", tt.temp, err)
		}
	}
}

func TestPlan(t *testing.T) {
	tests := []struct {
		name, tree, policy string
		hidden, frozen     string // an alias is marked "~"
		limits             string
	}{
		{name: "nothing", policy: ""},
		{name: "one", policy: "-/srv/secret", hidden: "/srv/secret", frozen: "/ /srv"},
		{name: "twice", policy: "-/srv/secret -/srv/secret", hidden: "/srv/secret", frozen: "/ /srv"},
		{name: "by a link", tree: "/l -> srv/secret", policy: "-/l -/srv/secret", hidden: "/srv/secret", frozen: "/ /srv"},
		{name: "through ..", tree: "/l -> srv/secret", policy: "-/l/../work", hidden: "/srv/work", frozen: "/ /srv"},
		{name: "nested", policy: "-/srv/secret/deep -/srv/secret", hidden: "/srv/secret/deep /srv/secret", frozen: "/ /srv"},
		{name: "missing", policy: "-/srv/new/thing", hidden: "/srv/new/thing", frozen: "/ /srv"},
		{name: "dangling", tree: "/srv/l -> /home/u/new", policy: "-/srv/l", hidden: "/home/u/new", frozen: "/ /home /home/u"},
		{name: "top", policy: "-/srv", hidden: "/srv", frozen: "/"},
		{
			name: "hard link", tree: "/srv/k == /srv/secret/deep/key", policy: "-/srv/secret/deep/key",
			hidden: "/srv/secret/deep/key", frozen: "/ /srv /srv/secret /srv/secret/deep", limits: "hard-link",
		},
		{name: "unsearchable", tree: "/srv/closed/ nosearch", policy: "-/srv/closed/x", hidden: "/srv/closed/x", frozen: "/ /srv /srv/closed", limits: "unresolved"},
		{name: "bind", tree: "/x bind /srv/secret", policy: "-/srv/secret", hidden: "/srv/secret ~/x", frozen: "/ /srv"},
		{name: "bind of the parent", tree: "/m/x bind /srv", policy: "-/srv/secret", hidden: "/srv/secret ~/m/x/secret", frozen: "/ /m /m/x /srv"},
		{name: "bind of the root", tree: "/m bind /", policy: "-/srv/secret", hidden: "/srv/secret ~/m/srv/secret", frozen: "/ /m /m/srv /srv"},
		{name: "bind of the missing", tree: "/m bind /srv", policy: "-/srv/new", hidden: "/srv/new ~/m/new", frozen: "/ /m /srv"},
		{name: "bind of a part of /sys", tree: "/sys/ mount sysfs 0:22\n/sys/x/f\n/mnt/x bind /sys/x", policy: "-/sys/x", hidden: "/sys/x ~/mnt/x", frozen: "/ /mnt /sys"},
		{name: "both named", tree: "/x bind /srv/secret", policy: "-/x -/srv/secret", hidden: "/x /srv/secret", frozen: "/ /srv"},
		{name: "within the hidden", tree: "/srv/secret/x bind /srv/secret/deep", policy: "-/srv/secret", hidden: "/srv/secret", frozen: "/ /srv"},
		{name: "a disk below, mounted twice", tree: "/srv/secret/d/ mount ext4 8:2\n/mnt/d bind /srv/secret/d", policy: "-/srv/secret", hidden: "/srv/secret ~/mnt/d", frozen: "/ /mnt /srv"},
		{
			name: "a chroot below", tree: "/proc/ mount proc 0:21\n/dev/ mount devtmpfs 0:5\n/srv/secret/proc bind /proc\n/srv/secret/dev bind /dev",
			policy: "-/srv/secret", hidden: "/srv/secret", frozen: "/ /dev /srv",
		},
		{
			name: "mount of the exposed", tree: "/work bind /srv/secret/open", policy: "-/srv/secret +/srv/secret/open",
			hidden: "/srv/secret", frozen: "/ /srv",
		},
		{
			name: "mount of the hidden, with the exposed in it", tree: "/m bind /srv/secret", policy: "-/srv/secret +/srv/secret/open",
			hidden: "/srv/secret ~/m", frozen: "/ /srv",
		},
		{name: "exposed", policy: "-/srv/secret +/srv/secret/open", hidden: "/srv/secret", frozen: "/ /srv"},
		{name: "devices", tree: "/dev/ mount devtmpfs 0:5", policy: "-/srv", hidden: "/srv", frozen: "/ /dev"},
		{name: "devices hidden", tree: "/dev/ mount devtmpfs 0:5", policy: "-/dev", hidden: "/dev", frozen: "/"},
		{name: "another devtmpfs", tree: "/c/dev/ mount devtmpfs 0:5", policy: "-/srv", hidden: "/srv ~/c/dev", frozen: "/ /c"},
		{
			name: "one node of devtmpfs", tree: "/dev/ mount devtmpfs 0:5\n/dev/null char 1:3\n/dev/sda block 8:0\n/etc/mask bind /dev/null\n/etc/disk bind /dev/sda",
			policy: "-/srv", hidden: "/srv ~/etc/disk", frozen: "/ /dev /etc",
		},
		{name: "second proc as a user", tree: "/c/proc/ mount proc 0:30", policy: "-/srv", hidden: "/srv", frozen: "/"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := pathtest.New(base + tt.tree)
			pl, err := plan.Make(policy(tt.policy), user(tree), tree)
			if err != nil {
				t.Fatal(err)
			}
			checkPlan(t, tree, tt.policy, pl, tt.hidden, tt.frozen, tt.limits)
		})
	}
}

// checkPlan compares a plan of the policy with what is wanted. "~" stands before a
// hidden path that the policy does not name.
func checkPlan(t *testing.T, tree *pathtest.Tree, text string, pl *plan.Plan, wantHidden, wantFrozen, wantLimits string) {
	t.Helper()
	named := map[string]bool{}
	for _, e := range policy(text).Hidden {
		loc, err := pathcheck.Resolve(tree, e.Path)
		if err != nil {
			t.Fatal(err)
		}
		named[loc.Path] = true
	}
	var hidden, limits []string
	for _, h := range pl.Hidden {
		if named[h.Path] {
			hidden = append(hidden, h.Path)
		} else {
			hidden = append(hidden, "~"+h.Path)
		}
		if h.Key == "" {
			t.Errorf("%q has no key", h.Path)
		}
	}
	for _, l := range pl.Limits {
		limits = append(limits, l.What)
		if !l.Limit || l.Why == "" {
			t.Errorf("limit %+v", l)
		}
	}
	for _, c := range []struct{ what, want, got string }{
		{"hidden", wantHidden, strings.Join(hidden, " ")},
		{"frozen", wantFrozen, strings.Join(pl.Frozen, " ")},
		{"limits", wantLimits, strings.Join(limits, " ")},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, c.got, c.want)
		}
	}
}

func TestCwdFrozen(t *testing.T) {
	tree := pathtest.New(base)
	for cwd, want := range map[string]string{
		"": "", "/": "", "/srv/work": "", "/srv/secret/open": "", "/srv/secret/open/x": "", "(unreachable)/x": "",
		"/srv":             `the current directory "/srv" is frozen: it cannot be listed and takes no new entries`,
		"/srv/secret":      `the current directory "/srv/secret" is hidden by "/srv/secret"`,
		"/srv/secret/deep": `the current directory "/srv/secret/deep" is hidden by "/srv/secret"`,
	} {
		l := user(tree)
		l.Cwd = cwd
		pl, err := plan.Make(policy("-/srv/secret +/srv/secret/open"), l, tree)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, pl.CwdFrozen()); diff != "" {
			t.Errorf("cwd %q (-want +got):\n%s", cwd, diff)
		}
	}
}

// TestPrepareChanged: a tree that changes while it is read is no fault of the policy.
func TestPrepareChanged(t *testing.T) {
	tree := pathtest.New(base + "/l -> /srv/secret/deep\n/srv/other/")
	below := false
	tree.BeforeOpen = func(path string) {
		below = below || path == "/srv/secret/deep"
		if below && path == "/" {
			below = false
			tree.Exchange("/srv/secret", "/srv/other")
		}
	}
	_, err := plan.Make(policy("-/l/.."), user(tree), tree)
	if !errors.Is(err, pathcheck.ErrChanged) {
		t.Errorf("got %v, want %v", err, pathcheck.ErrChanged)
	}
	var perr *rules.Error
	if errors.As(err, &perr) {
		t.Errorf("%v is said to be the policy's", err)
	}
}
