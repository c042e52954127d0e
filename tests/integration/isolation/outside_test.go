package isolation

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(m *testing.M) { launch.Main(m) }

type object = map[string]any

// reacher builds the program that reaches out, once, beside the shim.
func reacher(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(filepath.Dir(launch.Shim(tb)), "reach")
	buildReacher.Do(func() {
		cmd := exec.Command("go", "build", "-o", path, "./testdata/reach")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			errReacher = fmt.Errorf("build: %w\n%s", err, out)
		}
	})
	if errReacher != nil {
		tb.Fatal(errReacher)
	}
	return path
}

var (
	buildReacher sync.Once
	errReacher   error
)

// A who is a kind of user with what may be expected of the kernel for it.
type who struct {
	name string
	user launch.User
	// setup and keep change what capabilities there are.
	setup *launch.Setup
	keep  bool
}

var everybody = []who{
	{name: "uid65534", user: launch.Nobody},
	{name: "root", user: launch.Root},
	{name: "root that keeps capabilities", user: launch.Root, keep: true},
	{name: "root of a container", user: launch.Root, setup: &launch.Setup{DropBounding: []int{unix.CAP_SYS_ADMIN, unix.CAP_PERFMON}}},
}

// The columns are those of everybody; "ok" beside a limit is reported.
var outcomes = []struct {
	way string
	// lacks are errnos with which it may fail without a policy.
	lacks string
	want  [4]string
	limit string // the report's name for what stays open
}{
	{way: "kill", want: [4]string{"EPERM", "EPERM", "EPERM", "EPERM"}},
	{way: "kill-0", want: [4]string{"EPERM", "EPERM", "EPERM", "EPERM"}},
	{way: "tgkill", want: [4]string{"EPERM", "EPERM", "EPERM", "EPERM"}},
	{way: "pidfd", want: [4]string{"EPERM", "EPERM", "EPERM", "EPERM"}},
	{way: "getfd", lacks: "EPERM", want: [4]string{"EPERM", "EPERM", "EPERM", "EPERM"}},
	{way: "ptrace", lacks: "EPERM", want: [4]string{"EPERM", "EPERM", "EPERM", "EPERM"}},
	{way: "vm-readv", lacks: "EPERM", want: [4]string{"EPERM", "EPERM", "EPERM", "EPERM"}},
	{way: "environ", want: [4]string{"EACCES", "ENOENT", "ENOENT", "EACCES"}},
	{way: "maps", want: [4]string{"EACCES", "ENOENT", "ENOENT", "EACCES"}},
	{way: "mem", lacks: "EACCES", want: [4]string{"EACCES", "ENOENT", "ENOENT", "EACCES"}},
	{way: "fd", want: [4]string{"EACCES", "ENOENT", "ENOENT", "EACCES"}},
	{way: "cwd", want: [4]string{"EACCES", "ENOENT", "ENOENT", "EACCES"}},
	{way: "root", want: [4]string{"EACCES", "ENOENT", "ENOENT", "EACCES"}},
	{way: "cmdline", want: [4]string{"ok", "ENOENT", "ENOENT", "ok"}, limit: "proc-visibility"},
	{way: "status", want: [4]string{"ok", "ENOENT", "ENOENT", "ok"}, limit: "proc-visibility"},
	{way: "prlimit", want: [4]string{"EPERM", "EPERM", "EPERM", "EPERM"}},
	{way: "priority", want: [4]string{"ok", "EPERM", "ok", "EPERM"}, limit: "process-limits"},
	{way: "affinity", want: [4]string{"ok", "EPERM", "ok", "EPERM"}, limit: "process-limits"},
	{way: "abstract", want: [4]string{"EPERM", "EPERM", "EPERM", "EPERM"}},
	{way: "path", want: [4]string{"ok", "ok", "ok", "ok"}},     // not asked for, see TestUnixSocketsAreDenied
	{way: "datagram", want: [4]string{"ok", "ok", "ok", "ok"}}, // likewise
	{way: "pair", want: [4]string{"ok", "ok", "ok", "ok"}},
	{way: "tiocsti", lacks: "EIO EPERM", want: [4]string{"EPERM", "EPERM", "EPERM", "EPERM"}},
	{way: "tioclinux", lacks: "ENOTTY EINVAL EPERM", want: [4]string{"EPERM", "EPERM", "EPERM", "EPERM"}},
	{way: "tty-size", want: [4]string{"ok", "ok", "ok", "ok"}, limit: "terminal"},
}

func TestProcessesOutsideAreNotReached(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.ABIAtLeast(6), launch.IsRoot, launch.Mounts)
	for i, who := range everybody {
		t.Run(who.name, func(t *testing.T) {
			o, s := newOutsider(t, who.user), newService(t, who.user)
			dir := who.user.Dir(t)
			path := launch.Install(t, dir, "reach", launch.Record{Real: reacher(t)})
			// Each try has a session and a terminal of its own.
			run := func(way string, policy any) string {
				_, inner := terminal(t, who.user)
				r := launch.Cmd{
					Path: path, Args: []string{"reach", way, o.pid, o.address, s.path}, User: who.user, Setup: who.setup,
					Stdin: inner, Policy: policy, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: true},
				}.Run(t)
				if r.Stderr != "" || r.Code != 0 {
					t.Fatalf("%s: %v", way, r)
				}
				return strings.TrimSpace(r.Stdout)
			}
			report := filepath.Join(dir, "report")
			policy := object{"version": 1, "isolate": []string{"signals", "abstract-unix", "proc", "tty"}, "report": report}
			if who.keep {
				policy["capabilities"] = "keep"
			}
			for _, row := range outcomes {
				said := run(row.way, nil)
				if said != "ok" && !strings.Contains(row.lacks, said) {
					t.Errorf("%s without a policy: %s", row.way, said)
				}
				s.asked(t)
				if got := run(row.way, policy); got != row.want[i] {
					t.Errorf("%s: got %s, want %s", row.way, got, row.want[i])
				}
				if asked := s.asked(t); asked != (row.want[i] == "ok" && (row.way == "path" || row.way == "datagram")) {
					t.Errorf("%s: the service ran something: %v", row.way, asked)
				}
				last := launch.Report(t, report)
				os.Remove(report)
				if row.limit != "" && row.want[i] == "ok" {
					if n := launch.NotEnforced(last, row.limit); len(n) != 1 || n[0] != "limit" {
						t.Errorf("%s stays open and is not in the report: %+v", row.way, last.NotEnforced)
					}
				}
				check(t, last, i)
			}
		})
	}
}

// check compares what a report says with what the columns of outcomes expect.
func check(t *testing.T, r report.Report, column int) {
	t.Helper()
	want := [4]string{
		"abstract-unix/landlock capabilities/capabilities proc/landlock resource-limits/seccomp signals/landlock tty/seccomp keyrings/seccomp file-ioctls/seccomp",
		"abstract-unix/landlock capabilities/capabilities proc-visibility/mount-namespace proc/landlock resource-limits/seccomp signals/landlock tty/seccomp keyrings/seccomp file-ioctls/seccomp",
		"abstract-unix/landlock proc-visibility/mount-namespace proc/mount-namespace resource-limits/seccomp signals/landlock tty/seccomp keyrings/seccomp file-ioctls/seccomp",
		"abstract-unix/landlock capabilities/capabilities proc/landlock resource-limits/seccomp signals/landlock tty/seccomp keyrings/seccomp file-ioctls/seccomp",
	}[column]
	got := map[string]bool{}
	for _, e := range r.Enforced {
		switch e.What {
		case "control-groups", "kernel-files", "other-terminals":
			continue // what holds these depends on the mounts: see package nextlaunch
		}
		got[e.What+"/"+e.By] = true
	}
	for _, e := range strings.Fields(want) {
		if !got[e] {
			t.Errorf("the report lacks %s: %+v", e, r.Enforced)
		}
		delete(got, e)
	}
	if len(got) > 0 {
		t.Errorf("the report has more: %v", got)
	}
	if column == 2 && len(launch.NotEnforced(r, "capabilities")) != 1 {
		t.Errorf("kept capabilities are not reported: %+v", r.NotEnforced)
	}
}

// What root keeps decides whether proc can be promised.
func TestProcNeedsANamespaceBesideCapabilities(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot)
	u := launch.Root
	dir := u.Dir(t)
	path := launch.Install(t, dir, "reach", launch.Record{Real: reacher(t)})
	o := newOutsider(t, u)
	policy := object{"version": 1, "isolate": []string{"proc"}, "capabilities": "keep", "report": filepath.Join(dir, "report")}
	c := launch.Cmd{
		Path: path, Args: []string{"reach", "environ", o.pid, "0", "-"}, User: u,
		Setup: &launch.Setup{DropBounding: []int{unix.CAP_SYS_ADMIN}}, Policy: policy,
	}
	r := c.Run(t)
	if r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, "cannot enforce proc: CAP_SYS_ADMIN or CAP_PERFMON is kept") {
		t.Errorf("required: %v", r)
	}
	os.Remove(filepath.Join(dir, "report"))
	policy["required"] = false
	r = c.Run(t)
	if r.Code != 0 || r.Stdout != "ok\n" || !strings.Contains(r.Stderr, "not enforced: proc") {
		t.Errorf("not required: %v", r)
	}
	if n := launch.NotEnforced(launch.Report(t, filepath.Join(dir, "report")), "proc"); len(n) != 1 || n[0] != "failure" {
		t.Errorf("reported: %v", n)
	}
}

func TestUnixSocketsAreDenied(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		s := newService(t, u)
		dir := u.Dir(t)
		report := filepath.Join(dir, "report")
		path := launch.Install(t, dir, "reach", launch.Record{Real: reacher(t)})
		policy := object{"version": 1, "isolate": []string{"unix-sockets"}, "report": report}
		for _, row := range []struct{ way, want string }{
			{"path", "EACCES"}, {"abstract", "EACCES"}, {"datagram", "EACCES"}, {"pair", "ok"},
		} {
			run := func(policy any) string {
				r := launch.Cmd{Path: path, Args: []string{"reach", row.way, "0", "0", s.path}, User: u, Policy: policy}.Run(t)
				return strings.TrimSpace(r.Stdout) + r.Stderr
			}
			if got := run(nil); got != "ok" || s.asked(t) == (row.way == "pair") {
				t.Errorf("%s without a policy: %s", row.way, got)
			}
			if got := run(policy); got != row.want || s.asked(t) {
				t.Errorf("%s: got %s, want %s", row.way, got, row.want)
			}
			last := launch.Report(t, report)
			os.Remove(report)
			if !launch.Enforced(last, "unix-sockets") {
				t.Errorf("report: %+v", last)
			}
		}
	})
}

// A server that one launch started is outside of the next.
func TestServerOfAnotherLaunchIsNotSignalled(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.ABIAtLeast(6))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		sh := launch.Install(t, u.Dir(t), "sh", launch.Record{Real: "/bin/sh"})
		policy := object{"version": 1, "isolate": []string{"signals"}}
		run := func(script string, policy any) launch.Result {
			c := launch.Shell(sh, script)
			c.User, c.Policy = u, policy
			return c.Run(t)
		}
		r := run(`sleep 1000 </dev/null >/dev/null 2>&1 & kill -CONT $! && echo $!`, policy)
		pid := strings.TrimSpace(r.Stdout)
		if r.Code != 0 || pid == "" {
			t.Fatalf("its own child can be signalled: %v", r)
		}
		if r := run("kill "+pid, policy); r.Code == 0 || !strings.Contains(r.Stderr, "not permitted") {
			t.Errorf("the next launch: %v", r)
		}
		if r := run("kill "+pid, nil); r.Code != 0 {
			t.Errorf("without a policy: %v", r)
		}
	})
}
