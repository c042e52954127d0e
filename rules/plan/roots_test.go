package plan_test

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// A stage is a policy of scope workspace and the launch that it is for.
type stage struct {
	p *rules.Policy
	l plan.Launch
}

// scoped makes a stage on the tree, whose workspace is /srv/work and whose
// home is /home/u.
func scoped(tree *pathtest.Tree, hiddenAndExposed string) stage {
	p := policy(hiddenAndExposed)
	p.Scope = rules.ScopeWorkspace
	p.Toolchain.Mode = rules.ToolchainNone
	l := user(tree)
	l.Homes, l.Shims = []string{"/home/u"}, []string{"/opt/shims/tool"}
	l.Env = []string{"HOME=/home/u", "TMPDIR=/tmp"}
	return stage{p, l}
}

func (s stage) writable(paths ...string) stage {
	for _, path := range paths {
		s.p.Writable = append(s.p.Writable, rules.Entry{Path: path, Key: "writable[0]"})
	}
	return s
}

func roots(pl *plan.Plan) string {
	var out []string
	for _, r := range pl.Roots {
		text := r.Path
		if !r.Listed {
			text = "(" + text + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

const devices = `
	/dev/ mount devtmpfs 0:5
	/dev/null char 1:3
	/dev/zero char 1:5
	/dev/full char 1:7
	/dev/tty char 5:0
	/dev/ptmx char 5:2
	/dev/kvm char 10:232
	/dev/sda block 8:0
	/dev/mem char 1:1
	/dev/dri/card0 char 226:0
	/dev/disk/a block 8:1
	/dev/pts/0 char 136:0
	/dev/shm/
`

func init() {
	const connect = plan.ResolveUnix
	short[plan.ReadOnly|connect] = "read+connect"
	short[plan.ReadFile|plan.Execute|connect] = "readfile+connect"
	short[plan.ReadFile] = "readdev"
	short[plan.ReadFile|plan.WriteFile] = "rwdev"
	short[plan.ReadFile|plan.WriteFile|plan.ReadDir|plan.IoctlDev] = "ptys"
	short[plan.ReadOnly|plan.WriteFile|plan.Truncate] = "proc"
}

func TestWalkWorkspace(t *testing.T) {
	const usual = "/etc=read+connect /home=read+connect /tmp=read+connect /usr=read+connect"
	const nodes = "/dev/null=rwdev /dev/zero=rwdev /dev/full=rwdev /dev/tty=device /dev/ptmx=device /dev/pts=ptys /dev/shm=full"
	const nodesToo = nodes + " /dev/kvm=readdev /dev/dri=read+connect"
	tests := []struct {
		name, tree, policy string
		writable           string
		root, allow        bool
		tools              bool
		want               string
	}{
		{name: "nothing hidden", want: "/=read+connect /srv/work=full"},
		{name: "devices", tree: devices, want: "/=read+connect /srv/work=full " + nodes},
		{name: "devices that are links or something else", tree: "/dev/null\n/dev/ptmx -> pts/ptmx\n/dev/shm -> /tmp\n/dev/pts/ptmx char 5:2", want: "/=read+connect /srv/work=full /dev/pts=ptys"},
		{name: "writable", writable: "/etc/passwd /home/u/.ssh", want: "/=read+connect /srv/work=full /etc/passwd=file /home/u/.ssh=full"},
		{name: "writable twice", writable: "/srv/work /etc", want: "/=read+connect /srv/work=full /etc=full"},
		{name: "writable in writable", writable: "/srv", want: "/=read+connect /srv/work=full /srv=full"},
		{name: "writable by a link", tree: "/l -> etc", writable: "/l", want: "/=read+connect /srv/work=full /etc=full"},
		{name: "writable device", tree: devices, writable: "/dev/kvm /dev/dri", want: "/=read+connect /srv/work=full /dev/kvm=device /dev/dri=full+ioctl " + nodes},
		{name: "toolchain", tools: true, tree: "/home/u/.cache/\n/home/u/go/pkg/\n/home/u/.npm/", want: "/=read+connect /srv/work=full /tmp=full /home/u/.cache=full /home/u/go/pkg=full /home/u/.npm=full"},

		{name: "hidden elsewhere", policy: "-/home/u", want: "/etc=read+connect /srv=read+connect /srv/work=full /tmp=read+connect /usr=read+connect"},
		{name: "hidden beside", policy: "-/srv/secret", want: usual + " /srv/work=full"},
		{name: "hidden, with devices", tree: devices, policy: "-/srv/secret", want: usual + " /srv/work=full " + nodesToo},
		{name: "hidden, a device writable", tree: devices, policy: "-/srv/secret", writable: "/dev/kvm", want: usual + " /srv/work=full /dev/kvm=device /dev/dri=read+connect " + nodes},
		{name: "a device hidden", tree: "/dev/null char 1:3\n/dev/tty char 5:0", policy: "-/dev/tty", want: usual + " /srv=read+connect /srv/work=full /dev/null=rwdev"},
		{name: "devices hidden", tree: devices, policy: "-/dev", want: usual + " /srv=read+connect /srv/work=full"},
		{name: "hidden in the workspace", allow: true, policy: "-/srv/work/sub/key", tree: "/srv/work/sub/key\n/srv/work/sub/f\n/srv/work/src/", want: usual + " /srv/secret=read+connect /srv/work/main.c=file /srv/work/src=full /srv/work/sub/f=file"},
		{name: "not there yet in the workspace", allow: true, policy: "-/srv/work/new", want: usual + " /srv/secret=read+connect /srv/work/main.c=file"},
		{name: "hidden in a writable root in the frozen workspace", allow: true, policy: "-/srv/work/a/key", tree: "/srv/work/a/b/\n/srv/work/a/key", writable: "/srv/work/a", want: usual + " /srv/secret=read+connect /srv/work/main.c=file /srv/work/a/b=full"},
		{name: "kinds in a frozen workspace", allow: true, policy: "-/srv/work/new", tree: "/srv/work/s socket\n/srv/work/p fifo\n/srv/work/l -> main.c\n/srv/work/b block 8:0\n/srv/work/c char 5:0", want: usual + " /srv/secret=read+connect /srv/work/main.c=file /srv/work/s=file /srv/work/p=file /srv/work/c=rwdev"},
		{name: "hidden in a cache", tools: true, tree: "/home/u/.cache/hf/token\n/home/u/.cache/hf/hub/\n/home/u/.cache/go/", policy: "-/home/u/.cache/hf/token", want: "/etc=read+connect /srv=read+connect /srv/work=full /tmp=full /usr=read+connect /home/u/.ssh=read+connect /home/u/notes=readfile+connect /home/u/.cache/go=full /home/u/.cache/hf/hub=full"},
		{name: "the cache hidden", tools: true, tree: "/home/u/.cache/x/", policy: "-/home/u/.cache", want: "/etc=read+connect /srv=read+connect /srv/work=full /tmp=full /usr=read+connect /home/u/.ssh=read+connect /home/u/notes=readfile+connect"},
		{name: "a writable root hidden", policy: "-/home/u/.ssh", writable: "/home/u/.ssh", want: "/etc=read+connect /srv=read+connect /srv/work=full /tmp=read+connect /usr=read+connect /home/u/notes=readfile+connect"},
		{name: "a hard link of something hidden", tree: "/home/u/k == /srv/secret/deep/key", policy: "-/srv/secret/deep/key", writable: "/home/u/k", want: usual + " /srv/secret/open=read+connect /srv/work=full"},
		{name: "exposed is writable", policy: "-/srv/secret +/srv/secret/open", want: usual + " /srv/work=full /srv/secret/open=full"},
		{name: "workspace is exposed", policy: "-/srv +/srv/work", want: usual + " /srv/work=full /srv/work=full"},
		{name: "a neighbour by name", tree: "/srv/work-evil/", policy: "-/srv/secret", want: usual + " /srv/work=full /srv/work-evil=read+connect"},
		{name: "bind of the workspace", tree: "/x bind /srv/work", policy: "-/srv/secret", want: usual + " /srv/work=full /x=read+connect"},
		{name: "bind of what is hidden, in the workspace", allow: true, tree: "/srv/work/m bind /srv/secret", policy: "-/srv/secret", want: usual + " /srv/work/main.c=file"},
		{name: "bind of what stands above, in the workspace", allow: true, tree: "/srv/work/m bind /srv", policy: "-/srv/secret", want: usual + " /srv/work/main.c=file /srv/work/m/work/m=full /srv/work/m/work/main.c=file"},

		{name: "proc is read-only", tree: "/proc/ mount proc 0:21", policy: "-/srv/secret", want: usual + " /srv/work=full /proc=read+connect"},
		{name: "proc and sys of root", root: true, tree: "/proc/ mount proc 0:21\n/sys/ mount sysfs 0:22", policy: "-/srv/secret", want: usual + " /srv/work=full /proc=read /sys=read"},
		{name: "proc writable", tree: "/proc/ mount proc 0:21", writable: "/proc", want: "/=read+connect /srv/work=full /proc=proc"},
		{name: "proc writable, something hidden", tree: "/proc/ mount proc 0:21", policy: "-/srv/secret", writable: "/proc", want: usual + " /srv/work=full /proc=proc"},
		{name: "a second proc in the workspace, as a user", tree: "/srv/work/proc/ mount proc 0:30", want: "/=read+connect /srv/work=full"},
		{name: "a second proc in the workspace, as root", root: true, allow: true, tree: "/srv/work/proc/ mount proc 0:30", want: usual + " /srv/secret=read+connect /srv/work/main.c=file"},
		{name: "a second proc elsewhere, as root", root: true, tree: "/c/proc/ mount proc 0:30", want: "/=read+connect /srv/work=full"},
		{name: "proc itself in the workspace, as root", root: true, allow: true, tree: "/proc/ mount proc 0:21\n/srv/work/proc bind /proc", want: usual + " /proc=read /srv/secret=read+connect /srv/work/main.c=file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := pathtest.New(base + tt.tree)
			s := scoped(tree, tt.policy).writable(strings.Fields(tt.writable)...)
			if tt.root {
				s.l.EUID = 0
			}
			if tt.allow {
				s.p.Frozen = rules.FrozenAllow
			}
			if tt.tools {
				s.p.Toolchain.Mode = rules.ToolchainUsual
			}
			got, _ := walk(t, tree, s.p, s.l)
			want := strings.Fields(tt.want)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRootErrors(t *testing.T) {
	tests := []struct {
		name, tree, policy  string
		workspace, writable string
		root, noMounts      bool   // noMounts: the mount table is not known
		want                string // "" for none
	}{
		{name: "nothing wrong"},
		{name: "workspace is the root", workspace: "/", want: `workspace /: is /`},
		{name: "workspace is home", workspace: "/home/u", want: `workspace /home/u: is the home directory`},
		{name: "workspace is home by a link", tree: "/l -> home/u", workspace: "/l", want: `workspace /l: is the home directory`},
		{name: "workspace is above home", workspace: "/home", want: `workspace /home: is above the home directory "/home/u"`},
		{name: "workspace is home by a mount", tree: "/m bind /home/u", workspace: "/m", want: `workspace /m: is the home directory`},
		{name: "workspace holds a mount of home", tree: "/m/h bind /home", workspace: "/m", want: `workspace /m: is above the home directory "/m/h/u"`},
		{name: "workspace holds a mount of the root", tree: "/m/all bind /", workspace: "/m", want: `workspace /m: is above`},
		{name: "workspace is home by a mount that is not known", noMounts: true, tree: "/m bind /home/u", workspace: "/m", want: `workspace /m: is the home directory under another path`},
		{name: "workspace is above home by a mount that is not known", noMounts: true, tree: "/m bind /home", workspace: "/m", want: `workspace /m: is above the home directory under another path`},
		{name: "workspace in home", workspace: "/home/u/.ssh"},
		{name: "workspace above the shim", tree: "/opt/shims/tool", workspace: "/opt", want: `workspace /opt: is above the shim`},
		{name: "workspace is the shim's directory", tree: "/opt/shims/tool", workspace: "/opt/shims", want: `workspace /opt/shims: is above the shim`},
		{name: "beside the shim", tree: "/opt/shims/tool\n/opt/shims/ws/", workspace: "/opt/shims/ws"},
		{name: "workspace is missing", workspace: "/gone", want: `workspace /gone: does not exist`},
		{name: "workspace is a file", workspace: "/etc/passwd", want: `workspace /etc/passwd: is not a directory`},
		{name: "workspace through a file", workspace: "/etc/passwd/x", want: `workspace /etc/passwd/x:`},
		{name: "workspace may not be looked up", tree: "/closed/ nosearch", workspace: "/closed/x", want: `workspace /closed/x: may not be looked up`},

		{name: "writable is the shim", tree: "/opt/shims/tool", writable: "/opt/shims/tool", want: `writable[0] /opt/shims/tool: is the shim`},
		{name: "writable is the root", writable: "/", want: `writable[0] /: is /`},
		{name: "writable is above home", writable: "/home", want: `writable[0] /home: is above the home directory`},
		{name: "writable is missing", writable: "/gone", want: `writable[0] /gone: does not exist`},
		{name: "writable is a loop", tree: "/l -> l", writable: "/l", want: `writable[0] /l: too many levels`},
		{name: "writable is a block device", tree: devices, writable: "/dev/sda", want: `writable[0] /dev/sda: is a block device`},
		{name: "writable is memory", tree: devices, writable: "/dev/mem", want: `reaches memory or a disk`},
		{name: "writable holds a disk", tree: devices, writable: "/dev/disk", want: `reaches memory or a disk`},
		{name: "writable is dev", tree: devices, writable: "/dev", want: `reaches memory or a disk`},
		{name: "writable is another dev", tree: "/c/dev/ mount devtmpfs 0:5\n/c/dev/sda block 8:0", writable: "/c/dev", want: `reaches memory or a disk`},
		{name: "writable in proc", tree: "/proc/ mount proc 0:21\n/proc/1/comm", writable: "/proc/1", want: `is in /proc`},
		{name: "proc as root", root: true, tree: "/proc/ mount proc 0:21", writable: "/proc", want: `acts on the kernel`},
		{name: "sys as root", root: true, tree: "/sys/ mount sysfs 0:22", writable: "/sys", want: `acts on the kernel`},
		{name: "cgroup elsewhere as root", root: true, tree: "/cg/ mount cgroup2 0:23\n/cg/x/", writable: "/cg/x", want: `acts on the kernel`},
		{name: "cgroup elsewhere as a user", tree: "/cg/ mount cgroup2 0:23\n/cg/x/", writable: "/cg/x"},

		{name: "link in the workspace", tree: "/srv/work/l -> /etc", writable: "/srv/work/l", want: `goes through the symlink "/srv/work/l" in "/srv/work"`},
		{name: "link on the way, in the workspace", tree: "/srv/work/l -> /\n/srv/x/", writable: "/srv/work/l/srv/x", want: `goes through the symlink "/srv/work/l"`},
		{name: "workspace by a link in itself", tree: "/srv/work/me -> .", workspace: "/srv/work/me", want: `goes through the symlink "/srv/work/me" in "/srv/work"`},
		{name: "link in the workspace by another path", tree: "/srv/work/l -> /etc\n/m bind /srv/work", writable: "/m/l", want: `goes through the symlink "/m/l"`},
		{name: "link in shm", tree: devices + "/dev/shm/l -> /etc", writable: "/dev/shm/l", want: `goes through the symlink "/dev/shm/l"`},
		{name: "link in what is exposed", tree: "/srv/secret/open/l -> /etc", policy: "-/srv/secret +/srv/secret/open", writable: "/srv/secret/open/l", want: `goes through the symlink`},
		{name: "link elsewhere", tree: "/srv/l -> /etc", writable: "/srv/l"},
		{name: "link out of the workspace to it", tree: "/srv/l -> work", workspace: "/srv/l"},

		{name: "freezes the workspace", policy: "-/srv/work/secret", want: `hidden[0] /srv/work/secret: would freeze the workspace "/srv/work"`},
		{name: "freezes the workspace, deep", policy: "-/srv/work/a/b/c", want: `would freeze the workspace`},
		{name: "freezes a writable root", policy: "-/etc/shadow", writable: "/etc", want: `would freeze the writable root "/etc"`},
		{name: "freezes by a mount", tree: "/srv/work/m bind /srv/secret", policy: "-/srv/secret", want: `hidden[0] /srv/work/m: would freeze the workspace`},
		{name: "a kernel mount freezes", root: true, tree: "/srv/work/proc/ mount proc 0:30", want: `workspace /srv/work: holds "/srv/work/proc", which root must not reach`},
		{name: "the temp directory", policy: "-/tmp/x", want: `would freeze the temp directory`},
		{name: "the workspace is hidden", policy: "-/srv"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := pathtest.New(base + tt.tree)
			s := scoped(tree, tt.policy).writable(strings.Fields(tt.writable)...)
			s.p.Workspace = tt.workspace
			if tt.root {
				s.l.EUID = 0
			}
			if tt.noMounts {
				s.l.Mounts = nil
			}
			_, err := plan.Make(s.p, s.l, tree)
			checkOpen(t, tree)
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

// TestHiddenBeatsRoots: what is hidden is not writable, and that is said.
func TestHiddenBeatsRoots(t *testing.T) {
	tree := pathtest.New(base)
	s := scoped(tree, "-/srv -/home/u/.ssh").writable("/home/u/.ssh")
	pl, err := plan.Make(s.p, s.l, tree)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`workspace "/srv/work" is not writable: "/srv" is hidden`, `writable[0] "/home/u/.ssh" is not writable: "/home/u/.ssh" is hidden`}
	if diff := cmp.Diff(want, pl.Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if dirs := pl.WritableDirs(); dirs != nil {
		t.Errorf("writable: %v", dirs)
	}
}

func TestNoWorkspace(t *testing.T) {
	tree := pathtest.New(base)
	s := scoped(tree, "")
	s.l.Cwd = ""
	var perr *rules.Error
	if _, err := plan.Make(s.p, s.l, tree); !errors.As(err, &perr) || perr.Key != "workspace" {
		t.Errorf("got %v", err)
	}
}

// TestRootsChanged: a root is granted as the directory that was looked at, or
// not at all.
func TestRootsChanged(t *testing.T) {
	for name, change := range map[string]func(*pathtest.Tree){
		"exchanged":    func(x *pathtest.Tree) { x.Exchange("/srv/work", "/home/u/.ssh") },
		"gone":         func(x *pathtest.Tree) { x.Remove("/srv/work") },
		"a link":       func(x *pathtest.Tree) { x.Rename("/srv/work", "/new"); x.Add("/srv/work -> /etc") },
		"above a link": func(x *pathtest.Tree) { x.Rename("/srv", "/new"); x.Add("/srv -> /new") },
	} {
		for _, hidden := range []string{"", "-/etc/passwd"} {
			t.Run(name+hidden, func(t *testing.T) {
				tree := pathtest.New(base)
				s := scoped(tree, hidden)
				pl, err := plan.Make(s.p, s.l, tree)
				if err != nil {
					t.Fatal(err)
				}
				change(tree)
				if _, err := pl.Walk(tree, &plan.Recorder{}); !errors.Is(err, pathcheck.ErrChanged) {
					t.Errorf("got %v, want %v", err, pathcheck.ErrChanged)
				}
				checkOpen(t, tree)
			})
		}
	}
}

// TestWritableRoot: which root a place lies in.
func TestWritableRoot(t *testing.T) {
	tree := pathtest.New(base + devices + "/srv/work/bin/x\n/m bind /srv/work\n/srv/work/hid/\n/srv/work-evil/x")
	s := scoped(tree, "-/srv/secret -/srv/work/hid +/srv/secret/open").writable("/etc/passwd")
	s.p.Frozen = rules.FrozenAllow
	pl, err := plan.Make(s.p, s.l, tree)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/srv/work": "/srv/work", "/srv/work/bin/x": "/srv/work", "/m/bin/x": "/srv/work", "/etc/passwd": "/etc/passwd",
		"/srv/secret/open/f": "/srv/secret/open", "/dev/shm": "/dev/shm",
		"/srv": "", "/": "", "/etc": "", "/srv/work/hid": "", "/srv/secret": "", "/srv/work-evil/x": "", "/usr/bin/tool": "",
	} {
		loc, err := pathcheck.Resolve(tree, path)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := pl.WritableRoot(loc); got != want || ok != (want != "") {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	want := []string{"/srv", "/usr"}
	got, err := pl.ReadOnly(tree, "/srv", "/srv/work", "/dev/shm", "/gone", "/usr", "/m")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("read-only: %v (-want +got):\n%s", err, diff)
	}
	// One lookup that tells nothing, and the answer is none.
	scarce := failing{Tree: tree, calls: new(int), at: 1, errno: syscall.EMFILE}
	if got, err := pl.ReadOnly(scarce, "/srv"); got != nil || !errors.Is(err, syscall.EMFILE) {
		t.Errorf("without a descriptor: %q, %v", got, err)
	}
	local, err := plan.Make(policy("-/srv/secret"), user(tree), tree)
	if err != nil {
		t.Fatal(err)
	}
	if dirs, err := local.ReadOnly(tree, "/srv", "/usr"); dirs != nil || err != nil {
		t.Errorf("scope local: %v, %v", dirs, err)
	}
}
