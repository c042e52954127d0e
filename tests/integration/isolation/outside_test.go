package isolation

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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

// An outsider is a process of the user, outside of every launch.
type outsider struct{ pid, address string }

func newOutsider(t *testing.T, u launch.User) outsider {
	t.Helper()
	cmd := exec.Command(reacher(t), "wait")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if u.UID != os.Geteuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return outsider{strconv.Itoa(cmd.Process.Pid), strings.TrimSpace(address)}
}

// A service runs a command for whoever connects, as a container engine, a
// session bus or tmux does. It counts how often.
type service struct {
	path  string
	dgram *net.UnixConn
	runs  chan struct{}
}

func newService(t *testing.T, u launch.User) *service {
	t.Helper()
	s := &service{path: filepath.Join(u.Dir(t), "s"), runs: make(chan struct{}, 64)}
	for _, name := range []string{s.path, "@" + s.path} {
		l, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				if line, _ := bufio.NewReader(c).ReadString('\n'); line == "run\n" && exec.Command("true").Run() == nil {
					s.runs <- struct{}{}
				}
				c.Close()
			}
		}()
	}
	var err error
	if s.dgram, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: s.path + ".dgram", Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.dgram.Close() })
	for _, path := range []string{s.path, s.path + ".dgram"} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// asked reports whether it ran something since the last call. The sender has
// ended, and a stream's waited for the answer.
func (s *service) asked(t *testing.T) bool {
	t.Helper()
	n := 0
	for len(s.runs) > 0 {
		<-s.runs
		n++
	}
	raw, err := s.dgram.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	err = raw.Read(func(fd uintptr) bool {
		for {
			if _, _, err := unix.Recvfrom(int(fd), buf, unix.MSG_DONTWAIT); err != nil {
				return true
			}
			n++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// A terminal is a pty, of which the launch gets the inner end on 0 as its
// controlling terminal.
func terminal(t *testing.T, u launch.User) (outer, inner *os.File) {
	t.Helper()
	outer, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Not by Fd, which would make reads ignore their deadline.
	raw, err := outer.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	var errIoctl error
	err = raw.Control(func(fd uintptr) {
		if n, errIoctl = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); errIoctl == nil {
			errIoctl = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		}
	})
	if err != nil || errIoctl != nil {
		t.Fatal(err, errIoctl)
	}
	name := "/dev/pts/" + strconv.Itoa(n)
	if inner, err = os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	u.Own(t, name)
	t.Cleanup(func() { inner.Close(); outer.Close() })
	return outer, inner
}

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
	{way: "prlimit", want: [4]string{"ok", "ok", "ok", "ok"}, limit: "process-limits"},
	{way: "priority", want: [4]string{"ok", "EPERM", "ok", "EPERM"}, limit: "process-limits"},
	{way: "affinity", want: [4]string{"ok", "EPERM", "ok", "EPERM"}, limit: "process-limits"},
	{way: "abstract", want: [4]string{"EPERM", "EPERM", "EPERM", "EPERM"}},
	{way: "path", want: [4]string{"ok", "ok", "ok", "ok"}},     // not asked for, see TestUnixSockets
	{way: "datagram", want: [4]string{"ok", "ok", "ok", "ok"}}, // likewise
	{way: "pair", want: [4]string{"ok", "ok", "ok", "ok"}},
	{way: "tiocsti", lacks: "EIO EPERM", want: [4]string{"EPERM", "EPERM", "EPERM", "EPERM"}},
	{way: "tioclinux", lacks: "ENOTTY EINVAL EPERM", want: [4]string{"EPERM", "EPERM", "EPERM", "EPERM"}},
	{way: "tty-size", want: [4]string{"ok", "ok", "ok", "ok"}, limit: "terminal"},
}

func TestOutside(t *testing.T) {
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
		"abstract-unix/landlock capabilities/capabilities proc/landlock signals/landlock tty/seccomp",
		"abstract-unix/landlock capabilities/capabilities proc-visibility/mount-namespace proc/landlock signals/landlock tty/seccomp",
		"abstract-unix/landlock proc-visibility/mount-namespace proc/mount-namespace signals/landlock tty/seccomp",
		"abstract-unix/landlock capabilities/capabilities proc/landlock signals/landlock tty/seccomp",
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

func TestUnixSockets(t *testing.T) {
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
func TestServerOfAnotherLaunch(t *testing.T) {
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
