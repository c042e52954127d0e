package nextlaunch

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// opens is a script that opens a file for writing and says how that went. Nothing is
// written.
const opens = `open() { (: >>"$1") 2>/dev/null && echo open || echo denied; }
`

// sysfs is a file below /sys that root can write.
func sysfs(t *testing.T) string {
	t.Helper()
	for _, path := range []string{"/sys/kernel/uevent_helper", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/profiling", "/sys/power/state"} {
		if unix.Access(path, unix.W_OK) == nil {
			return path
		}
	}
	t.Skip("needs a writable file in /sys")
	return ""
}

// No launch as root writes what acts on the kernel, whatever it is confined in.
func TestRootWritesNothingOfTheKernel(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.ABIAtLeast(6), launch.IsRoot, launch.Mounts)
	script := opens + `open /proc/sys/kernel/core_pattern
open /proc/sys/kernel/panic_on_oops
open ` + sysfs(t) + `
ls / >/dev/null && echo listed
`
	const denied = "denied\ndenied\ndenied\nlisted\n"
	sh := launch.Install(t, launch.Dir(t), "sh", launch.Record{Real: "/bin/sh"})
	if r := launch.Shell(sh, script).Run(t); r.Stdout != "open\nopen\nopen\nlisted\n" {
		t.Fatalf("without a policy: %v", r)
	}
	for name, keys := range map[string]object{
		"network": {"network": "deny"}, "tty": {"isolate": []string{"tty"}}, "proc": {"isolate": []string{"proc"}},
		"signals": {"isolate": []string{"signals"}}, "descriptors": {"descriptors": "close"}, "capabilities": {"capabilities": "restricted"},
		"unix": {"isolate": []string{"unix-sockets"}},
		"ipc":  {"isolate": []string{"ipc"}, "required": false},
	} {
		for _, setup := range []*launch.Setup{nil, noAdmin} {
			t.Run(name+map[bool]string{true: ", mounts", false: ", ruleset"}[setup == nil], func(t *testing.T) {
				report := filepath.Join(launch.Dir(t), "report")
				policy := object{"version": 1, "report": report}
				for k, v := range keys {
					policy[k] = v
				}
				dir := "/shim-test-" + strconv.Itoa(os.Getpid())
				c := launch.Shell(sh, script+`echo 5 2>/dev/null >/proc/self/oom_score_adj && mkdir `+dir+` 2>/dev/null && rmdir `+dir+` && echo free`)
				c.Policy, c.Setup = policy, setup
				r := c.Run(t)
				last := launch.Report(t, report)
				want, means := denied+"free\n", "mount-namespace"
				if setup != nil {
					// The price of a ruleset: its own files of /proc, and nothing new in "/".
					want, means = denied, "landlock"
				}
				if r.Stdout != want || by(last, "kernel-files") != means || len(last.Frozen) > 0 {
					t.Errorf("want %q by %s: %v\n%+v", want, means, r, last)
				}
			})
		}
	}
}

// The mounts hold against who makes namespaces within, where no ruleset does.
func TestUserNamespaceUndoesNoMount(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts, launch.UserNS, launch.Program("unshare"))
	sh := launch.Install(t, launch.Dir(t), "sh", launch.Record{Real: "/bin/sh"})
	c := launch.Shell(sh, opens+`unshare -Urm sh -c 'mount -t tmpfs none /mnt && echo mounts; mount -o remount,bind,rw /proc/sys || umount /proc/sys || umount -l /proc/sys; mount -o remount,bind,rw /sys; (: >>/proc/sys/kernel/core_pattern) && echo open'
unshare -Urpf --mount-proc sh -c '(: >>/proc/sys/kernel/core_pattern) && echo open'; :`)
	c.Policy = object{"version": 1, "network": "deny"}
	if r := c.Run(t); r.Stdout != "mounts\n" {
		t.Error(r)
	}
	// The price of a ruleset, where the launch may not mount: nor may those within.
	c.Setup = noAdmin
	if r := c.Run(t); r.Stdout != "" {
		t.Errorf("by a ruleset: %v", r)
	}
}

// Neither the current directory nor an inherited one leads around the mounts.
func TestInheritedDirectoryLeadsNotAroundMounts(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	sh := launch.Install(t, launch.Dir(t), "sh", launch.Record{Real: "/bin/sh"})
	root, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	file, err := os.Open("/proc/sys/kernel/core_pattern")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c := launch.Shell(sh, opens+`open kernel/core_pattern; open /proc/self/fd/3/proc/sys/kernel/core_pattern; open /proc/self/fd/4; ls /proc/self/fd/3/ | grep -c '^proc$'; pwd`)
	c.Dir, c.Extra = "/proc/sys", []*os.File{root, file}
	if r := c.Run(t); r.Stdout != "open\nopen\nopen\n1\n/proc/sys\n" {
		t.Fatalf("without a policy: %v", r)
	}
	c.Policy = object{"version": 1, "network": "deny"}
	if r := c.Run(t); r.Stdout != "denied\ndenied\ndenied\n1\n/proc/sys\n" {
		t.Errorf("confined: %v", r)
	}
}

// A control group that a user owns kills and stops what is in it, without a signal.
func TestControlGroupsAreNotWritten(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.ABIAtLeast(6), launch.IsRoot)
	top := ""
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(dir + "/cgroup.procs"); err == nil && unix.Access(dir, unix.W_OK) == nil {
			top = dir
		}
	}
	if top == "" {
		t.Skip("needs a writable cgroup2 file system")
	}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		group := filepath.Join(top, "shim-test-"+strconv.Itoa(os.Getpid()))
		if err := os.Mkdir(group, 0o755); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(group)
		for _, name := range []string{"", "cgroup.kill", "cgroup.procs", "cgroup.freeze", "cgroup.threads"} {
			u.Own(t, filepath.Join(group, name))
		}
		dir := u.Dir(t)
		sh := launch.Install(t, dir, "sh", launch.Record{Real: "/bin/sh"})
		script := opens + `for f in kill procs freeze threads; do open ` + group + `/cgroup.$f; done; mkdir ` + group + `/sub 2>/dev/null && rmdir ` + group + `/sub && echo made`
		c := launch.Shell(sh, script)
		c.User = u
		if r := c.Run(t); r.Stdout != strings.Repeat("open\n", 4)+"made\n" {
			t.Fatalf("without a policy: %v", r)
		}
		report := filepath.Join(dir, "report")
		for name, policy := range map[string]object{
			"alone": {}, "hidden": {"hidden": []string{u.Dir(t)}}, "proc": {"isolate": []string{"signals", "proc"}},
			"workspace": {"scope": "workspace", "workspace": u.Dir(t), "toolchainDirs": false},
		} {
			for _, setup := range []*launch.Setup{nil, noAdmin} {
				if _, ok := policy["isolate"]; !ok {
					policy["isolate"] = []string{"signals"}
				}
				policy["version"], policy["required"], policy["report"] = 1, true, report
				c.Policy, c.Setup = policy, setup
				r := c.Run(t)
				if last := launch.Report(t, report); r.Stdout != strings.Repeat("denied\n", 4) || by(last, "control-groups") == "" {
					t.Errorf("%s: %v\n%+v", name, r, last.Enforced)
				}
				os.Remove(report)
			}
		}
		c.Policy, c.Setup = object{"version": 1, "network": "deny"}, nil
		if r := c.Run(t); u != launch.Root && !strings.HasPrefix(r.Stdout, "open\n") {
			t.Errorf("where signals are not isolated: %v", r)
		}
	})
}
