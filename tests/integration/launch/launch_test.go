package launch_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(m *testing.M) { launch.Main(m) }

// status returns one line of /proc/self/status of a cat that c describes.
func status(t *testing.T, c launch.Cmd, key string) string {
	t.Helper()
	c.Path, c.Args = launch.Look(t, "cat"), []string{"cat", "/proc/self/status"}
	r := c.Run(t)
	for line := range strings.Lines(r.Stdout) {
		if v, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	t.Fatalf("no %s in the status: %v", key, r)
	return ""
}

// What a Cmd says reaches the process byte for byte, with and without a stage.
func TestExact(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		for _, setup := range []*launch.Setup{nil, {}} {
			t.Run(fmt.Sprintf("stage=%v", setup != nil), func(t *testing.T) {
				c := launch.Cmd{
					Path: launch.Look(t, "sh"), Args: []string{"-odd", "-c", `cat /proc/$$/cmdline /proc/$$/environ; id -u >&2; exec 3>&-`, "", "--", "a\nb"},
					Env: []string{"A=1", "PATH=/usr/bin:/bin", "A=2", "NOEQ", "", "Z=\xff"}, User: u, Setup: setup,
				}
				r := c.Run(t)
				want := strings.Join(c.Args, "\x00") + "\x00" + strings.Join(c.Env, "\x00") + "\x00"
				if r.Stdout != want {
					t.Errorf("got %q\nwant %q", r.Stdout, want)
				}
				if want := fmt.Sprintf("%d\n", u.UID); r.Stderr != want || r.Code != 0 {
					t.Errorf("want uid %q: %v", want, r)
				}
			})
		}
	})
}

func TestSetup(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		umask := 0o27
		setup := &launch.Setup{
			Umask: &umask, NoFile: &[2]uint64{70, 80},
			Ignore: []syscall.Signal{syscall.SIGTERM, syscall.SIGPIPE, 35}, Block: []syscall.Signal{syscall.SIGHUP, 64},
		}
		c := launch.Cmd{User: u, Setup: setup}
		for key, want := range map[string]string{
			"SigIgn": "0000000400005000", "SigBlk": "8000000000000001", "Umask": "0027", "NoNewPrivs": "0", "Uid": strings.TrimSpace(strings.Repeat(fmt.Sprintf("%d\t", u.UID), 4)),
		} {
			if got := status(t, c, key); got != want {
				t.Errorf("%s = %s, want %s", key, got, want)
			}
		}
		sh := launch.Shell(launch.Look(t, "sh"), "ulimit -Sn; ulimit -Hn; ls /proc/self/fd")
		sh.User, sh.Setup = u, setup
		if r := sh.Run(t); r.Stdout != "70\n80\n0\n1\n2\n3\n" {
			t.Errorf("limits and descriptors: %v", r)
		}
		// Closed descriptors stay closed behind a stage.
		sh = launch.Shell(launch.Look(t, "sh"), `[ -e /proc/$$/fd/2 ] || echo closed`)
		sh.User, sh.Setup, sh.Closed = u, setup, []int{2}
		if r := sh.Run(t); r.Stdout != "closed\n" {
			t.Errorf("descriptor 2: %v", r)
		}
	})
}

// Signals that whoever runs the tests ignores or blocks do not reach what the
// tests start; neither do a descriptor and the umask.
func TestFresh(t *testing.T) {
	const inner = "LAUNCH_TEST_FRESH"
	const shown = `grep -E '^(Umask|Sig(Ign|Blk))' /proc/self/status; [ -e /proc/self/fd/9 ] && echo 9; true`
	if os.Getenv(inner) != "" {
		out, err := exec.Command("/bin/sh", "-c", shown).CombinedOutput()
		fmt.Fprintf(os.Stdout, "<%s%v>", out, err)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	umask := 0o077
	setup := &launch.Setup{ // 32 is one of the C library's own
		Umask:  &umask,
		Ignore: []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE, syscall.SIGTERM, 32, 64},
		Block:  []syscall.Signal{syscall.SIGUSR2, 40},
	}
	run := func(script string) string {
		c := launch.Shell(launch.Look(t, "bash"), "exec 9</dev/null; "+script)
		c.Setup = setup
		c.Env = []string{"PATH=/usr/bin:/bin", inner + "=1", "self=" + self, "GOCOVERDIR=" + t.TempDir()}
		return c.Run(t).Stdout
	}
	if got, want := run(shown), "Umask:\t0077\nSigBlk:\t0000008000000800\nSigIgn:\t8000000080005003\n9\n"; got != want {
		t.Fatalf("the state to begin with: %q, want %q", got, want)
	}
	const want = "<Umask:\t0022\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n<nil>>"
	if got := run(`exec "$self" -test.run='^TestFresh$' -test.v`); !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSetupErrno(t *testing.T) {
	launch.Need(t, launch.IsRoot)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		c := launch.Shell(launch.Look(t, "sh"), "umask; mkdir "+launch.Nobody.Dir(t)+"/d && echo made")
		c.User = u
		c.Setup = &launch.Setup{Errno: []launch.Errno{
			{Nr: unix.SYS_UMASK, If: true, Arg0: 0o777, Errno: unix.EPERM},
			{Nr: unix.SYS_MKDIRAT, Errno: unix.ENOSYS},
			{Nr: 83, Errno: unix.ENOSYS},
		}}
		r := c.Run(t)
		if r.Code == 0 || !strings.Contains(r.Stderr, "Function not implemented") {
			t.Errorf("mkdir under the filter: %v", r)
		}
		if got := status(t, c, "NoNewPrivs"); got != "0" {
			t.Errorf("NoNewPrivs = %s, want 0", got)
		}
	})
}

func TestResult(t *testing.T) {
	sh := launch.Look(t, "sh")
	if r := launch.Shell(sh, "echo o; echo e >&2; exit 37").Run(t); r.Code != 37 || r.Stdout != "o\n" || r.Stderr != "e\n" || r.Signal != 0 {
		t.Error(r)
	}
	if r := launch.Shell(sh, "kill -TERM $$").Run(t); r.Signal != syscall.SIGTERM || r.Code != -1 {
		t.Error(r)
	}
	c := launch.Shell(sh, "cat")
	c.Stdin = strings.NewReader("in")
	if r := c.Run(t); r.Stdout != "in" {
		t.Error(r)
	}
	if err := (launch.Cmd{Path: launch.Nowhere}).StartError(); err == nil {
		t.Error("a program that does not exist was started")
	}
}

// Every binary can be read and run by every user.
func TestBinaries(t *testing.T) {
	dir := launch.Dir(t)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		shim := launch.Install(t, dir, "sh", launch.Record{Real: launch.Look(t, "sh")})
		r := launch.Cmd{Path: shim, Args: []string{"sh", "-c", "echo ran"}, User: u}.Run(t)
		if r.Code != 0 || r.Stdout != "ran\n" || r.Stderr != "" {
			t.Error(r)
		}
		copied := launch.Copy(t, dir, "cat")
		r = launch.Cmd{Path: copied, Args: []string{"cat"}, Stdin: strings.NewReader("x"), User: u}.Run(t)
		if r.Code != 0 || r.Stdout != "x" {
			t.Error(r)
		}
	})
}

func TestDir(t *testing.T) {
	var dir string
	t.Run("made", func(t *testing.T) { dir = launch.Dir(t) })
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("stat after the test: %v", err)
	}
}
