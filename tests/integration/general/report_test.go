package general_test

import (
	"encoding/json"
	"fmt"
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

func TestReportSaysWhatHolds(t *testing.T) {
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
func TestFailedExecveIsReported(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		shim := launch.Install(t, p.bin, "tool", launch.Record{Real: launch.WriteProgram(t, filepath.Join(p.dir, "nointerp"), []byte("#!"+launch.Nowhere+"/x\n"))})
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

func TestLogSaysWhatItsLevelAsks(t *testing.T) {
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
func TestUnreadOutputKillsNoProgram(t *testing.T) {
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
