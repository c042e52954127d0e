package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

func TestToolchainEnv(t *testing.T) {
	p := parse(t, `{"version":1,"scope":"workspace","toolchainDirs":{"owned":"/c"},"env":{"set":{"GOCACHE":"/g"},"unset":["UV_CACHE_DIR"]}}`)
	env := []string{"GOCACHE=/g", "PIP_CACHE_DIR=/else", "MAVEN_ARGS=-q"}
	got := map[string]string{}
	for _, v := range rules.Apply(env, p.ToolchainEnv(env)) {
		name, value, _ := strings.Cut(v, "=")
		got[name] = value
	}
	for name, want := range map[string]string{
		"GOCACHE": "/g", "UV_CACHE_DIR": "", "PIP_CACHE_DIR": "/c/pip", "TMPDIR": "/c/tmp", "GOTMPDIR": "/c/tmp",
		"MAVEN_ARGS": "-q -Dmaven.repo.local=/c/maven", "XDG_CACHE_HOME": "/c/cache",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for _, text := range []string{`{"version":1}`, `{"version":1,"scope":"workspace"}`, `{"version":1,"scope":"workspace","toolchainDirs":"leaves"}`} {
		if c := parse(t, text).ToolchainEnv(env); len(c.Set)+len(c.Unset) > 0 {
			t.Errorf("%s changes the environment: %v", text, c)
		}
	}
}

// TestToolchainDirsIn: the directories of each mode, from the environment alone.
// "NAME" stands before one that a variable names, a mode behind one that is made.
func TestToolchainDirsIn(t *testing.T) {
	for _, row := range []struct {
		name     string
		dirs     rules.ToolchainDirs
		env      string
		want     string
		warnings int
	}{
		{"none", rules.ToolchainDirs{Mode: rules.ToolchainNone}, "HOME=/h", "", 0},
		{"not given", rules.ToolchainDirs{}, "HOME=/h", "", 0},
		{"owned", rules.ToolchainDirs{Mode: rules.ToolchainOwned, Owned: "/c"}, "HOME=/h TMPDIR=/t", "/c:700 /c/tmp:700", 0},
		{"usual", rules.ToolchainDirs{Mode: rules.ToolchainUsual}, "HOME=/h", "/tmp /h/.cache /h/.cache:755 /h/go/pkg:755 /h/.npm /h/.cargo/registry /h/.cargo/git", 0},
		{"by variables", rules.ToolchainDirs{Mode: rules.ToolchainUsual}, "TMPDIR=/t GOPATH=/a::/b", "TMPDIR=/t GOPATH=/a/pkg:755 GOPATH=/b/pkg", 0},
		{"relative", rules.ToolchainDirs{Mode: rules.ToolchainUsual}, "HOME=h TMPDIR=t GOCACHE=c", "", 2},
		{"relative leaves mean the project", rules.ToolchainDirs{Mode: rules.ToolchainLeaves}, "TMPDIR=t GOCACHE=c", "", 0},
	} {
		list, warnings := row.dirs.In(strings.Fields(row.env))
		var got []string
		for _, d := range list {
			text := d.Path
			if d.Variable != "" {
				text = d.Variable + "=" + text
			}
			if d.Mode != 0 {
				text += fmt.Sprintf(":%o", d.Mode)
			}
			got = append(got, text)
		}
		if got := strings.Join(got, " "); got != row.want || len(warnings) != row.warnings {
			t.Errorf("%s: got %s, warnings %q\nwant %s, %d warnings", row.name, got, warnings, row.want, row.warnings)
		}
	}
}
