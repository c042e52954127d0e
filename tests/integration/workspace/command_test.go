package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// What the check refuses in scope workspace, and what it lets through. "W",
// "O" and "T" stand for the workspace, a directory outside, and TMPDIR.
func TestCommandThatLeavesTheWorkspaceIsRefused(t *testing.T) {
	const (
		absolute = `sandbox violation: absolute path "%s" escapes workspace "W"`
		cd       = "sandbox violation: cd outside workspace is not permitted in workspace sandbox scope"
	)
	escapes := func(path string) string { return strings.Replace(absolute, "%s", path, 1) }
	rows := []struct{ name, command, refused string }{
		{"absolute", "touch O/file", escapes("O/file")},
		{"glued redirection", "echo x >O/new", escapes("O/new")},
		{"assignment", "D=O; touch $D/file", escapes("O/file")},
		{"for a program", "D=O make", escapes("O")},
		{"option", "tar --file=O/file -c sub", escapes("O/file")},
		{"in place", "sed -i s/a/b/ O/file", escapes("O/file")},
		{"quoted", `touch "O/file"`, escapes("O/file")},
		{"beside the workspace", "touch W-evil/file", escapes("W-evil/file")},
		{"home", "touch ~/x", escapes("H/x")},
		{"symlink", "touch W/out/file", escapes("W/out/file")},
		{"cd ..", "cd ..; ls", cd},
		{"cd by steps", "cd sub && cd ../..", cd},
		{"nested shell", "sh -c 'touch O/file'", escapes("O/file")},
		{"nested shell behind others", "env A=b nice sh -c 'touch O/file'", escapes("O/file")},
		{"subshell", "(cd sub; touch O/file)", escapes("O/file")},
		{"substitution", `: "$(touch O/file)"`, escapes("O/file")},

		{"only read", "test -e /etc/passwd && cat /etc/passwd </etc/passwd", ""},
		{"read by an option", "grep -q --file=/etc/passwd /etc/passwd", ""},
		{"workspace", "cat W/sub/file", ""},
		{"relative", "cat sub/file", ""},
		{"cd within", "cd sub && cd .. && cat sub/file", ""},
		{"temp", "echo x > T/new && cat T/new", ""},
		{"cache", "ls ~/.cache", ""},
		{"null", "echo x >/dev/null", ""},
		{"data", "echo 'not O/file but text' | cat", ""},
		{"opaque", `s=$(printf '\057'); cat "${s}etc${s}passwd" >T/x`, ""},
	}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		p.fill(t, u.Mkdir(t, filepath.Join(p.ws, "sub"), 0o755))
		symlink(t, p.outside, filepath.Join(p.ws, "out"))
		full := strings.NewReplacer("W", p.ws, "O", p.outside, "T/", p.tmp+"/", "H/", p.home+"/")
		bash := launch.Install(t, filepath.Dir(p.sh), "bash", launch.Record{Real: "/bin/bash"})
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				mark := filepath.Join(p.ws, "mark")
				if err := os.RemoveAll(mark); err != nil {
					t.Fatal(err)
				}
				command := "echo > mark; " + full.Replace(row.command)
				refused := full.Replace(row.refused)
				for _, on := range []bool{true, false} {
					pol := p.policy(nil)
					if on {
						pol = p.policy(m{"commandCheck": "deny"})
					}
					r := launch.Cmd{
						Path: bash, Args: []string{"bash", "-c", command}, Env: p.env(), Dir: p.ws, User: u, Policy: pol,
					}.Run(t)
					_, err := os.Stat(mark)
					started := err == nil
					switch {
					case on && refused != "":
						if r.Code != 126 || started || r.Stderr != "sandbox-exec-shim: bash: refused: "+refused+"\n" {
							t.Errorf("%s: %v\nwant 126 and %q", command, r, refused)
						}
					case !started || strings.Contains(r.Stderr, "sandbox violation"):
						t.Errorf("check %v: %s: not started: %v", on, command, r)
					case on && r.Code != 0:
						t.Errorf("%s: %v", command, r)
					}
				}
			})
		}
	})
}

// The error and the report of a refused launch.
func TestRefusedCommandIsReported(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		pol := p.policy(m{"commandCheck": "deny"})
		if r := p.shell(t, pol, "touch /etc/passwd"); r.Code != 126 || r.Stdout != "" {
			t.Fatal(r)
		}
		rep := p.report(t)
		if rep.Outcome != "error" || !strings.HasPrefix(rep.Error, "refused: sandbox violation: ") {
			t.Errorf("%+v", rep)
		}
		p.run(t, pol, "cat sub 2>&- || :")
		if rep := p.report(t); rep.Outcome != "exec" || !launch.Enforced(rep, "command") {
			t.Errorf("%+v", rep)
		}
		// Advice is not a condition: what it cannot see, the confinement holds.
		r := p.shell(t, pol, `s=$(printf '\057'); echo x > "${s}var${s}tmp${s}shim-test-x"`)
		if r.Code != 2 || !strings.Contains(r.Stderr, "Permission denied") {
			t.Error(r)
		}
		if got := launch.NotEnforced(p.report(t), "command"); len(got) != 2 {
			t.Errorf("command: %q, want the limit and what was opaque", got)
		}
	})
}

// A command that is too long to be followed is opaque as a whole; it is only
// searched for absolute paths between blanks.
func TestLongCommandIsOpaque(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		const kilobytes = 70
		long := "\n: " + strings.Repeat(strings.Repeat("x", 1023)+" ", kilobytes)
		check := p.policy(m{"commandCheck": "deny"})
		glued := `cat <"` + p.outside + `/file"; `
		for _, row := range []struct {
			name, command string
			code          int
		}{
			{"short, glued", glued, 126},
			{"long, glued", glued + long, 0},
			{"long, between blanks", ": " + p.outside + "/file " + long, 126},
			{"long", ": " + long, 0},
		} {
			if r := p.shell(t, check, row.command); r.Code != row.code {
				t.Errorf("%s: exit %d, want %d: %s", row.name, r.Code, row.code, r.Stderr)
			}
		}
		if got := launch.NotEnforced(p.report(t), "command"); len(got) != 2 {
			t.Errorf("command: %q, want the limit and what was opaque", got)
		}
	})
}
