package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// short names the rights that grants are made of.
var short = map[plan.Access]string{
	plan.Full:                    "full",
	plan.Full | plan.IoctlDev:    "full+ioctl",
	plan.ReadOnly:                "read",
	plan.ReadFile | plan.Execute: "readfile",
	plan.Execute | plan.WriteFile | plan.ReadFile | plan.Truncate | plan.ResolveUnix: "file",
	plan.ReadFile | plan.WriteFile | plan.IoctlDev:                                   "device",
}

// walk plans and walks, and returns the grants as "path=rights" in order of
// the path. It holds what every walk promises.
func walk(t *testing.T, tree *pathtest.Tree, p *rules.Policy, l plan.Launch) ([]string, plan.Tally) {
	t.Helper()
	pl, err := plan.Make(p, l, tree)
	if err != nil {
		t.Fatal(err)
	}
	var rec plan.Recorder
	tally, err := pl.Walk(tree, &rec)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range rec.Grants {
		name, ok := short[g.Access]
		if !ok {
			name = g.Access.String()
		}
		if g.Access&(plan.MakeChar|plan.MakeBlock) != 0 {
			t.Errorf("%s may make devices", g.Path)
		}
		got = append(got, g.Path+"="+name)
	}
	if tally.Grants != len(rec.Grants) {
		t.Errorf("%d grants, but %d are counted", len(rec.Grants), tally.Grants)
	}
	checkOpen(t, tree)
	slices.Sort(got)
	return got, tally
}

func checkOpen(t *testing.T, tree *pathtest.Tree) {
	t.Helper()
	if tree.Open() != 0 {
		t.Errorf("%d nodes stay open", tree.Open())
	}
	const kept = 17 // what a Kept may hold, "/" included
	if n := tree.MaxOpen(); n > 8+kept {
		t.Errorf("%d nodes were open at once", n)
	}
}

func TestWalk(t *testing.T) {
	const procSys = "/proc/ mount proc 0:21\n/sys/ mount sysfs 0:22\n"
	const devices = `
		/dev/ mount devtmpfs 0:5
		/dev/null char 1:3
		/dev/tty char 5:0
		/dev/sda block 8:0
		/dev/mem char 1:1
		/dev/pts/0 char 136:0
		/dev/shm/
		/dev/fd -> /proc/self/fd
	`
	const usual = "/etc=full /home=full /tmp=full /usr=full"
	tests := []struct {
		name, tree, policy string
		root               bool
		want               string
	}{
		{name: "nothing hidden", want: "/=full+ioctl"},
		{name: "a directory", policy: "-/srv/secret", want: usual + " /srv/work=full"},
		{name: "a file", policy: "-/srv/secret/deep/key", want: usual + " /srv/secret/open=full /srv/work=full"},
		{name: "top", policy: "-/srv", want: usual},
		{name: "two", policy: "-/srv/secret -/home/u/.ssh", want: "/etc=full /home/u/notes=file /srv/work=full /tmp=full /usr=full"},
		{name: "nested", policy: "-/srv -/srv/secret/deep", want: usual},
		{name: "not there yet", policy: "-/srv/new", want: usual + " /srv/secret=full /srv/work=full"},
		{name: "not there yet, deep", policy: "-/srv/new/a/b", want: usual + " /srv/secret=full /srv/work=full"},
		{name: "by a link", tree: "/l -> srv/secret", policy: "-/l", want: usual + " /srv/work=full"},
		{name: "exposed", policy: "-/srv/secret +/srv/secret/open", want: usual + " /srv/secret/open=full /srv/work=full"},
		{name: "exposed file", policy: "-/srv/secret +/srv/secret/open/f", want: usual + " /srv/secret/open/f=file /srv/work=full"},
		{name: "exposed beneath two", policy: "-/srv -/srv/secret +/srv/secret/open", want: usual + " /srv/secret/open=full"},
		{name: "exposed in exposed", policy: "-/srv +/srv/secret +/srv/secret/open", want: usual + " /srv/secret=full /srv/secret/open=full"},
		{name: "hidden elsewhere too", policy: "-/srv/secret -/home/u +/srv/secret/open +/home/u/.ssh", want: "/etc=full /home/u/.ssh=full /srv/secret/open=full /srv/work=full /tmp=full /usr=full"},

		{name: "kinds", tree: "/srv/s socket\n/srv/p fifo\n/srv/l -> work\n/srv/b block 8:0\n/srv/c char 5:0\n/srv/m char 1:1\n/srv/f", policy: "-/srv/secret", want: usual + " /srv/c=device /srv/f=file /srv/p=file /srv/s=file /srv/work=full"},
		{name: "hard link of the hidden", tree: "/srv/k == /srv/secret/deep/key\n/srv/work/k == /srv/secret/deep/key", policy: "-/srv/secret/deep/key", want: usual + " /srv/secret/open=full /srv/work=full"},
		{name: "bind", tree: "/x bind /srv/secret", policy: "-/srv/secret", want: usual + " /srv/work=full"},
		{name: "bind in a granted directory", tree: "/home/x bind /srv/secret", policy: "-/srv/secret", want: "/etc=full /home/u=full /srv/work=full /tmp=full /usr=full"},
		{name: "bind of the parent", tree: "/x bind /srv", policy: "-/srv/secret", want: usual + " /srv/work=full /x/work=full"},
		{name: "bind of the root", tree: "/x bind /", policy: "-/srv/secret", want: usual + " /srv/work=full /x/etc=full /x/home=full /x/srv/work=full /x/tmp=full /x/usr=full /x/x=full"},
		{name: "bind of the exposed", tree: "/x bind /srv/secret/open", policy: "-/srv/secret +/srv/secret/open", want: usual + " /srv/secret/open=full /srv/work=full /x=full"},
		{name: "device mounted twice", tree: "/m/ mount ext4 8:2\n/m/s/k\n/m/o/\n/n bind /m", policy: "-/m/s", want: usual + " /m/o=full /n/o=full /srv=full"},
		{name: "a mount beside", tree: "/srv/mnt/ mount ext4 8:2", policy: "-/srv/secret", want: usual + " /srv/mnt=full /srv/work=full"},

		{name: "proc and sys as a user", tree: procSys, policy: "-/srv", want: "/etc=full /home=full /proc=full /sys=full /tmp=full /usr=full"},
		{name: "proc and sys as root", tree: procSys, policy: "-/srv", root: true, want: "/etc=full /home=full /proc=read /sys=read /tmp=full /usr=full"},
		{name: "in sys as root", tree: procSys + "/sys/fs/x/\n/sys/a\n/sys/fs/b", policy: "-/sys/fs/x", root: true, want: "/etc=full /home=full /proc=read /srv=full /sys/a=readfile /sys/fs/b=readfile /tmp=full /usr=full"},
		{name: "exposed in sys as root", tree: procSys + "/sys/fs/x/", policy: "-/sys +/sys/fs/x", root: true, want: "/etc=full /home=full /proc=read /srv=full /sys/fs/x=read /tmp=full /usr=full"},
		{name: "second proc as root", tree: procSys + "/c/proc/ mount proc 0:30\n/c/f", policy: "-/srv", root: true, want: "/c/f=file /etc=full /home=full /proc=read /sys=read /tmp=full /usr=full"},
		{name: "bind of proc as root", tree: procSys + "/c/proc bind /proc\n/c/f", policy: "-/srv", root: true, want: "/c/f=file /etc=full /home=full /proc=read /sys=read /tmp=full /usr=full"},
		{name: "a mountpoint's directory shown again", tree: "/srv/d/ mount ext4 8:2\n/srv/d/s/\n/srv/d/o/\n/x bind /srv", policy: "-/srv/d/s", want: usual + " /srv/d/o=full /srv/secret=full /srv/work=full /x/d=full /x/secret=full /x/work=full"},
		{name: "second proc as a user", tree: procSys + "/c/proc/ mount proc 0:30\n/c/f", policy: "-/srv", want: "/c=full /etc=full /home=full /proc=full /sys=full /tmp=full /usr=full"},

		{name: "devices", tree: devices, policy: "-/srv", want: "/dev/null=device /dev/pts=full+ioctl /dev/shm=full+ioctl /dev/tty=device /etc=full /home=full /tmp=full /usr=full"},
		{name: "devices as root", tree: devices, policy: "-/srv", root: true, want: "/dev/null=device /dev/pts=full+ioctl /dev/shm=full+ioctl /dev/tty=device /etc=full /home=full /tmp=full /usr=full"},
		{name: "devices hidden", tree: devices, policy: "-/dev", want: "/etc=full /home=full /srv=full /tmp=full /usr=full"},
		{name: "a device hidden", tree: devices, policy: "-/dev/tty", want: "/dev/null=device /dev/pts=full+ioctl /dev/shm=full+ioctl /etc=full /home=full /srv=full /tmp=full /usr=full"},
		{name: "devices hidden, some exposed", tree: devices, policy: "-/dev +/dev/null +/dev/pts", want: "/dev/null=device /dev/pts=full+ioctl /etc=full /home=full /srv=full /tmp=full /usr=full"},
		{name: "in shm", tree: devices + "/dev/shm/x/\n/dev/shm/y", policy: "-/dev/shm/x", want: "/dev/null=device /dev/pts=full+ioctl /dev/shm/y=file /dev/tty=device /etc=full /home=full /srv=full /tmp=full /usr=full"},
		// A container's /dev is a tmpfs: nothing but the inode tells of the mount.
		{name: "bind of dev", tree: "/dev/ mount tmpfs 0:6\n/dev/sda block 8:0\n/dev/null char 1:3\n/xdev bind /dev", policy: "-/srv", want: "/dev/null=device /etc=full /home=full /tmp=full /usr=full"},
		{name: "second devtmpfs", tree: devices + "/c/dev bind /dev\n/c/f", policy: "-/srv", want: "/c/f=file /dev/null=device /dev/pts=full+ioctl /dev/shm=full+ioctl /dev/tty=device /etc=full /home=full /tmp=full /usr=full"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := pathtest.New(base + tt.tree)
			l := user(tree)
			if tt.root {
				l = root(tree)
			}
			got, tally := walk(t, tree, policy(tt.policy), l)
			want := strings.Fields(tt.want)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tally.Unopened != 0 || tally.Unlisted != nil {
				t.Errorf("tally is %+v", tally)
			}
		})
	}
}

// TestWalkNested: in a nested launch "/" and other frozen directories cannot
// be listed. What can be named is granted.
func TestWalkNested(t *testing.T) {
	tree := pathtest.New(base + `
		/ nolist
		/opt/pkg/bin/x
		/odd/bin/y
		/unknown/
		/link -> odd
		/mnt.d/ mount ext4 8:2
		/dev/ mount devtmpfs 0:5
		/dev/ nolist
		/dev/null char 1:3
		/dev/sda block 8:0
		/dev/strange char 60:0
	`)
	l := user(tree)
	l.Names = []string{
		"/odd/bin", "/link/bin", "relative", "", ".", "..", "/", "//", "/.", "/..", "/../etc", "/dev/..", "/dev/.", "/./srv",
		"/gone/bin", "/nul\x00byte/bin", "/" + strings.Repeat("long", 100), "/srv/secret/deep",
	}
	got, tally := walk(t, tree, policy("-/srv/secret"), l)
	want := strings.Fields("/dev/null=device /etc=full /home=full /mnt.d=full /odd=full /opt=full /srv/work=full /tmp=full /usr=full")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/", "/dev"}, tally.Unlisted); diff != "" {
		t.Errorf("unlisted (-want +got):\n%s", diff)
	}
	if tally.Unopened != 1 { // the name that is too long
		t.Errorf("%d entries could not be opened", tally.Unopened)
	}
}

// TestWalkUnopened: what cannot be opened is left out, and counted unless it vanished.
func TestWalkUnopened(t *testing.T) {
	tree := pathtest.New(base + "/srv/dead/ fail\n/srv/gone\n/srv/gone2/")
	pl, err := plan.Make(policy("-/srv/secret"), user(tree), tree)
	if err != nil {
		t.Fatal(err)
	}
	tree.BeforeOpen = func(path string) {
		if strings.HasPrefix(path, "/srv/gone") {
			tree.Remove(path)
		}
	}
	var rec plan.Recorder
	tally, err := pl.Walk(tree, &rec)
	if err != nil {
		t.Fatal(err)
	}
	if tally.Unopened != 1 {
		t.Errorf("%d unopened, want 1", tally.Unopened)
	}
	var got []string
	for _, g := range rec.Grants {
		got = append(got, g.Path)
	}
	if diff := cmp.Diff(strings.Fields("/etc /home /tmp /usr /srv/work"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	checkOpen(t, tree)
}

// TestWalkLarge: depth and width cost no nodes.
func TestWalkLarge(t *testing.T) {
	deep := "/d" + strings.Repeat("/d", 199)
	var b strings.Builder
	b.WriteString(base + deep + "/secret/\n" + deep + "/beside\n/dev/a/b/c/d/e/f/g/h/i/j/null char 1:3\n")
	for i := range 10000 {
		fmt.Fprintf(&b, "/srv/n%05d/\n", i)
	}
	x := pathtest.New(b.String())
	got, _ := walk(t, x, policy("-/srv/secret -"+deep+"/secret"), user(x))
	n := 0
	for _, g := range got {
		if strings.HasPrefix(g, "/srv/n") {
			n++
		}
	}
	if n != 10000 || !slices.Contains(got, deep+"/beside=file") {
		t.Errorf("%d of 10000 siblings are granted", n)
	}
}

// BenchmarkManyHidden plans and walks with 4,000 hidden paths, each in a directory
// of its own, and 40 mounts of their file system. The time grows with their number, not with its square.
func BenchmarkManyHidden(b *testing.B) {
	var text, hidden strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&text, "/srv/d%d/e/h/\n", i)
		fmt.Fprintf(&hidden, "-/srv/d%d/e/h ", i)
	}
	for i := range 40 {
		fmt.Fprintf(&text, "/m%d/ bind /usr\n", i)
	}
	tree, p := pathtest.New(base+text.String()), policy(hidden.String())
	for b.Loop() {
		kept := pathcheck.Keep(tree)
		pl, err := plan.Make(p, user(tree), kept)
		kept.Release()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := pl.Walk(tree, new(plan.Recorder)); err != nil {
			b.Fatal(err)
		}
	}
}
