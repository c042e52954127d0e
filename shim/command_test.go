//go:build !nocommandcheck

package shim

import (
	"errors"
	"os"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
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
