package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// TestKernelMounts: what root must not reach anywhere but in /proc and /sys.
func TestKernelMounts(t *testing.T) {
	const more = `
		/proc/ mount proc 0:21
		/sys/ mount sysfs 0:22
		/sys/fs/cgroup/ mount cgroup2 0:23
		/c/proc/ mount proc 0:30
		/mnt/sys bind /sys
		/mnt/sys/fs/cgroup bind /sys/fs/cgroup
		/dev/cg bind /sys/fs/cgroup
		/under/proc/ mount proc 0:31
		/under/ mount tmpfs 0:32
	`
	tree := pathtest.New(base + more)
	pl, err := plan.Make(policy("-/srv/secret"), root(tree), tree)
	if err != nil {
		t.Fatal(err)
	}
	// /mnt/sys is the inode of /sys: hiding it would take /sys away.
	checkPlan(t, tree, "-/srv/secret", pl, "/srv/secret ~/c/proc ~/mnt/sys/fs/cgroup ~/dev/cg", "/ /c /dev /mnt /srv", "")
	pl, err = plan.Make(policy("-/srv/secret"), user(tree), tree)
	if err != nil {
		t.Fatal(err)
	}
	checkPlan(t, tree, "-/srv/secret", pl, "/srv/secret", "/ /dev /srv", "")
}

// TestSameInode: an NFS client's mount table does not say which directory of
// the server a bind mount shows; the inode does.
func TestSameInode(t *testing.T) {
	tree := pathtest.New(base + "/n/ mount nfs 0:50\n/n/a/secret/f\n/n/b/\n/x bind /n/a\n/y bind /n/a/secret\n/z bind /n/b")
	l := user(tree)
	for i := range l.Mounts {
		if l.Mounts[i].FSType == "nfs" {
			l.Mounts[i].Root = "/"
		}
	}
	pl, err := plan.Make(policy("-/n/a/secret"), l, tree)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, h := range pl.Hidden {
		got[h.Path] = true
	}
	for _, want := range []string{"/n/a/secret", "/x/secret", "/y"} {
		if !got[want] {
			t.Errorf("%q is not hidden: %v", want, got)
		}
	}
}

func TestOverlays(t *testing.T) {
	tests := []struct {
		name, policy  string
		layers        []string
		hidden, limit string
	}{
		{"hidden in a layer", "-/base/secret", []string{"/up", "/base"}, "/base/secret ~/merged/secret", ""},
		{"layer in the hidden", "-/base", []string{"/up", "/base/l"}, "/base ~/merged", ""},
		{"the layer itself", "-/base", []string{"/up", "/base"}, "/base ~/merged", ""},
		{"by a link", "-/base/secret", []string{"/up", "/short"}, "/base/secret ~/merged/secret", ""},
		{"relative and gone", "-/base/secret", []string{"base", "/gone"}, "/base/secret", "overlay"},
		{"gone, in the hidden", "-/merged", []string{"/gone"}, "/merged", ""},
		{"elsewhere", "-/srv/secret", []string{"/up", "/base"}, "/srv/secret", ""},
		{"layer on a disk in the hidden", "-/base", []string{"/up", "/base/disk"}, "/base ~/merged", ""},
		{"exposed layer", "-/base +/base/l", []string{"/up", "/base/l"}, "/base", ""},
		{"hidden in the overlay", "-/merged/secret", []string{"/up", "/base"}, "/merged/secret", "overlay overlay"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := pathtest.New(base + "/base/secret/\n/base/l/\n/up/\n/short -> base\n/merged/ mount overlay 0:40\n/merged/secret/\n/base/disk/ mount ext4 8:2")
			l := user(tree)
			l.Mounts[1].Layers = tt.layers
			pl, err := plan.Make(policy(tt.policy), l, tree)
			if err != nil {
				t.Fatal(err)
			}
			checkPlan(t, tree, tt.policy, pl, tt.hidden, strings.Join(pl.Frozen, " "), tt.limit)
		})
	}
}

// TestAliasChanged: a mount that the table shows is not there any more, and what
// stands in its place may lead anywhere.
func TestAliasChanged(t *testing.T) {
	tree := pathtest.New(base + "/m -> home")
	l := user(tree)
	l.Mounts = pathtest.New(base + "/m bind /srv").Mounts()
	if _, err := plan.Make(policy("-/srv/secret"), l, tree); !errors.Is(err, pathcheck.ErrChanged) {
		t.Errorf("got %v, want %v", err, pathcheck.ErrChanged)
	}
}

// TestUnseenAlias: without a mount table, a directory above one hidden path that is
// itself hidden by another name cannot be granted entry by entry.
func TestUnseenAlias(t *testing.T) {
	tree := pathtest.New("/a/x/key\n/a/f\n/b bind /a")
	l := plan.Launch{Cwd: "/", EUID: 1000}
	var perr *rules.Error
	_, err := plan.Make(policy("-/a -/b/x"), l, tree)
	if !errors.As(err, &perr) || perr.Key != "hidden[0]" || !strings.Contains(perr.Msg, `"/b"`) {
		t.Errorf("got %v", err)
	}
	if _, err := plan.Make(policy("-/a -/b"), l, tree); err != nil {
		t.Errorf("both hidden: %v", err)
	}
}

func TestUnseenRoot(t *testing.T) {
	tree := pathtest.New(base)
	l := user(tree)
	l.Mounts = pathcheck.Mounts{{ID: 5, Parent: 3, Dev: "0:9", Root: "/", Point: "/proc", FSType: "proc"}}
	pl, err := plan.Make(policy("-/srv/secret -/etc/passwd"), l, tree)
	if err != nil {
		t.Fatal(err)
	}
	checkPlan(t, tree, "-/srv/secret -/etc/passwd", pl, "/srv/secret /etc/passwd", "/ /etc /srv", "mount-alias")
}

func TestCheckMounts(t *testing.T) {
	tree := pathtest.New(base)
	pl, err := plan.Make(policy("-/srv/secret +/srv/secret/open"), user(tree), tree)
	if err != nil {
		t.Fatal(err)
	}
	for mount, ok := range map[string]bool{
		"/x bind /srv/work":                   true,
		"/x bind /srv/secret/open":            true,
		"/srv/secret/deep bind /srv/secret":   true,
		"/x bind /srv/secret":                 false,
		"/x bind /srv":                        false,
		"/srv/secret/open/x bind /srv/secret": false,
	} {
		later := pathtest.New(base + mount)
		if err := pl.CheckMounts(later.Mounts()); (err == nil) != ok {
			t.Errorf("%s: %v", mount, err)
		}
	}
}

// TestCheckMountsOverlay: an overlay that came up may show anything that is hidden.
func TestCheckMountsOverlay(t *testing.T) {
	tree := pathtest.New(base + "/merged/ mount overlay 0:40")
	mounts := tree.Mounts()
	mounts[1].Layers = []string{"/up", "/base"}
	before := user(tree)
	before.Mounts = mounts[:1]
	pl, err := plan.Make(policy("-/srv/secret"), before, tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := pl.CheckMounts(mounts); err == nil || !strings.Contains(err.Error(), `an overlay came up at "/merged"`) {
		t.Errorf("an overlay that came up: %v", err)
	}
	before.Mounts = mounts
	if pl, err = plan.Make(policy("-/srv/secret"), before, tree); err != nil {
		t.Fatal(err)
	}
	if err := pl.CheckMounts(mounts); err != nil {
		t.Errorf("an overlay that was there: %v", err)
	}
	nothing, err := plan.Make(policy(""), user(pathtest.New(base)), pathtest.New(base))
	if err != nil {
		t.Fatal(err)
	}
	if err := nothing.CheckMounts(mounts); err != nil {
		t.Errorf("nothing is hidden: %v", err)
	}
}
