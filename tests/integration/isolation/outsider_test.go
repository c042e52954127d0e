package isolation

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
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
