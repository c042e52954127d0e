package general_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A descriptor that the policy names for its report or log is let through the
// judgement of inherited ones only once it was taken for them, and 2 never.
func TestNamedDescriptorThatLeadsToHiddenIsClosed(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		secret, err := os.Open(p.secret)
		if err != nil {
			t.Fatal(err)
		}
		defer secret.Close()
		const readThird = `cat <&3 2>/dev/null || echo closed`
		for name, more := range map[string]object{
			"log":                         {"log": object{"level": "info", "to": "fd:3"}},
			"report, not required":        {"report": "fd:3", "required": false},
			"log, and closing all others": {"log": object{"level": "info", "to": "fd:3"}, "descriptors": object{"keep": []int{3}}},
		} {
			for _, extra := range []*os.File{secret, openDir(t, filepath.Dir(p.secret))} {
				c := p.sh(readThird, p.policy(more))
				c.Extra = []*os.File{extra}
				if r := c.Run(t); r.Code != 0 || r.Stdout != "closed\n" {
					t.Errorf("%s: %v", name, r)
				}
			}
		}
		// The control: one that leads elsewhere is kept.
		open, err := os.Open(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		defer open.Close()
		c := p.sh(`head -c 4 <&3 | tail -c 3`, p.policy(object{"log": object{"level": "info", "to": "fd:3"}}))
		c.Extra = []*os.File{open}
		if r := c.Run(t); r.Code != 0 || r.Stdout != "ELF" {
			t.Errorf("a descriptor that leads elsewhere: %v", r)
		}
		// A hidden file on 2 stays, and is listed, also when the report goes there.
		file := filepath.Join(p.hidden, "stderr")
		if err := os.WriteFile(file, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		hidden, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer hidden.Close()
		c = p.sh(`:`, p.policy(object{"report": "fd:2"}))
		c.Stderr = hidden
		if r := c.Run(t); r.Code != 0 {
			t.Fatalf("%v", r)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		rep := launch.ParseReports(t, line+"\n")[0]
		if len(rep.Descriptors) != 1 || rep.Descriptors[0].FD != 2 || rep.Descriptors[0].Closed {
			t.Errorf("descriptors %+v", rep.Descriptors)
		}
	})
}

func openDir(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Where nothing is hidden, a template's directory is made where it belongs, all the
// same.
func TestPrecreateWithoutAnythingHidden(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		base := filepath.Join(p.work, "base")
		if err := os.Mkdir(base, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(base, 0o777); err != nil {
			t.Fatal(err)
		}
		for _, policy := range []object{
			{"version": 1, "precreate": []object{{"path": "${env:RUN}", "beneath": base}}, "report": p.report},
			{"version": 1, "precreate": []object{{"path": "${env:RUN}", "beneath": base}}, "capabilities": "keep", "isolate": []string{"tty"}, "report": p.report},
		} {
			made := filepath.Join(base, "shim-run")
			c := p.sh(`:`, policy)
			c.Env = append(slices.Clone(launch.DefaultEnv), "RUN="+made)
			if r := c.Run(t); r.Code != 0 {
				t.Fatalf("%v", r)
			}
			if info, err := os.Stat(made); err != nil || !info.IsDir() {
				t.Errorf("%s: %v", made, err)
			}
			if _, err := os.Lstat("/shim-run"); err == nil {
				os.Remove("/shim-run")
				t.Error("/shim-run was made")
			}
			if rep := launch.Report(t, p.report); !slices.Equal(rep.Precreated, []string{made}) {
				t.Errorf("precreated %q", rep.Precreated)
			}
			os.Remove(made)
			os.Remove(p.report)
		}
	})
}

// The report of a launch that failed before it entered anything says of nothing that
// it holds.
func TestFailedLaunchEnforcesNothing(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		policy := p.policy(object{"report": p.report, "network": "deny", "exposed": []string{filepath.Join(p.hidden, "none")}})
		p.wantNotStarted(t, p.mark(policy), 125, "exposed[0]")
		if rep := launch.Report(t, p.report); rep.Outcome != "error" || len(rep.Enforced) > 0 || rep.Mechanism != "unavailable" || rep.Network != "allow" {
			t.Errorf("%+v", rep)
		}
		// The control: without the mistake it holds.
		os.Remove(p.report)
		delete(policy, "exposed")
		p.wantStarted(t, p.mark(policy))
		if rep := launch.Report(t, p.report); rep.Outcome != "exec" || !launch.Enforced(rep, "network") {
			t.Errorf("%+v", rep)
		}
	})
}
