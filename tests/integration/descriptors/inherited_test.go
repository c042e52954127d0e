package descriptors

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch/ring"
)

func TestMain(m *testing.M) { launch.Main(m) }

type object = map[string]any

// asks prints which of the numbers in $* are open, by a question that needs no
// /proc: dup of the descriptor.
const asks = `for fd; do if eval "true <&$fd" 2>/dev/null; then printf '%s ' $fd; fi; done`

// numbers are what the tests hand over: dash can name one digit only.
var numbers = []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

func open(t *testing.T, path string, flags int) *os.File {
	t.Helper()
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	t.Cleanup(func() { f.Close() })
	return f
}

func socket(t *testing.T, family, kind int) *os.File {
	t.Helper()
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "socket")
	t.Cleanup(func() { f.Close() })
	return f
}

func pair(t *testing.T, kind int) *os.File {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	mine, theirs := os.NewFile(uintptr(fds[0]), "mine"), os.NewFile(uintptr(fds[1]), "theirs")
	t.Cleanup(func() { mine.Close(); theirs.Close() })
	return theirs
}

func listener(t *testing.T, dir string) *os.File {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "listener"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func newRing(t *testing.T, flags uint32) *os.File {
	t.Helper()
	r, err := ring.New(flags)
	if err != nil {
		t.Skipf("this kernel makes no io_uring: %v", err)
	}
	f := os.NewFile(uintptr(r.FD), "ring")
	t.Cleanup(func() { f.Close() })
	return f
}

func eventfd(t *testing.T) *os.File {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "eventfd")
	t.Cleanup(func() { f.Close() })
	return f
}

// place makes secret/, secret/own/ and work/, with a file f in each.
func place(t *testing.T, u launch.User) string {
	t.Helper()
	dir := u.Dir(t)
	for _, name := range []string{"secret", "secret/own", "work"} {
		u.Mkdir(t, filepath.Join(dir, name), 0o755)
		u.Write(t, filepath.Join(dir, name, "f"), "text\n", 0o644)
	}
	return dir
}

func TestDescriptorsStayAsAsked(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		dir := place(t, u)
		at := func(name string) string { return filepath.Join(dir, name) }
		hidden := object{"hidden": []string{at("secret")}, "exposed": []string{at("secret/own")}}
		with := func(o object, key string, value any) object {
			out := object{key: value}
			for k, v := range o {
				out[k] = v
			}
			return out
		}
		files := func(t *testing.T) []*os.File {
			return []*os.File{
				open(t, at("work/f"), unix.O_RDONLY), open(t, at("work"), unix.O_RDONLY),
				open(t, at("secret/f"), unix.O_RDONLY), open(t, at("secret"), unix.O_PATH|unix.O_DIRECTORY),
				open(t, at("secret/own/f"), unix.O_RDWR), open(t, at("secret/own"), unix.O_RDONLY), open(t, at("secret/f"), unix.O_WRONLY),
			}
		}
		sockets := func(t *testing.T) []*os.File {
			return []*os.File{
				pair(t, unix.SOCK_STREAM), pair(t, unix.SOCK_DGRAM), socket(t, unix.AF_UNIX, unix.SOCK_STREAM), listener(t, u.Dir(t)),
				socket(t, unix.AF_INET, unix.SOCK_STREAM), socket(t, unix.AF_INET6, unix.SOCK_DGRAM), socket(t, unix.AF_NETLINK, unix.SOCK_RAW),
			}
		}
		anonymous := func(t *testing.T) []*os.File {
			return []*os.File{newRing(t, 0), eventfd(t), newRing(t, ring.SQPoll)}
		}
		for _, c := range []struct {
			name   string
			extra  func(*testing.T) []*os.File
			policy object
			stay   string
		}{
			{"nothing asked", files, object{}, "3 4 5 6 7 8 9"},
			{"files", files, hidden, "3 4 7 8"},
			{"files, close", files, with(hidden, "descriptors", "close"), ""},
			{"files, list", files, with(hidden, "descriptors", object{"keep": []int{4, 5, 7, 99}}), "4 7"},
			{"list alone", files, object{"descriptors": object{"keep": []int{5}}}, "5"},
			{"close alone", files, object{"descriptors": "close"}, ""},
			{"sockets", sockets, hidden, "3 4 5 6 7 8 9"},
			{"sockets, network denied", sockets, object{"network": "deny"}, "3 4 5 6"},
			{"sockets, network by port", sockets, object{"network": object{"udp": "allow"}}, "3 4 5 6"},
			{"sockets, network denied, list", sockets, object{"network": "deny", "descriptors": object{"keep": []int{3, 7}}}, "3"},
			{"sockets, isolated", sockets, object{"isolate": []string{"unix-sockets"}}, "3 6 7 8 9"},
			{"rings", anonymous, object{"isolate": []string{"tty"}}, "4"},
			{"rings, listed", anonymous, object{"descriptors": object{"keep": []int{3, 4, 5}}}, "4"},
			{"rings, nothing asked", anonymous, object{}, "3 4 5"},
		} {
			t.Run(c.name, func(t *testing.T) {
				sh := launch.Install(t, u.Dir(t), "sh", launch.Record{Real: "/bin/sh"})
				report := filepath.Join(u.Dir(t), "report")
				c.policy["version"], c.policy["report"] = 1, report
				extra := c.extra(t)
				cmd := launch.Shell(sh, asks, numbers...)
				cmd.User, cmd.Extra = u, extra
				all := strings.Join(numbers[:3+len(extra)], " ")
				if r := cmd.Run(t); strings.TrimSpace(r.Stdout) != all {
					t.Fatalf("without a policy: %v", r)
				}
				cmd.Policy = c.policy
				r := cmd.Run(t)
				if want := strings.TrimSpace("0 1 2 " + c.stay); strings.TrimSpace(r.Stdout) != want || r.Stderr != "" {
					t.Errorf("want %s: %v", want, r)
				}
				// What was closed is reported, and nothing else.
				var closed []string
				for _, d := range launch.Report(t, report).Descriptors {
					if !d.Closed || d.Why == "" || d.LeadsTo == "" {
						t.Errorf("reported: %+v", d)
					}
					closed = append(closed, strconv.Itoa(d.FD))
				}
				want := slices.DeleteFunc(slices.Clone(numbers[3:3+len(extra)]), func(n string) bool { return slices.Contains(strings.Fields(c.stay), n) })
				if !slices.Equal(closed, want) {
					t.Errorf("reported as closed: %v, want %v", closed, want)
				}
			})
		}
	})
}

// What stands on 0 to 2 is never closed, and reported.
func TestStandardDescriptorsStayAndAreReported(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		dir := place(t, u)
		sh := launch.Install(t, u.Dir(t), "sh", launch.Record{Real: "/bin/sh"})
		report := filepath.Join(u.Dir(t), "report")
		secret := filepath.Join(dir, "secret")
		r := launch.Cmd{
			Path: sh, Args: []string{"sh", "-c", "cat; echo more >&2"}, User: u,
			Stdin: open(t, secret+"/f", unix.O_RDONLY), Stderr: open(t, secret+"/f", unix.O_WRONLY|unix.O_APPEND),
			Policy: object{"version": 1, "hidden": []string{secret}, "descriptors": "close", "report": report},
		}.Run(t)
		if r.Stdout != "text\n" || r.Code != 0 {
			t.Error(r)
		}
		if text, err := os.ReadFile(secret + "/f"); err != nil || string(text) != "text\nmore\n" {
			t.Errorf("%q, %v", text, err)
		}
		var said []string
		for _, d := range launch.Report(t, report).Descriptors {
			said = append(said, fmt.Sprintf("%d %v %s", d.FD, d.Closed, d.LeadsTo))
		}
		if want := []string{"0 false " + secret + "/f", "2 false " + secret + "/f"}; !slices.Equal(said, want) {
			t.Errorf("reported: %q, want %q", said, want)
		}
	})
}

// A hidden directory that was moved since it was opened is known by what it
// is, and by what stands above it.
func TestMovedHiddenDirectoryIsClosed(t *testing.T) {
	launch.Need(t, launch.Landlock)
	u := launch.Current()
	dir := place(t, u)
	u.Mkdir(t, filepath.Join(dir, "secret/deep"), 0o755)
	sh := launch.Install(t, u.Dir(t), "sh", launch.Record{Real: "/bin/sh"})
	deep := open(t, filepath.Join(dir, "secret/deep"), unix.O_RDONLY)
	if err := os.Rename(filepath.Join(dir, "secret"), filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	cmd := launch.Shell(sh, asks, numbers...)
	cmd.User, cmd.Extra = u, []*os.File{deep}
	cmd.Policy = object{"version": 1, "hidden": []string{filepath.Join(dir, "moved")}}
	if r := cmd.Run(t); strings.TrimSpace(r.Stdout) != "0 1 2" {
		t.Error(r)
	}
}

// Without /proc, the descriptors are still found and told apart.
func TestDescriptorsAreToldApartWithoutProc(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	dir := place(t, launch.Root)
	sh := launch.Install(t, launch.Root.Dir(t), "sh", launch.Record{Real: "/bin/sh"})
	secret := filepath.Join(dir, "secret")
	cmd := launch.Cmd{
		Path: "/bin/sh", Args: []string{
			"sh", "-c", `mount --make-rprivate / && mount -t tmpfs none /proc || exit 9
export SANDBOX_EXEC_SHIM_POLICY="$0"; exec "$1" -c "$2" sh 0 1 2 3 4 5 6 7 8 9`,
			`{"version":1,"required":false,"network":"deny","hidden":["` + secret + `"]}`, sh, asks,
		},
		Extra: []*os.File{
			open(t, secret, unix.O_RDONLY), newRing(t, 0), socket(t, unix.AF_INET, unix.SOCK_DGRAM),
			eventfd(t), pair(t, unix.SOCK_STREAM), open(t, filepath.Join(dir, "work/f"), unix.O_RDONLY),
		},
		Sys: &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS},
	}
	// The last is a file beside what is hidden, but nothing tells that.
	if r := cmd.Run(t); strings.TrimSpace(r.Stdout) != "0 1 2 6 7" {
		t.Error(r)
	}
}

// Node talks to its children over a unix socket that stands above 2.
func TestNodeTalksToItsChildren(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Program("node"))
	const parent = `const cp = require("child_process");
const child = cp.fork(process.argv[2], { execPath: process.argv[3], env: { ...process.env, SANDBOX_EXEC_SHIM_POLICY: process.argv[4] } });
child.on("message", m => { console.log("child says", m); child.send("end"); });
child.on("exit", (code, signal) => console.log("exit", code, signal));`
	const child = `process.on("message", m => { if (m === "end") process.disconnect(); }); process.send("hello");`
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		dir := u.Dir(t)
		node := launch.Look(t, "node")
		if real, err := exec.Command(node, "-p", "process.execPath").Output(); err == nil {
			node = strings.TrimSpace(string(real))
		}
		shim := launch.Install(t, dir, "node", launch.Record{Real: node})
		u.Write(t, filepath.Join(dir, "parent.js"), parent, 0o644)
		u.Write(t, filepath.Join(dir, "child.js"), child, 0o644)
		for _, c := range []struct{ policy, want string }{
			{"", "child says hello\nexit 0 null\n"},
			{`{"version":1,"network":"deny","isolate":["signals","abstract-unix","unix-sockets","proc","tty"],"hidden":["/srv/none"]}`, "child says hello\nexit 0 null\n"},
			{`{"version":1,"descriptors":{"keep":[3]}}`, "child says hello\nexit 0 null\n"},
			// The control: the channel is one of those.
			{`{"version":1,"descriptors":"close"}`, ""},
		} {
			r := launch.Cmd{
				Path: node, Args: []string{"node", filepath.Join(dir, "parent.js"), filepath.Join(dir, "child.js"), shim, c.policy}, User: u,
			}.Run(t)
			if c.want != "" && r.Stdout != c.want || c.want == "" && strings.Contains(r.Stdout, "says") {
				t.Errorf("%s: want %q: %v", c.policy, c.want, r)
			}
		}
	})
}
