package network

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch/ring"
)

func TestMain(m *testing.M) { launch.Main(m) }

// sender builds the program that sends, once, beside the shim.
func sender(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(filepath.Dir(launch.Shim(tb)), "send")
	buildSender.Do(func() {
		cmd := exec.Command("go", "build", "-o", path, "./testdata/send")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			errSender = fmt.Errorf("build the sender: %w\n%s", err, out)
		}
	})
	if errSender != nil {
		tb.Fatal(errSender)
	}
	return path
}

var (
	buildSender sync.Once
	errSender   error
)

// inherit makes the descriptors of a row: one that the launch inherits, what
// the test holds until the launch has ended, and the last argument of send.
type inherit func(t *testing.T, r *recorder, token string) (file *os.File, arrived func() string, last string)

// inherited is the number of what the sender inherits: beyond those that its
// runtime opens itself.
const inherited = 20

func none() string { return "" }

// A way is one row: how a token is sent, and what stops it.
type way struct {
	name string
	// script runs under sh, with $SEND, $TOKEN, $PORT, $NETLINK and $RING; ""
	// means that the sender is started with the name of the row.
	script  string
	program string
	inherit inherit
	stdin   bool // what is inherited stands on 0, not on 20
	// made rows make a socket that nothing records; what counts is that.
	made bool
	// lacks holds errnos by which this kernel or user may lack the way.
	lacks string
	// denied is what the sender says under deny.
	denied string
	// open holds the policies under which it goes through: the ones below.
	open string
}

// The policies: the port is the recorder's in tcp, another in udp.
const (
	tcp  = "tcp"
	udp  = "udp"
	both = "tcp udp"
)

var ways = []way{
	{name: "tcp4", denied: "EACCES", open: tcp},
	{name: "tcp4-tcp", denied: "EACCES", open: tcp},
	{name: "tcp6", denied: "EACCES", open: tcp, lacks: "EAFNOSUPPORT EADDRNOTAVAIL"},
	{name: "tcp6-mapped", denied: "EACCES", open: tcp, lacks: "EAFNOSUPPORT"},
	{name: "tcp-after-exec", denied: "EACCES", open: tcp},
	{name: "tcp-after-fork", script: `("$SEND" tcp4 "$TOKEN" "$PORT" 0 -; :) & wait`, denied: "EACCES", open: tcp},
	{name: "tcp-after-session", script: `setsid -w "$SEND" tcp4 "$TOKEN" "$PORT" 0 -`, denied: "EACCES", open: tcp},
	{name: "tcp-bound", denied: "EACCES", open: tcp},
	{name: "mptcp4", denied: "EACCES", lacks: "EPROTONOSUPPORT ENOPROTOOPT"},
	{name: "mptcp6", denied: "EACCES", lacks: "EPROTONOSUPPORT EAFNOSUPPORT ENOPROTOOPT EADDRNOTAVAIL"},
	{name: "fastopen-sendto", denied: "EACCES", lacks: "EOPNOTSUPP"},
	{name: "fastopen-sendmsg", denied: "EACCES", lacks: "EOPNOTSUPP"},
	{name: "fastopen-sendmmsg", denied: "EACCES", lacks: "EOPNOTSUPP"},
	{name: "fastopen-connect", denied: "EACCES", open: tcp, lacks: "EOPNOTSUPP"},
	{name: "udp4-sendto", denied: "EACCES", open: udp},
	{name: "udp4-connect", denied: "EACCES", open: udp},
	{name: "udp4-sendmsg", denied: "EACCES", open: udp},
	{name: "udp4-sendmmsg", denied: "EACCES", open: udp},
	{name: "udp6-sendto", denied: "EACCES", open: udp, lacks: "EAFNOSUPPORT EADDRNOTAVAIL ENETUNREACH"},
	{name: "udplite", denied: "EACCES", lacks: "EPROTONOSUPPORT"},
	{name: "icmp", denied: "EACCES", lacks: "EACCES"}, // who may ping is a sysctl
	{name: "raw-udp", denied: "EACCES", lacks: "EPERM"},
	{name: "packet", denied: "EACCES", lacks: "EPERM EAFNOSUPPORT"},
	{name: "netlink", denied: "EACCES", lacks: "EPROTONOSUPPORT"},
	{name: "sctp", denied: "EACCES", lacks: "EPROTONOSUPPORT ESOCKTNOSUPPORT ECONNREFUSED"},
	{name: "sctp-seqpacket", denied: "EACCES", lacks: "EPROTONOSUPPORT ESOCKTNOSUPPORT ECONNREFUSED"},
	{name: "dccp", denied: "EACCES", lacks: "EPROTONOSUPPORT ESOCKTNOSUPPORT ECONNREFUSED"},
	{name: "smc", denied: "EACCES", lacks: "EAFNOSUPPORT"},
	{name: "vsock", denied: "EACCES", lacks: "EAFNOSUPPORT ENODEV ECONNRESET ETIMEDOUT"},
	{name: "tipc", made: true, denied: "EACCES", lacks: "EAFNOSUPPORT"},
	{name: "alg", made: true, denied: "EACCES", lacks: "EAFNOSUPPORT"},
	{name: "int80", denied: "ENOSYS", lacks: "ENOSYS"},
	{name: "x32", denied: "ENOSYS", lacks: "ENOSYS"},
	{name: "ring", denied: "ENOSYS", lacks: "ENOSYS EPERM"},
	{name: "ring-inherited", inherit: inheritRing(0, false), denied: "EBADF", lacks: "ENOSYS EPERM"},
	{name: "ring-personality", script: `"$SEND" ring-inherited "$TOKEN" "$PORT" 0 "$RING"`, inherit: inheritRing(0, true), denied: "EBADF", lacks: "ENOSYS EPERM"},
	{name: "ring-sqpoll", inherit: inheritPolled, denied: "EBADF", lacks: "ENOSYS EPERM"},
	{name: "write-20", inherit: inheritConn("tcp4"), denied: "EBADF"},
	{name: "write-20-udp", script: `"$SEND" write-20 "$TOKEN" "$PORT" 0 -`, inherit: inheritConn("udp4"), denied: "EBADF"},
	{name: "sendto-20", inherit: inheritSocket(unix.SOCK_DGRAM), denied: "EBADF"},
	{name: "connect-20", inherit: inheritSocket(unix.SOCK_STREAM), denied: "EBADF"},
	{name: "accept-20", inherit: inheritListener, denied: "EBADF"},
	// What stands on 0 to 2 stays.
	{name: "write-0", inherit: inheritConn("tcp4"), stdin: true, denied: "sent", open: both + " none deny"},

	{name: "bash-tcp", program: "bash", script: `bash -c 'echo "$TOKEN" >/dev/tcp/127.0.0.1/$PORT'`, open: tcp},
	{name: "bash-udp", program: "bash", script: `bash -c 'echo "$TOKEN" >/dev/udp/127.0.0.1/$PORT'`, open: udp},
	{name: "curl", program: "curl", script: `curl -s -m 60 "http://127.0.0.1:$PORT/$TOKEN"`, open: tcp},
	{name: "python", program: "python3", script: `python3 -Sc 'import os, socket
s = socket.create_connection(("127.0.0.1", int(os.environ["PORT"])))
s.sendall((os.environ["TOKEN"] + "\n").encode())'`, open: tcp},
	{name: "node", program: "node", script: `node -e 'const s = require("net").connect(process.env.PORT, "127.0.0.1");
s.on("error", () => process.exit(1)); s.end(process.env.TOKEN + "\n")'`, open: tcp},
	{name: "node-dgram", program: "node", script: `node -e 'const s = require("dgram").createSocket("udp4");
s.on("error", () => process.exit(1)); s.send(process.env.TOKEN, process.env.PORT, "127.0.0.1", () => s.close())'`, open: udp},
}

func inheritRing(flags uint32, register bool) inherit {
	return func(t *testing.T, r *recorder, _ string) (*os.File, func() string, string) {
		made, err := ring.New(flags)
		if err == nil && register {
			err = made.Register()
		}
		if err != nil {
			t.Logf("this kernel lacks such a ring: %v", err)
			return nil, none, "-"
		}
		return os.NewFile(uintptr(made.FD), "ring"), none, made.String()
	}
}

// inheritPolled hands over a ring that a thread of this process serves: what
// it is asked for is done with this process's memory and descriptors.
func inheritPolled(t *testing.T, r *recorder, token string) (*os.File, func() string, string) {
	file, _, text := inheritRing(ring.SQPoll, false)(t, r, token)
	if file == nil {
		return nil, none, text
	}
	conn, _, _ := inheritConn("tcp4")(t, r, token)
	data := []byte(token + "\n")
	return file, func() string {
		conn.Close()
		runtime.KeepAlive(data)
		return ""
	}, fmt.Sprintf("%d,%d,%d,%s", conn.Fd(), uintptr(unsafe.Pointer(&data[0])), len(data), text)
}

func inheritConn(network string) inherit {
	return func(t *testing.T, r *recorder, _ string) (*os.File, func() string, string) {
		c, err := net.Dial(network, "127.0.0.1:"+strconv.Itoa(r.port))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return fileOf(t, c), none, "-"
	}
}

func inheritSocket(kind int) inherit {
	return func(t *testing.T, r *recorder, _ string) (*os.File, func() string, string) {
		fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return os.NewFile(uintptr(fd), "socket"), none, "-"
	}
}

func inheritListener(t *testing.T, _ *recorder, _ string) (*os.File, func() string, string) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return fileOf(t, l), func() string {
		defer c.Close()
		buf := make([]byte, 256)
		n, _ := c.Read(buf) // ends when the last descriptor of the listener is closed
		return string(buf[:n])
	}, "-"
}

func fileOf(t *testing.T, c any) *os.File {
	t.Helper()
	f, err := c.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// try sends one token and reports what the sender said and whether it arrived.
func (w way) try(t *testing.T, r *recorder, u launch.User, shimPath, token string, policy any) (said string, arrived bool, result launch.Result) {
	t.Helper()
	var file *os.File
	late, last := none, "-"
	if w.inherit != nil {
		if file, late, last = w.inherit(t, r, token); file == nil {
			return "ENOSYS", false, launch.Result{}
		}
	}
	c := launch.Cmd{Path: shimPath, User: u, Policy: policy}
	script := w.script
	if script == "" {
		script = `exec "$SEND" ` + w.name + ` "$TOKEN" "$PORT" "$NETLINK" "$RING"`
	}
	c.Args = []string{"sh", "-c", script}
	c.Env = append(launch.DefaultEnv[:len(launch.DefaultEnv):len(launch.DefaultEnv)], "SEND="+sender(t), "TOKEN="+token,
		"PORT="+strconv.Itoa(r.port), "NETLINK="+strconv.Itoa(int(r.netlink)), "RING="+last)
	switch {
	case w.stdin:
		c.Stdin = file
	case file != nil:
		c.Extra = append(make([]*os.File, inherited-3), file)
	}
	result = c.Run(t)
	if file != nil {
		file.Close()
	}
	said = strings.TrimSpace(result.Stdout)
	arrived = strings.Contains(late(), token) || r.arrived(t, token) || w.made && said == "sent"
	return said, arrived, result
}

func TestNothingArrivesThatIsDenied(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.ABIAtLeast(4))
	r := newRecorder(t)
	object := func(change map[string]any) any { return map[string]any{"version": 1, "network": change} }
	policies := []struct {
		name   string
		policy any
	}{
		{"deny", map[string]any{"version": 1, "network": "deny"}},
		{"tcp", object(map[string]any{"connectTCP": []int{r.port}, "udp": "deny"})},
		{"udp", object(map[string]any{"connectTCP": []int{1}, "bindTCP": []int{}, "udp": "allow"})},
		{"none", object(map[string]any{"connectTCP": []int{}, "bindTCP": []int{}, "udp": "deny"})},
	}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		sh := launch.Install(t, u.Dir(t), "sh", launch.Record{Real: "/bin/sh"})
		control := 0
		for _, w := range ways {
			t.Run(w.name, func(t *testing.T) {
				if w.program != "" {
					launch.Need(t, launch.Program(w.program))
				}
				token := func(policy string) string { return "token-" + u.Name + "-" + w.name + "-" + policy + "-end" }
				said, arrived, result := w.try(t, r, u, sh, token("open"), nil)
				switch {
				case arrived:
					control++
				case said != "" && strings.Contains(w.lacks, said):
					t.Logf("this machine lacks it for %s: %s", u.Name, said)
				default:
					t.Fatalf("without a policy it must arrive: %q\n%v", said, result)
				}
				possible := arrived
				for _, p := range policies {
					said, arrived, result := w.try(t, r, u, sh, token(p.name), p.policy)
					want := possible && strings.Contains(" "+w.open+" ", " "+p.name+" ")
					if arrived != want {
						t.Errorf("%s: arrived: %v, want %v\n%v", p.name, arrived, want, result)
					}
					if p.name == "deny" && w.denied != "" && said != w.denied && (w.inherit == nil || said != "ENOSYS") {
						t.Errorf("deny: said %q, want %q\n%v", said, w.denied, result)
					}
					if arrived == (result.Stdout != "sent\n") && w.script == "" && !w.stdin {
						t.Errorf("%s: arrived %v, and the sender says %q", p.name, arrived, said)
					}
				}
			})
		}
		if control < 20 {
			t.Errorf("only %d ways arrive without a policy", control)
		}
		t.Logf("%d ways arrive without a policy", control)
	})
}
