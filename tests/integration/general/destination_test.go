package general_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestReportIsARegularFileOfTheUser(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		at := func(name string) string { return filepath.Join(p.work, name) }
		u.Write(t, at("target"), "", 0o600)
		if err := os.Symlink(at("target"), at("link")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at("nowhere"), at("dangling")); err != nil {
			t.Fatal(err)
		}
		u.Write(t, at("one"), "", 0o600)
		if err := os.Link(at("one"), at("two")); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(at("fifo"), 0o666); err != nil {
			t.Fatal(err)
		}
		u.Own(t, at("fifo"))
		reader := at("fifo with a reader")
		if err := syscall.Mkfifo(reader, 0o666); err != nil {
			t.Fatal(err)
		}
		u.Own(t, reader)
		fd, err := unix.Open(reader, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		rows := []struct{ name, path, says string }{
			{"symlink", at("link"), "symlink"},
			{"dangling symlink", at("dangling"), "symlink"},
			{"second name", at("one"), "more than one name"},
			{"FIFO", at("fifo"), ""},
			{"FIFO with a reader", reader, "not a regular file"},
			{"directory", p.work, ""},
			{"no directory", at("absent/report"), "no such file"},
			{"through a file", at("one/report"), "not a directory"},
			{"device", "/dev/null", "not a regular file"},
		}
		switch {
		case os.Geteuid() != 0: // nobody else's file can be made
		case u != launch.Root:
			launch.Root.Write(t, at("other's"), "", 0o666)
			launch.Root.Write(t, at("locked"), "", 0o600)
			rows = append(rows, []struct{ name, path, says string }{
				{"another's", at("other's"), "another user"},
				{"not writable", at("locked"), "permission denied"},
				{"no permission", filepath.Join(p.dir, "report"), "permission denied"},
			}...)
		default:
			launch.Nobody.Write(t, at("other's"), "", 0o666)
			rows = append(rows, struct{ name, path, says string }{"another's", at("other's"), "another user"})
		}
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				p.wantNotStarted(t, p.mark(p.policy(object{"report": row.path})), 125, "report", row.says)
				// Not required: one warning, and as confined as asked.
				p.unmark(t)
				r := p.wantDenied(t, p.sh(readSecret, p.policy(object{"report": row.path, "required": false})))
				if !oneWarning.MatchString(r.Stderr) || !strings.Contains(r.Stderr, row.says) {
					t.Errorf("want one warning: %v", r)
				}
				// A log never stops a launch.
				r = p.wantDenied(t, p.sh(readSecret, p.policy(object{"log": object{"level": "info", "to": row.path}, "report": p.report})))
				if !oneWarning.MatchString(r.Stderr) {
					t.Errorf("log: want one warning: %v", r)
				}
				reps := launch.Reports(t, p.report)
				if len(reps) == 0 || !slices.Equal(launch.NotEnforced(reps[len(reps)-1], "log"), []string{"limit"}) {
					t.Errorf("log: the report does not say so: %+v", reps)
				}
			})
		}
		for _, name := range []string{"target", "one"} {
			if fi, err := os.Stat(at(name)); err != nil || fi.Size() != 0 {
				t.Errorf("%s was written to: %v %v", name, fi, err)
			}
		}
		if _, err := os.Lstat(at("nowhere")); err == nil {
			t.Error("the target of a dangling symlink was made")
		}
		p.wantReadable(t)
	})
}

func TestReportGoesToADescriptor(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		r, w, err := pipe2(0)
		if err != nil {
			t.Fatal(err)
		}
		c := p.sh(readSecret+`; for i in 3 4 5; do [ -e /proc/$$/fd/$i ] && printf "$i "; done; echo`, p.policy(object{"report": "fd:4", "log": object{"level": "debug", "to": "fd:5"}}))
		log := at(t, p)
		c.Extra = []*os.File{nil, w, log}
		res := c.Run(t)
		if res.Stdout != denied+"\n" || res.Stderr != "" {
			t.Errorf("want the secret denied and 4, 5 closed: %v", res)
		}
		w.Close()
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if reps := launch.ParseReports(t, string(text)); len(reps) != 1 || reps[0].PID != res.PID || reps[0].Mechanism != "landlock" {
			t.Errorf("report on a descriptor: %q", text)
		}
		wantLog(t, log.Name(), "launch")

		// Descriptors that are closed, or not for writing.
		for n := 3; n < 12; n++ {
			c := p.mark(p.policy(object{"report": fmt.Sprintf("fd:%d", n)}))
			p.wantNotStarted(t, c, 125, fmt.Sprintf("descriptor %d", n))
			c = p.mark(p.policy(object{"log": object{"level": "trace", "to": fmt.Sprintf("fd:%d", n)}}))
			p.unmark(t)
			if r := c.Run(t); r.Code != 0 || !p.started() || !oneWarning.MatchString(r.Stderr) {
				t.Errorf("log on closed descriptor %d: %v", n, r)
			}
		}
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		c = p.mark(p.policy(object{"report": "fd:3"}))
		c.Extra = []*os.File{null}
		p.wantNotStarted(t, c, 125, "descriptor 3", "writing")

		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close()
		c = p.mark(p.policy(object{"report": "fd:3"}))
		c.Extra = []*os.File{full}
		p.wantNotStarted(t, c, 125, "report", "no space")
		c = p.mark(p.policy(object{"log": object{"level": "trace", "to": "fd:3"}}))
		c.Extra = []*os.File{full}
		p.wantStarted(t, c)

		// On standard error it stays the program's.
		p.unmark(t)
		closed := p.mark(p.policy(object{"report": "fd:2"}))
		closed.Closed = []int{2}
		if r := closed.Run(t); r.Code != 125 || p.started() {
			t.Errorf("report to a closed standard error: %v", r)
		}
		c = p.sh(": >\"$2\"; echo said >&2", p.policy(object{"report": "fd:2"}))
		p.unmark(t)
		res = c.Run(t)
		line, rest, _ := strings.Cut(res.Stderr, "\n")
		if rest != "said\n" || !p.started() || len(launch.ParseReports(t, line+"\n")) != 1 {
			t.Errorf("report on standard error: %v", res)
		}
	})
}

func at(t *testing.T, p place) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(p.work, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
