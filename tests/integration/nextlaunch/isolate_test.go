package nextlaunch

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// pseudo makes a terminal of the user's.
func pseudo(t *testing.T, u launch.User) (outer, inner *os.File) {
	t.Helper()
	outer, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { outer.Close() })
	number, err := unix.IoctlGetInt(int(outer.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(outer.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	path := "/dev/pts/" + strconv.Itoa(number)
	u.Own(t, path)
	if inner, err = os.OpenFile(path, os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inner.Close() })
	return outer, inner
}

// terminals says what a launch sees of its own terminal, of a new one and of another.
const terminals = `import os, sys, termios
print(os.isatty(0), os.path.basename(os.ttyname(0)).rstrip('0123456789'))
os.close(os.open('/dev/tty', os.O_RDWR))
f = os.open(os.ttyname(0), os.O_RDWR | os.O_NOCTTY)
termios.tcgetattr(f)
m, s = os.openpty()
os.write(m, b'x\n')
print(os.read(s, 9), os.ttyname(s).startswith('/dev/pts/'))
termios.tcsetattr(os.open(os.ttyname(s), os.O_RDWR), 0, termios.tcgetattr(s))
try:
    f = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
    print('opened', os.fstat(f).st_dev == int(sys.argv[2]))
except OSError as e:
    print(e.strerror)
`

// With a devpts of its own, a launch does not open the terminals of others. All else of
// terminals works.
func TestOtherTerminalsAreNotOpened(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts, launch.Program("/usr/bin/python3"))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		dir := u.Dir(t)
		python := launch.Install(t, dir, "python3", launch.Record{Real: "/usr/bin/python3"})
		report := filepath.Join(dir, "report")
		// Enough of them that none of the launch's own has this number.
		for range 4 {
			pseudo(t, u)
		}
		_, other := pseudo(t, u)
		var st unix.Stat_t
		if err := unix.Fstat(int(other.Fd()), &st); err != nil {
			t.Fatal(err)
		}
		for name, more := range map[string]object{
			"alone": {}, "hidden": {"hidden": []string{u.Dir(t)}},
			"workspace": {"scope": "workspace", "workspace": u.Dir(t), "toolchainDirs": false},
		} {
			for _, policy := range []object{nil, {"version": 1, "isolate": []string{"tty"}, "report": report}} {
				_, inner := pseudo(t, u)
				c := launch.Cmd{
					Path: python, Args: []string{"python3", "-c", terminals, other.Name(), strconv.FormatUint(uint64(st.Dev), 10)}, User: u,
					Stdin: inner, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: true},
				}
				want := "True \nb'x\\n' True\nopened True\n"
				if policy != nil {
					for k, v := range more {
						policy[k] = v
					}
					c.Policy = policy
					if u == launch.Root {
						want = "True console\nb'x\\n' True\nNo such file or directory\n"
					}
				}
				if r := c.Run(t); r.Stdout != want {
					t.Errorf("%s: want %q: %v", name, want, r)
				}
			}
			last := launch.Report(t, report)
			os.Remove(report)
			if u == launch.Root && by(last, "other-terminals") != "mount-namespace" || u != launch.Root && gap(last, "other-terminals", "") == "" {
				t.Errorf("%s: %+v %+v", name, last.Enforced, last.NotEnforced)
			}
		}
	})
}

// With an IPC namespace of its own, a launch sees no shared memory, semaphore or queue
// of others; what it makes itself works.
func TestSharedMemoryOfOthersIsOutOfReach(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts, launch.Program("ipcs"), launch.Program("python3"))
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) }()
	file := "/dev/shm/shim-test-" + strconv.Itoa(os.Getpid())
	launch.Nobody.Write(t, file, "x", 0o666)
	defer os.Remove(file)
	script := `ipcs -m | grep -c ' ` + strconv.Itoa(id) + ` '; cat ` + file + ` 2>/dev/null; python3 -c '
import multiprocessing as m
l = m.Lock(); q = m.Queue(); p = m.Process(target=lambda: q.put("put"))
with l: p.start(); print(q.get())
p.join()'`
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		dir := u.Dir(t)
		sh := launch.Install(t, dir, "sh", launch.Record{Real: "/bin/sh"})
		report := filepath.Join(dir, "report")
		c := launch.Shell(sh, script)
		c.User = u
		if r := c.Run(t); r.Stdout != "1\nxput\n" {
			t.Fatalf("without a policy: %v", r)
		}
		for name, more := range map[string]object{
			"alone": {}, "hidden": {"hidden": []string{u.Dir(t)}},
			"workspace": {"scope": "workspace", "workspace": u.Dir(t), "toolchainDirs": false},
		} {
			policy := object{"version": 1, "required": true, "isolate": []string{"ipc"}, "report": report}
			for k, v := range more {
				policy[k] = v
			}
			c.Policy = policy
			r := c.Run(t)
			last := launch.Report(t, report)
			os.Remove(report)
			if u == launch.Root {
				if r.Stdout != "0\nput\n" || by(last, "ipc") != "ipc-namespace" {
					t.Errorf("%s: %v\n%+v", name, r, last)
				}
				continue
			}
			if r.Code != 125 || !strings.Contains(r.Stderr, "cannot enforce ipc (it needs CAP_SYS_ADMIN") && !strings.Contains(r.Stderr, "cannot enforce ipc: it needs CAP_SYS_ADMIN") {
				t.Errorf("%s, required: %v", name, r)
			}
			policy["required"] = false
			if r := c.Run(t); r.Stdout != "1\nxput\n" || !strings.Contains(r.Stderr, "not enforced: ipc") {
				t.Errorf("%s, not required: %v", name, r)
			}
			os.Remove(report)
		}
	})
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
