package general_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestReport(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		own := u.Mkdir(t, filepath.Join(p.hidden, "own"), 0o755)
		made := filepath.Join(p.work, "made", "deep")
		c := p.sh("exit 3", p.policy(object{"report": p.report, "exposed": []string{own}, "precreate": []string{made}}))
		c.Args[0] = "an odd \"argv0\" <&>"
		before := time.Now().Add(-time.Second)
		r := c.Run(t)
		if r.Code != 3 || r.Stdout+r.Stderr != "" {
			t.Fatal(r)
		}
		fi, err := os.Stat(p.report)
		if err != nil || fi.Mode().Perm() != 0o600 || int(fi.Sys().(*syscall.Stat_t).Uid) != u.UID {
			t.Errorf("the report's file: %v %v", fi, err)
		}
		rep := launch.Report(t, p.report)
		at, err := time.Parse(time.RFC3339Nano, rep.Time)
		if err != nil || at.Before(before) || at.After(time.Now().Add(time.Second)) {
			t.Errorf("time %q: %v", rep.Time, err)
		}
		if rep.Version != 1 || rep.Shim == "" || rep.Shim == "unknown" || rep.PID != r.PID || rep.Target != launch.Look(t, "sh") || rep.Argv0 != c.Args[0] ||
			rep.Outcome != "exec" || rep.Error != "" || rep.Mechanism != "landlock" || rep.Network != "allow" || rep.Warning != "" || rep.ElapsedUS <= 0 {
			t.Errorf("report %+v", rep)
		}
		if rep.Landlock == nil || rep.Landlock.ABI < 1 || rep.Landlock.Rules < 5 || rep.Landlock.Layers != 1 {
			t.Errorf("landlock %+v", rep.Landlock)
		}
		if !slices.Equal(rep.Hidden, []string{p.hidden}) || !slices.Equal(rep.Exposed, []string{own}) || !slices.Equal(rep.Precreated, []string{made}) {
			t.Errorf("paths: %q %q %q", rep.Hidden, rep.Exposed, rep.Precreated)
		}
		for _, dir := range []string{"/", "/var", "/var/tmp", p.dir} {
			if !slices.Contains(rep.Frozen, dir) {
				t.Errorf("%s is not among the frozen %q", dir, rep.Frozen)
			}
		}
		if !launch.Enforced(rep, "hidden") || !slices.Equal(launch.NotEnforced(rep, "metadata"), []string{"limit"}) {
			t.Errorf("enforced %+v, not enforced %+v", rep.Enforced, rep.NotEnforced)
		}
		for _, g := range rep.NotEnforced {
			if !g.Limit || g.Why == "" {
				t.Errorf("not enforced %+v under required", g)
			}
		}
		raw, err := os.ReadFile(p.report)
		if err != nil {
			t.Fatal(err)
		}
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(raw, &keys); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"version", "time", "shim", "pid", "target", "argv0", "outcome", "sandbox_mechanism", "sandbox_network", "landlock", "hidden", "exposed", "precreated", "frozen", "enforced", "not_enforced", "elapsed_us"} {
			if _, ok := keys[key]; !ok {
				t.Errorf("no key %q in %s", key, raw)
			}
		}
		for _, key := range []string{"sandbox_warning", "sandbox_writable_dirs", "error"} {
			if _, ok := keys[key]; ok {
				t.Errorf("an empty %q in %s", key, raw)
			}
		}
		// A second launch appends.
		c.Run(t)
		if n := len(launch.Reports(t, p.report)); n != 2 {
			t.Errorf("%d reports after two launches", n)
		}
		// Nothing asked: nothing claimed.
		os.Remove(p.report)
		for _, policy := range []object{{"version": 1, "report": p.report}, {"version": 1, "report": p.report, "scope": "unrestricted", "required": true}} {
			os.Remove(p.report)
			p.wantStarted(t, p.mark(policy))
			rep = launch.Report(t, p.report)
			if rep.Mechanism != "none" || rep.Network != "allow" || rep.Outcome != "exec" || len(rep.Enforced) != 0 || len(rep.Hidden) != 0 || rep.Landlock != nil {
				t.Errorf("nothing asked: %+v", rep)
			}
		}
	})
}

// When execve fails behind the report, a second line takes it back.
func TestReportOfFailedExecve(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		shim := launch.Install(t, p.bin, "tool", launch.Record{Real: launch.WriteProgram(t, filepath.Join(p.dir, "nointerp"), []byte("#!/nonexistent/x\n"))})
		for _, policy := range []object{p.policy(object{"report": p.report}), {"version": 1, "report": p.report}} {
			os.Remove(p.report)
			r := p.wantNotStarted(t, launch.Cmd{Path: shim, Args: []string{"tool"}, User: u, Policy: policy}, 126, "nointerp")
			reps := launch.Reports(t, p.report)
			if len(reps) != 2 || reps[0].Outcome != "exec" || reps[1].Outcome != "error" || reps[1].Error == "" || reps[0].PID != r.PID || reps[1].PID != r.PID || reps[1].Time < reps[0].Time {
				t.Errorf("reports %+v", reps)
			}
		}
	})
}

func TestReportDestinations(t *testing.T) {
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
		if u != launch.Root {
			launch.Root.Write(t, at("other's"), "", 0o666)
			launch.Root.Write(t, at("locked"), "", 0o600)
			rows = append(rows, []struct{ name, path, says string }{
				{"another's", at("other's"), "another user"},
				{"not writable", at("locked"), "permission denied"},
				{"no permission", filepath.Join(p.dir, "report"), "permission denied"},
			}...)
		} else {
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

func TestReportDescriptor(t *testing.T) {
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

// wantLog wants whole JSON lines with a level and a message, one of which is
// message.
func wantLog(t *testing.T, path, message string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var messages []string
	for line := range strings.Lines(string(data)) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry["@level"] == nil || entry["@message"] == nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		messages = append(messages, fmt.Sprint(entry["@message"]))
	}
	if !slices.Contains(messages, message) {
		t.Errorf("no message %q among %q", message, messages)
	}
}

func TestLog(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		path := filepath.Join(p.work, "log")
		p.wantStarted(t, p.mark(p.policy(object{"log": object{"level": "trace", "to": path}})))
		wantLog(t, path, "launch")
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("the log's file: %v %v", fi, err)
		}
		os.Remove(path)
		p.wantStarted(t, p.mark(p.policy(object{"log": object{"level": "error", "to": path}})))
		if fi, err := os.Stat(path); err != nil || fi.Size() != 0 {
			t.Errorf("level error: %v %v", fi, err)
		}
		p.wantNotStarted(t, p.mark(p.policy(object{"log": object{"level": "error", "to": path}, "exposed": []string{p.dir + "/x"}})), 125)
		wantLog(t, path, "not started")
	})
}

// A report, a log or standard error that nobody reads is no reason for the
// program to die of SIGPIPE before it began.
func TestNobodyReads(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		broken := func() *os.File {
			r, w, err := pipe2(0)
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			t.Cleanup(func() { w.Close() })
			return w
		}
		t.Run("report required", func(t *testing.T) {
			c := p.mark(p.policy(object{"report": "fd:3"}))
			c.Extra = []*os.File{broken()}
			p.wantNotStarted(t, c, 125, "broken pipe")
		})
		for name, policy := range map[string]object{
			"report not required": p.policy(object{"report": "fd:3", "required": false}),
			"log":                 p.policy(object{"log": object{"level": "trace", "to": "fd:3"}}),
		} {
			t.Run(name, func(t *testing.T) {
				c := p.mark(policy)
				c.Extra = []*os.File{broken()}
				p.unmark(t)
				if r := c.Run(t); r.Code != 0 || !p.started() {
					t.Errorf("%v", r)
				}
			})
		}
		t.Run("standard error", func(t *testing.T) {
			c := p.mark(p.policy(object{"report": "/dev/null", "required": false}))
			c.Stderr = broken()
			p.unmark(t)
			if r := c.Run(t); r.Code != 0 || !p.started() {
				t.Errorf("a warning: %v", r)
			}
			c = p.mark("{")
			c.Stderr = broken()
			p.unmark(t)
			if r := c.Run(t); r.Code != 125 || p.started() {
				t.Errorf("an error: %v", r)
			}
			// The control: the program itself dies of it.
			c = p.sh("echo x >&2; : >\"$2\"; kill -PIPE $$", p.policy(nil))
			c.Stderr = broken()
			if r := c.Run(t); r.Signal != syscall.SIGPIPE {
				t.Errorf("control: %v", r)
			}
		})
		// A limit on file sizes must not kill the program either.
		t.Run("file size limit", func(t *testing.T) {
			c := p.sh("exit 5", p.policy(object{"report": p.report, "required": false}))
			c.Setup = &launch.Setup{Limits: []launch.Limit{{Resource: unix.RLIMIT_FSIZE, Soft: 0, Hard: 0}}}
			if r := c.Run(t); r.Code != 5 {
				t.Errorf("%v", r)
			}
		})
	})
}
