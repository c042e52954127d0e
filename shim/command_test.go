//go:build !nocommandcheck

package shim

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

func TestApplet(t *testing.T) {
	for _, row := range []struct {
		argv []string
		want string
	}{
		{nil, ""},
		{[]string{"/bin/sh", "-c", "x"}, "ash"},
		{[]string{"-bash"}, "ash"},
		{[]string{"hush"}, "hush"},
		{[]string{"busybox", "sh"}, "busybox"},
		{[]string{"/opt/busybox-1.36", "sh"}, "busybox"},
		{[]string{"cat"}, "cat"},
	} {
		if got := applet(row.argv); got != row.want {
			t.Errorf("applet(%q) = %q, want %q", row.argv, got, row.want)
		}
	}
}

// A program that cannot be looked at is not for that reason no shell, and a path
// in the command that cannot be is not where its text says.
func TestCommandUnanswered(t *testing.T) {
	dir := errnotest.RealDir(t)
	errnotest.Must(t, os.WriteFile(dir+"/bash", nil, 0o755))
	errnotest.Must(t, os.Symlink("bash", dir+"/mysh"))
	ask := func(name string) (string, error) {
		text, ok, err := shellCommand("mysh", dir+"/"+name, []string{"mysh", "-c", "true"})
		if ok != (text != "") {
			t.Errorf("%s: %q, %v", name, text, ok)
		}
		return text, err
	}
	if text, err := ask("mysh"); text != "true" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := ask("gone"); text != "" || err != nil {
		t.Errorf("gone: %q, %v", text, err)
	}
	lookup := func() error {
		var lost error
		o := (&launch{request: &request{Policy: &rules.Policy{}}}).commandOptions(&lost)
		if path, err := o.Resolve(dir + "/mysh"); err == nil && path != dir+"/bash" {
			t.Errorf("mysh is %q", path)
		}
		return lost
	}
	errnotest.Must(t, lookup())
	for _, errno := range errnotest.Silent {
		errnotest.Answering(t, errnotest.Openat, errno, func() {
			if text, err := ask("mysh"); !errors.Is(err, errno) {
				t.Errorf("%v: %q, %v", errno, text, err)
			}
			if err := lookup(); errors.Is(err, errno) != pathcheck.Exhausted(errno) {
				t.Errorf("%v: %v", errno, err)
			}
		})
	}
}

// A command that names what is denied is refused, where the policy asks for that, and
// what could not be seen of another one is reported.
func TestCheckedCommand(t *testing.T) {
	landlock(t)
	dir := stage(t)
	const asked = `,"commandCheck":"deny"`
	for _, row := range []struct {
		name, program, keys, command string
		refused                      bool
		unseen                       bool
	}{
		{"the network", "/bin/sh", asked, "curl http://example.org", true, false},
		{"the network, not asked", "/bin/sh", "", "curl http://example.org", false, false},
		{"nothing", "/bin/sh", asked, "echo ok", false, false},
		{"opaque", "/bin/sh", asked, "eval $X", false, true},
		{"no shell", "/bin/true", asked, "curl http://example.org", false, true},
	} {
		a := attempt{
			Policy: `{"version":1,"descriptors":"keep","network":"deny","program":"` + row.program + `"` + row.keys + `}`,
			Argv:   []string{"sh", "-c", row.command}, Record: record.Record{Report: dir + "/" + strings.ReplaceAll(row.name, " ", "-")},
		}
		got, r := run(t, os.Geteuid(), a)
		if (len(got.Calls) == 0) != row.refused || row.refused && (got.Code != exitRefused || !strings.Contains(got.Stderr, ": refused: ")) {
			t.Errorf("%s: %+v", row.name, got)
		}
		held := slices.ContainsFunc(r.Enforced, func(e rules.Enforcement) bool { return e.What == "command" })
		unseen := slices.ContainsFunc(r.NotEnforced, func(g rules.Gap) bool {
			return g.What == "command" && (strings.Contains(g.Why, "opaque: ") || strings.Contains(g.Why, "no shell"))
		})
		if !row.refused && (unseen != (row.unseen) || held != (row.keys != "" && row.program == "/bin/sh")) {
			t.Errorf("%s: enforced %+v, not %+v", row.name, r.Enforced, r.NotEnforced)
		}
	}
}
