package hiding

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// An outsider is an unconfined process of the same user that has the hidden
// file open as descriptor 3 and stands in the hidden directory.
type outsider struct{ pid, address string }

func newOutsider(t *testing.T, w *world) outsider {
	t.Helper()
	f, err := os.Open(w.at("$W/secret/f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command(launch.Look(t, "sleep"), "infinity")
	cmd.Dir, cmd.ExtraFiles = w.at("$W/secret"), []*os.File{f}
	cmd.Env = []string{"OUTSIDE=1"}
	if w.user.UID != os.Geteuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(w.user.UID), Gid: uint32(w.user.GID)}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	pid := fmt.Sprint(cmd.Process.Pid)
	maps, err := os.ReadFile("/proc/" + pid + "/maps")
	if err != nil {
		t.Fatal(err)
	}
	start, _, _ := strings.Cut(string(maps), "-")
	return outsider{pid: pid, address: "0x" + start}
}

// What a launch holds of its capabilities.
var modes = []struct {
	name   string
	policy string
	setup  *launch.Setup
}{
	{"keep", `"capabilities":"keep",`, nil},
	{"restricted", ``, nil},
	{"none", ``, &launch.Setup{DropBounding: allCapabilities()}},
}

// Root has many ways to a file. None of them leads to the hidden one, whatever
// capabilities the launch keeps.
func TestRootDoesNotReachTheHidden(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts, launch.Program("losetup"), launch.Program("mkfs.ext4"))
	type way struct {
		op, path, to string
		free         string
		keep         string
		restricted   string
		none         string
	}
	const (
		eperm    = "EPERM"
		optional = "optional" // a file that not every kernel has, else ok
	)
	ways := []way{
		// Files by which the kernel starts programs or crashes.
		{"write", "/proc/sys/kernel/core_pattern", "", ok, denied, denied, denied},
		{"write", "/proc/sysrq-trigger", "", optional, denied, denied, denied},
		{"write", "/proc/self/oom_score_adj", "", ok, denied, denied, denied},
		{"write", "/sys/kernel/mm/transparent_hugepage/enabled", "", ok, denied, denied, denied},
		{"write", "$W/work/proc/sys/kernel/core_pattern", "", ok, denied, denied, denied},
		{"read", "$W/work/proc/version", "", ok, denied, denied, denied},
		{"write", "$W/work/sys/kernel/mm/transparent_hugepage/enabled", "", ok, denied, denied, denied},
		{"write", "$W/work/cgroup/cgroup.procs", "", ok, denied, denied, denied},
		{"list", "$W/work/debug", "", ok, denied, denied, denied},
		{"read", "/proc/version", "", ok, ok, ok, ok},
		{"list", "/sys/kernel/mm", "", ok, ok, ok, ok},

		// The device below the file system.
		{"search", "$NODE", secret, ok, denied, denied, denied},
		{"search", "$W/work/dev/loop$MINOR", secret, ok, denied, denied, denied},
		{"block-node", "$W/work/node", "$NUMBER", ok, denied, denied, denied},
		{"char-node", "$W/work/mem", "1:1", ok, denied, denied, denied},
		{"read", "/dev/loop-control", "", "EINVAL", "EINVAL", "EINVAL", "EINVAL"},

		// Handles, mounts, roots and namespaces.
		{"handle", "$W/secret/f", "$W/plain", ok, denied, eperm, eperm},
		{"handle", "$W/work/f", "$W/plain", ok, ok, eperm, eperm},
		{"bind", "$W/work/sub", "$W/secret", ok, eperm, eperm, eperm},
		{"mount", "$W/work/sub", "proc", ok, eperm, eperm, eperm},
		{"remount", "$W/disk", "", ok, eperm, eperm, eperm},
		{"propagate", "$W/disk", "", ok, eperm, eperm, eperm},
		{"bind-in-namespace", "$W/work/sub", "$W/secret", ok, eperm, eperm, eperm},
		{"open-tree", ".$W/secret/f", "/", ok, denied, eperm, eperm},
		{"open-tree", "secret/f", "$W", ok, denied, eperm, eperm},
		{"open-tree", "f", "$W/secret", ok, denied, eperm, eperm},
		{"open-tree", "f", "$W/work", ok, ok, eperm, eperm},
		{"move-mount", "$W/work/sub", "$W/secret", ok, eperm, eperm, eperm},
		{"fsmount", "secret/f", "ext4 source=$NODE", ok, denied, eperm, eperm},
		{"fsmount", "f", "overlay lowerdir=$W/secret:$W/work", ok, denied, eperm, eperm},
		{"fsmount-write", "sys/kernel/core_pattern", "proc", ok, denied, eperm, eperm},
		{"fsmount-write", "kernel/mm/transparent_hugepage/enabled", "sysfs", ok, denied, eperm, eperm},
		{"fsmount-write", "cgroup.procs", "cgroup2", ok, denied, eperm, eperm},
		{"fsmount", "loop$MINOR", "devtmpfs", ok, denied, eperm, eperm},
		{"pivot-root", "$W/work", "", "EBUSY", eperm, eperm, eperm},
		{"chroot", "/secret/f", "$W", ok, denied, eperm, eperm},
		{"chroot", "/f", "$W/secret", ok, denied, eperm, eperm},
		{"chroot", "/f", "$W/work", ok, ok, eperm, eperm},
		{"setns", "$W/secret/f", "/proc/$PID/ns/mnt", ok, denied, denied, denied},
		{"setns", "$W/secret/f", "/proc/self/ns/mnt", ok, denied, eperm, eperm},

		// A process outside that may open the file.
		{"read", "/proc/$PID/root$W/secret/f", "", ok, denied, denied, denied},
		{"read", "/proc/$PID/cwd/f", "", ok, denied, denied, denied},
		{"read", "/proc/$PID/fd/3", "", ok, denied, denied, denied},
		{"read", "/proc/$PID/mem", "", "EIO", denied, denied, denied},
		{"ptrace", "$PID", "", ok, eperm, eperm, eperm},
		{"process-memory", "$PID", "$ADDRESS", ok, eperm, eperm, eperm},
		{"pidfd-descriptor", "$PID", "3", ok, eperm, eperm, eperm},

		// The kernel reads files for others.
		{"swapon", "$W/secret/f", "", "EINVAL", denied, eperm, eperm},
		// A process with these reads the memory of the kernel; see below.
		{"bpf", "", "", ok, ok, eperm, eperm},
		{"perf", "", "", ok, ok, denied, denied},
		{"read", "$W/secret/f", "", ok, denied, denied, denied},
		{"read", "/proc/$PID/environ", "", ok, ok, denied, denied},
		{"read", "$W/disk/secret/f", "", ok, denied, denied, denied},
		{"read", "$W/work/f", "", ok, ok, ok, ok},
		{"umount", "$W/work/debug", "", ok, eperm, eperm, eperm},
		{"mount", "$W/work/debug", "tmpfs", ok, eperm, eperm, eperm},
	}
	results := func(t *testing.T, mode int) ([]result, *report.Report, []try) {
		privateMounts(t)
		w := newWorld(t, launch.Root)
		d := newDisk(t, w)
		w.mkdir(t, "$W/plain")
		t.Cleanup(func() { // what the free launch mounts
			for unix.Unmount(w.at("$W/work/sub"), unix.MNT_DETACH) == nil {
				continue
			}
		})
		w.mount(t, "proc", "$W/work/proc", "proc", 0, "")
		w.mount(t, "sysfs", "$W/work/sys", "sysfs", 0, "")
		w.mount(t, "cgroup2", "$W/work/cgroup", "cgroup2", 0, "")
		w.mount(t, "debugfs", "$W/work/debug", "debugfs", 0, "")
		w.mount(t, "devtmpfs", "$W/work/dev", "devtmpfs", 0, "")
		o := newOutsider(t, w)
		_, minor, _ := strings.Cut(d.number, ":")
		fill := strings.NewReplacer("$NODE", d.node, "$NUMBER", d.number, "$MINOR", minor, "$PID", o.pid, "$ADDRESS", o.address)
		tries := make([]try, len(ways))
		for i, y := range ways {
			tries[i] = try{y.op, fill.Replace(y.path), fill.Replace(y.to)}
		}
		if mode < 0 {
			return w.free(t, tries...), nil, tries
		}
		w.setup = modes[mode].setup
		out, r := w.held(t, `{"version":1,`+modes[mode].policy+`"hidden":["$W/secret","$W/disk/secret"]}`, tries...)
		return out, &r, tries
	}
	check := func(t *testing.T, out []result, tries []try, want func(way) string) {
		for i, y := range ways {
			if y.free == optional {
				if _, err := os.Lstat(tries[i].Path); err != nil {
					t.Logf("%s: not on this kernel", tries[i].Path)
					continue
				}
				y.free = ok
			}
			if out[i].Errno != want(y) {
				t.Errorf("%s %s %s: %s (%q), want %s", tries[i].Op, tries[i].Path, tries[i].To, out[i].Errno, out[i].Data, want(y))
			}
			if strings.Contains(out[i].Data, secret) && !strings.Contains(tries[i].Path+tries[i].To, "work") && want(y) != y.free {
				t.Errorf("%s %s %s: read %q", tries[i].Op, tries[i].Path, tries[i].To, out[i].Data)
			}
		}
	}
	t.Run("free", func(t *testing.T) {
		out, _, tries := results(t, -1)
		check(t, out, tries, func(y way) string { return y.free })
	})
	for i, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			out, r, tries := results(t, i)
			check(t, out, tries, func(y way) string { return []string{y.keep, y.restricted, y.none}[i] })
			if m.name == "keep" {
				wantLimit(t, *r, "capabilities")
				text := strings.Join(limits(*r, "capabilities"), " ")
				for _, name := range []string{"SYS_ADMIN", "PERFMON", "BPF", "SYS_RAWIO", "SYS_PTRACE"} {
					if !strings.Contains(text, name) {
						t.Errorf("the limit %q does not name %s", text, name)
					}
				}
			}
		})
	}
}

// A device node outside /dev that stood there before, and a disk image, are
// ways of root to the bytes. They are listed.
func TestOtherCopiesAreALimit(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts, launch.Program("losetup"), launch.Program("mkfs.ext4"))
	privateMounts(t)
	w := newWorld(t, launch.Root)
	d := newDisk(t, w)
	var st unix.Stat_t
	if err := unix.Stat(d.node, &st); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(w.at("$W/work/node"), unix.S_IFBLK|0o600, int(st.Rdev)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(w.at("$W/node"), unix.S_IFBLK|0o600, int(st.Rdev)); err != nil {
		t.Fatal(err)
	}
	out, r := w.held(t, `{"version":1,"hidden":["$W/disk/secret"]}`,
		try{"search", "$W/node", secret}, // a directory granted entry by entry gives no block device
		try{"search", "$W/work/node", secret}, try{"search", d.image, secret},
		try{"read", "$W/disk/secret/f", ""})
	if out[0].Errno != denied || out[3].Errno != denied {
		t.Errorf("%+v", out)
	}
	if out[1].Errno == ok || out[2].Errno == ok {
		wantLimit(t, r, "copies")
	}
}

// A process that is not root and holds capabilities can become root, so the
// kernel's files are closed to it as to root.
func TestCapableUserIsTreatedAsRoot(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot)
	u := launch.Nobody
	setup := &launch.Setup{KeepCapabilities: []int{unix.CAP_SETUID, unix.CAP_DAC_OVERRIDE}}
	w := newWorld(t, u)
	w.setup = setup
	tries := []try{
		{"write", "/sys/kernel/mm/transparent_hugepage/enabled", ""}, // by CAP_DAC_OVERRIDE
		{"become", "0", ""},
		{"write", "/proc/sys/kernel/core_pattern", ""},
		{"read", "$W/work/f", ""},
	}
	free := errnos(w.free(t, tries...))
	if free[0] != ok || free[1] != ok || free[2] != ok {
		t.Fatalf("the control does not become root: %v", free)
	}
	out, _ := w.held(t, hideSecret, tries...)
	if got := errnos(out); got[0] != denied || got[2] != denied || got[3] != ok {
		t.Errorf("/sys, become root, core_pattern, control: %v (free: %v)", got, free)
	}
}

// No way of an ordinary user leads there either, with or without the
// capabilities that a user namespace gives.
func TestUserDoesNotReachTheHidden(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.UserNS)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		o := newOutsider(t, w)
		pid, address := o.pid, o.address
		tries := []try{
			{"read", "/proc/" + pid + "/root$W/secret/f", ""},
			{"read", "/proc/" + pid + "/cwd/f", ""},
			{"read", "/proc/" + pid + "/fd/3", ""},
			{"ptrace", pid, ""},
			{"process-memory", pid, address},
			{"pidfd-descriptor", pid, "3"},
			{"bind-in-user-namespace", "$W/work/sub", "$W/secret"},
			{"read", "$W/secret/f", ""},
			{"read", "$W/work/f", ""},
		}
		for _, r := range w.free(t, tries...) {
			if r.Errno != ok {
				t.Errorf("without a policy: %+v", r)
			}
		}
		out, _ := w.held(t, hideSecret, tries...)
		want := []string{denied, denied, denied, "EPERM", "EPERM", "EPERM", "EPERM", denied, ok}
		if u.UID == 0 {
			want[6] = denied // /proc, and so uid_map, is not for writing
		}
		for i, r := range out {
			if r.Errno != want[i] {
				t.Errorf("%s %s: %s (%s), want %s", tries[i].Op, tries[i].Path, r.Errno, r.Data, want[i])
			}
		}
	})
}
