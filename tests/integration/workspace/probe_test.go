package workspace_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// The probe is this test binary as the program behind the shim: it tries one
// thing after the other and prints how each went, "ok" or the errno.

const probeName = "probe"

// A try is one operation on a path or address; To is the second path of those
// that have two.
type try struct{ Op, Path, To string }

func probe() {
	var tries []try
	if err := json.Unmarshal([]byte(os.Args[1]), &tries); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(98)
	}
	for _, t := range tries {
		op, ok := operations[t.Op]
		if !ok {
			fmt.Fprintf(os.Stderr, "no operation %q\n", t.Op)
			os.Exit(98)
		}
		fmt.Fprintln(os.Stdout, outcome(op(t.Path, t.To)))
	}
	os.Exit(0)
}

func outcome(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	default:
		return err.Error()
	}
}

func open(flags int) func(string, string) error {
	return func(path, _ string) error {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o644)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
}

var operations = map[string]func(path, to string) error{
	"read":          open(unix.O_RDONLY),
	"write":         open(unix.O_WRONLY),
	"read-write":    open(unix.O_RDWR),
	"append":        open(unix.O_WRONLY | unix.O_APPEND),
	"create":        open(unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL),
	"create-or":     open(unix.O_WRONLY | unix.O_CREAT),
	"open-truncate": open(unix.O_WRONLY | unix.O_TRUNC),
	"read-truncate": open(unix.O_RDONLY | unix.O_TRUNC),
	"tmpfile":       open(unix.O_WRONLY | unix.O_TMPFILE),
	"read-all": func(path, _ string) error {
		_, err := os.ReadFile(path)
		return err
	},
	"list": func(path, _ string) error {
		_, err := os.ReadDir(path)
		return err
	},
	"text": func(path, text string) error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString(text)
		return err
	},
	"truncate": func(path, _ string) error { return unix.Truncate(path, 0) },
	"mkdir":    func(path, _ string) error { return unix.Mkdir(path, 0o755) },
	"rmdir":    func(path, _ string) error { return unix.Rmdir(path) },
	"unlink":   func(path, _ string) error { return unix.Unlink(path) },
	"fifo":     func(path, _ string) error { return unix.Mknod(path, unix.S_IFIFO|0o644, 0) },
	"file-node": func(path, _ string) error {
		return unix.Mknod(path, unix.S_IFREG|0o644, 0)
	},
	"device": func(path, _ string) error {
		return unix.Mknod(path, unix.S_IFCHR|0o644, int(unix.Mkdev(1, 3)))
	},
	"socket": func(path, _ string) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Bind(fd, &unix.SockaddrUnix{Name: path})
	},
	"rename": unix.Rename,
	"exchange": func(path, to string) error {
		return unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	},
	"link":    unix.Link,
	"symlink": func(path, to string) error { return unix.Symlink(to, path) },
	"owner":   func(path, _ string) error { return unix.Lchown(path, os.Getuid(), os.Getgid()) },
	"xattr":   func(path, _ string) error { return unix.Lsetxattr(path, "user.shim-test", []byte("x"), 0) },
	"chmod":   func(path, _ string) error { return unix.Chmod(path, 0o700) },
	"times":   func(path, _ string) error { return unix.Utimes(path, []unix.Timeval{{Sec: 1}, {Sec: 1}}) },
	// By a directory that was opened before, and by the magic link of a
	// descriptor.
	"create-at": func(dir, name string) error {
		d, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		defer unix.Close(d)
		fd, err := unix.Openat(d, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
		if err == nil {
			unix.Close(fd)
		}
		return err
	},
	"reopen": func(path, _ string) error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return open(unix.O_WRONLY)("/proc/self/fd/"+strconv.Itoa(fd), "")
	},
	"create-in": func(dir, name string) error { // after chdir
		if err := unix.Chdir(dir); err != nil {
			return err
		}
		return open(unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)(name, "")
	},

	"tcp-connect": dial("tcp4"),
	"udp-send": func(addr, _ string) error {
		c, err := net.Dial("udp4", addr)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte("x"))
		return err
	},
	"tcp-bind": func(addr, _ string) error {
		l, err := net.Listen("tcp4", addr)
		if err == nil {
			l.Close()
		}
		return err
	},
	"unix-connect": dial("unix"),
	"unix-bind": func(path, _ string) error {
		l, err := net.Listen("unix", path)
		if err == nil {
			l.Close()
		}
		return err
	},
	"kill": func(pid, _ string) error {
		n, err := strconv.Atoi(pid)
		if err != nil {
			return err
		}
		return unix.Kill(n, 0)
	},
	// A request that no character device but a terminal knows.
	"ioctl": func(path, _ string) error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		return err
	},
	"kill-self": func(string, string) error { return unix.Kill(os.Getpid(), 0) },
}

func dial(network string) func(string, string) error {
	return func(addr, _ string) error {
		c, err := net.Dial(network, addr)
		if err == nil {
			c.Close()
		}
		return err
	}
}

// probeFile is a copy of this binary that every user can run.
func probeFile(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	return launch.WriteProgram(t, filepath.Join(launch.Dir(t), probeName), data)
}

// try runs the tries in one launch; without a policy they are tried unconfined.
func (p *place) try(t *testing.T, policy m, tries ...try) []string {
	t.Helper()
	text, err := json.Marshal(tries)
	if err != nil {
		t.Fatal(err)
	}
	c := launch.Cmd{Path: p.probe, Args: []string{probeName, string(text)}, Env: p.env(), Dir: p.ws, User: p.u}
	if policy != nil {
		c.Policy = policy
	}
	r := c.Run(t)
	lines := strings.Fields(r.Stdout)
	if r.Code != 0 || len(lines) != len(tries) {
		t.Fatalf("the probe gave %d results for %d tries: %v", len(lines), len(tries), r)
	}
	return lines
}

// want tries each operation under policy and compares the outcomes.
func (p *place) want(t *testing.T, policy m, rows map[try]string) {
	t.Helper()
	var tries []try
	for tr := range rows {
		tries = append(tries, tr)
	}
	for i, got := range p.try(t, policy, tries...) {
		if want := rows[tries[i]]; got != want {
			t.Errorf("%s %s %s: %s, want %s", tries[i].Op, tries[i].Path, tries[i].To, got, want)
		}
	}
}
