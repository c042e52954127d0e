package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// Where paths are not confined, the check looks for the words that reach the
// network, and only where that is denied.
func TestCommandThatReachesTheNetworkIsRefused(t *testing.T) {
	shells := []struct {
		name, file string
		argv       []string // before the command string
	}{
		{"sh", "sh", []string{"sh", "-c"}},
		{"bash", "bash", []string{"bash", "-c"}},
		{"bash -lc", "bash", []string{"-bash", "-lc"}},
		{"bash -ic", "bash", []string{"bash", "--norc", "-ic"}},
		{"bash long options", "bash", []string{"bash", "--noprofile", "--norc", "-eu", "-o", "pipefail", "-c"}},
	}
	deny := m{"version": 1, "network": "deny", "commandCheck": "deny"}
	rows := []struct {
		name, command string
		policy        m
		refused       string
	}{
		{"curl", "touch mark; curl -V", deny, `sandbox violation: "curl" reaches the network, which is denied`},
		{"in a pipe", "touch mark | Telnet", deny, `sandbox violation: "Telnet" reaches the network, which is denied`},
		{"a path", "touch mark; test -r /etc/../etc/passwd", deny, ""},
		{"opaque", "touch mark; c=cu; if ${c}rx 2>&-; then :; fi", deny, ""},
		{"check off", "touch mark; if curl -V >/dev/null 2>&1; then :; fi", m{"version": 1, "network": "deny", "commandCheck": "off"}, ""},
		{"network allowed", "touch mark; if curl -V >/dev/null 2>&1; then :; fi", m{"version": 1, "commandCheck": "deny"}, ""},
	}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		for _, sh := range shells {
			shim := launch.Install(t, u.Dir(t), sh.file, launch.Record{Real: launch.Look(t, "/bin/"+sh.file)})
			for _, row := range rows {
				t.Run(sh.name+"/"+row.name, func(t *testing.T) {
					dir := u.Dir(t)
					r := launch.Cmd{
						Path: shim, Args: append(sh.argv[:len(sh.argv):len(sh.argv)], row.command),
						Dir: dir, User: u, Policy: row.policy,
					}.Run(t)
					_, err := os.Stat(filepath.Join(dir, "mark"))
					ran := err == nil
					if row.refused == "" {
						if r.Code != 0 || !ran {
							t.Errorf("not started: %v", r)
						}
						return
					}
					want := "sandbox-exec-shim: " + sh.file + ": refused: " + row.refused + "\n"
					if r.Code != 126 || r.Stderr != want || r.Stdout != "" || ran {
						t.Errorf("%v\nstarted: %v\nwant exit 126 and %q", r, ran, want)
					}
				})
			}
		}
	})
}

// A program that is no shell, and a shell without a command string, are not
// read; the report says so.
func TestUncheckedCommandIsReported(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		dir := u.Dir(t)
		script := u.Write(t, filepath.Join(dir, "script"), "echo curl\n", 0o644)
		for _, row := range []struct {
			name, real string
			argv       []string
			checked    bool
			why        string // of a limit
		}{
			{"no shell", "/bin/echo", []string{"echo", "-c", "curl"}, false, "no shell"},
			{"script", "/bin/sh", []string{"sh", script}, false, "no shell"},
			{"command", "/bin/sh", []string{"sh", "-c", "echo curly"}, true, ""},
			{"opaque", "/bin/sh", []string{"sh", "-c", `eval "$0"`, "true"}, true, "opaque: 1, the first at byte"},
		} {
			t.Run(row.name, func(t *testing.T) {
				shim := launch.Install(t, u.Dir(t), filepath.Base(row.real), launch.Record{Real: row.real})
				report := filepath.Join(u.Dir(t), "report")
				r := launch.Cmd{Path: shim, Args: row.argv, User: u, Policy: m{
					"version": 1, "network": "deny", "commandCheck": "deny", "report": report,
				}}.Run(t)
				if r.Code != 0 {
					t.Fatal(r)
				}
				rep := launch.Report(t, report)
				if got := launch.Enforced(rep, "command"); got != row.checked {
					t.Errorf("checked: %v, want %v", got, row.checked)
				}
				found := row.why == ""
				for _, g := range rep.NotEnforced {
					found = found || g.What == "command" && g.Limit && strings.Contains(g.Why, row.why)
				}
				if !found {
					t.Errorf("no limit that says %q: %+v", row.why, rep.NotEnforced)
				}
			})
		}
	})
}
