package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/child"
)

func file(path string) rules.Destination { return rules.Destination{Path: path} }

// close closes the descriptor of a file that was opened.
func (f *File) close() {
	if f != nil {
		unix.Close(f.fd)
	}
}

// Only a regular file of one's own with a single name is written to, and nothing else
// is waited for or changed.
func TestOnlyAnOwnFileIsWritten(t *testing.T) {
	defer unix.Umask(unix.Umask(0))
	dir := child.Dir(t)
	errnotest.Touch(t, dir+"/there")
	errnotest.Touch(t, dir+"/first")
	errnotest.Must(t, os.Link(dir+"/first", dir+"/second"))
	errnotest.Must(t, os.Symlink("there", dir+"/link"))
	errnotest.Must(t, os.Symlink("made", dir+"/dangling"))
	errnotest.Must(t, unix.Mkfifo(dir+"/fifo", 0o600))
	reader, err := unix.Open(dir+"/fifo", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	errnotest.Must(t, err)
	defer unix.Close(reader)
	rows := map[string]string{
		"new": "", "there": "", "link": "is a symlink", "dangling": "is a symlink", "second": "more than one name",
		"fifo": "not a regular file", "gone/x": "no such file",
	}
	if os.Geteuid() == 0 {
		errnotest.Touch(t, dir+"/other")
		errnotest.Must(t, os.Chown(dir+"/other", child.Nobody, -1))
		rows["other"] = "belongs to another user"
	}
	before := files(t)
	for name, want := range rows {
		f, err := Open(file(dir+"/"+name), nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || (f == nil) != (err != nil) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if err == nil {
			if flags, err := unix.FcntlInt(uintptr(f.fd), unix.F_GETFD, 0); err != nil || flags != unix.FD_CLOEXEC {
				t.Errorf("%s: the program would inherit it: %#x, %v", name, flags, err)
			}
			if f.Takes(f.fd) {
				t.Errorf("%s: was not inherited", name)
			}
		}
		f.close()
	}
	if after := files(t); after != before {
		t.Errorf("%d files are open, were %d", after, before)
	}
	if info, err := os.Stat(dir + "/new"); err != nil || info.Mode() != 0o600 {
		t.Errorf("new: %v, %v", info, err)
	}
	if _, err := os.Lstat(dir + "/made"); err == nil {
		t.Error("made through a symlink")
	}
	if f, err := Open(rules.Destination{}, nil); f != nil || err != nil || f.Takes(0) {
		t.Errorf("nowhere: %v, %v", f, err)
	}
	errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_FSTAT}, unix.EIO, func() {
		if f, err := Open(file(dir+"/there"), nil); !errors.Is(err, unix.EIO) {
			t.Errorf("not looked at: %v, %v", f, err)
		}
	})
}

func files(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	errnotest.Must(t, err)
	return len(entries)
}

// A line is added behind those that are there, whole or with an error.
func TestLinesAreAppended(t *testing.T) {
	path := child.Dir(t) + "/log"
	errnotest.Must(t, os.WriteFile(path, []byte("old\n"), 0o600))
	one, err := Open(file(path), nil)
	errnotest.Must(t, err)
	defer one.close()
	two, err := Open(file(path), nil)
	errnotest.Must(t, err)
	defer two.close()
	for i, f := range []*File{one, two, one} {
		if n, err := f.Write(fmt.Appendf(nil, "%d\n", i)); n != 2 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if text, err := os.ReadFile(path); string(text) != "old\n0\n1\n2\n" {
		t.Errorf("%q, %v", text, err)
	}
	var p [2]int
	errnotest.Must(t, unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK))
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	if n, err := (&File{fd: p[1]}).Write(make([]byte, 1<<20)); err == nil || n == 1<<20 || !strings.Contains(err.Error(), "bytes were taken") {
		t.Errorf("a short write: %d, %v", n, err)
	}
	if n, err := (&File{fd: p[1]}).Write([]byte("x")); !errors.Is(err, unix.EAGAIN) || n != 0 {
		t.Errorf("no write: %d, %v", n, err)
	}
}

// A descriptor must be one that the launcher left open for writing. It is closed for
// the program, but for its standard error.
func TestInheritedDescriptors(t *testing.T) {
	path := child.Dir(t) + "/f"
	errnotest.Touch(t, path)
	open := func(flags int) int {
		fd, err := unix.Open(path, flags, 0) // without close-on-exec, as inherited
		errnotest.Must(t, err)
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	writing, reading, pathOnly, ours := open(unix.O_WRONLY), open(unix.O_RDONLY), open(unix.O_PATH|unix.O_WRONLY), open(unix.O_RDWR)
	inherited := []int{2, writing, reading, pathOnly, 999}
	for _, row := range []struct {
		fd   int
		want string
	}{
		{writing, ""}, {reading, "not open for writing"}, {pathOnly, "not open for writing"}, {ours, "bad file descriptor"},
		{999, "bad file descriptor"}, {2, ""},
	} {
		f, err := Open(rules.Destination{IsFD: true, FD: row.fd}, inherited)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%d: %v, want %q", row.fd, err, row.want)
		}
		if err != nil {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(row.fd), unix.F_GETFD, 0)
		if err != nil || (flags == unix.FD_CLOEXEC) != (row.fd > 2) || f.Takes(row.fd) != (row.fd > 2) || f.Takes(row.fd+1) || f.fd != row.fd {
			t.Errorf("%d: flags %#x, %v", row.fd, flags, err)
		}
	}
}

// A pipe without a reader leaves no signal behind that would kill the program, and
// one that was pending before stays.
func TestWriteLeavesNoSignal(t *testing.T) {
	pending := func() (set uint64) {
		_, _, errno := unix.RawSyscall(unix.SYS_RT_SIGPENDING, uintptr(unsafe.Pointer(&set)), unsafe.Sizeof(set), 0)
		if errno != 0 {
			t.Error(errno)
		}
		return set & (1 << (unix.SIGPIPE - 1))
	}
	child.Thread(func() {
		var p [2]int
		block := unix.Sigset_t{Val: [16]uint64{1 << (unix.SIGPIPE - 1)}}
		if err := errors.Join(unix.Pipe2(p[:], unix.O_CLOEXEC), unix.Close(p[0]), unix.PthreadSigmask(unix.SIG_BLOCK, &block, nil)); err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(p[1])
		f := &File{fd: p[1]}
		if _, err := f.Write([]byte("x")); !errors.Is(err, unix.EPIPE) || pending() != 0 {
			t.Errorf("%v, pending %#x", err, pending())
		}
		if err := unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGPIPE); err != nil {
			t.Error(err)
		}
		if _, err := f.Write([]byte("x")); !errors.Is(err, unix.EPIPE) || pending() == 0 {
			t.Errorf("one that was pending before is gone: %v", err)
		}
	})
}

// One message is one line of printable text, whatever stands in it.
func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "ü – ok": "ü – ok", "a\nb": `a\nb`, "a\x1b[2Jb": `a\x1b[2Jb`, "\x7f": `\x7f`, "a\u2028b": `a\u2028b`, "a\u202eb": `a\u202eb`, "tab\t": `tab\t`,
	} {
		if got := OneLine(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"bash": "bash", "/opt/a+b-1_2.3@x": "/opt/a+b-1_2.3@x", "": `""`, "a b": `"a b"`, "a: b": `"a: b"`, "ü": `"ü"`} {
		if got := Name(in); got != want {
			t.Errorf("name %q: %s, want %s", in, got, want)
		}
	}
}

// What is said goes to standard error, in one line that names the shim.
func TestSay(t *testing.T) {
	out, err := os.CreateTemp(t.TempDir(), "")
	errnotest.Must(t, err)
	defer out.Close()
	child.Thread(func() {
		// A table of descriptors of its own, which ends with the thread.
		if err := errors.Join(unix.Unshare(unix.CLONE_FILES), unix.Dup3(int(out.Fd()), 2, 0)); err != nil {
			t.Error(err)
			return
		}
		Say("prog", "warning", "a\nb")
	})
	if text, err := os.ReadFile(out.Name()); string(text) != "sandbox-exec-shim: prog: warning: a\\nb\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// The log holds what its level lets through, each message a line of JSON with paths as
// they are.
func TestLog(t *testing.T) {
	for level, want := range map[string]int{"debug": 4, "info": 3, "warn": 2, "error": 1} {
		var out bytes.Buffer
		l := NewLogger(level, &out)
		l.Debug("d")
		l.Info("i", "path", "/a<b>&c")
		l.Warn("w")
		l.Error("e")
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != want {
			t.Errorf("%s: %q", level, lines)
		}
		for _, line := range lines {
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil || m["@module"] != "sandbox-exec-shim" {
				t.Errorf("%s: %s: %v", level, line, err)
			}
		}
		if want >= 3 && !strings.Contains(out.String(), `"path":"/a<b>&c"`) {
			t.Errorf("%s", out.String())
		}
	}
	NoLog().Error("nobody hears it")
}
