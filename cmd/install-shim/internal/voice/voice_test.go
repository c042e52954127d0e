package voice

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

// TestFinish: each error gives its exit code, its line, and at most one hint.
func TestFinish(t *testing.T) {
	plain := Refused("/a b", "is gone: %w", syscall.ENOENT)
	usage := &UsageError{"run", "no command given"}
	for _, row := range []struct {
		name string
		err  error
		code int
		said string
	}{
		{"nothing", nil, 0, ""},
		{"refused", plain, 1, "install-shim: \"/a b\": is gone: no such file or directory\n"},
		{"usage", usage, 2, "install-shim: run: no command given\ninstall-shim: hint: see: install-shim help run\n"},
		{"no command", &UsageError{Msg: "what"}, 2, "install-shim: what\ninstall-shim: hint: see: install-shim help\n"},
		{"hint", Hinted(plain, "look"), 1, "install-shim: \"/a b\": is gone: no such file or directory\ninstall-shim: hint: look\n"},
		{"said", ErrSaid, 1, ""},
		{"own code", Exit(125, usage), 125, "install-shim: run: no command given\ninstall-shim: hint: see: install-shim help run\n"},
		{"the first code counts", Exit(125, fmt.Errorf("x: %w", Exit(127, plain))), 127, "install-shim: x: \"/a b\": is gone: no such file or directory\n"},
		{"said with a code", Exit(125, ErrSaid), 125, ""},
	} {
		var out, said bytes.Buffer
		v := &Caller{Out: &out, Err: &said}
		if code := v.Finish(row.err); code != row.code || said.String() != row.said || out.Len() > 0 {
			t.Errorf("%s: %d, %q, %q, want %d, %q", row.name, code, said.String(), out.String(), row.code, row.said)
		}
	}
	if Exit(125, nil) != nil {
		t.Error("no error got an exit code")
	}
	if err := Bare(&fs.PathError{Op: "open", Path: "x", Err: syscall.EPERM}); !errors.Is(err, syscall.EPERM) || strings.Contains(err.Error(), "x") {
		t.Errorf("Bare: %v", err)
	}
}

// TestShow: what could be mistaken for something else is quoted.
func TestShow(t *testing.T) {
	for text, want := range map[string]string{
		"/usr/bin/g++-12": "/usr/bin/g++-12", "": `""`, "a b": `"a b"`, "a\nb": `"a\nb"`, "\x1b[2J": `"\x1b[2J"`, `a"b`: `"a\"b"`, "ä": `"ä"`, "a:b": `"a:b"`,
	} {
		if got := Show(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestFlags: help and mistakes are errors, and no option is taken for a name.
func TestFlags(t *testing.T) {
	read := func(args ...string) (rest []string, err error) {
		f := NewFlags("cmd")
		var list []string
		f.List(&list, "x")
		if rest, err = f.Read(args); err == nil {
			err = f.FirstOptions(rest, "NAME")
		}
		return append(list, rest...), err
	}
	if got, err := read("-x", "1", "--x=2", "a"); err != nil || strings.Join(got, " ") != "1 2 a" {
		t.Errorf("%q, %v", got, err)
	}
	var help *HelpWanted
	if _, err := read("--help"); !errors.As(err, &help) || help.Command != "cmd" {
		t.Errorf("help: %v", err)
	}
	for _, args := range [][]string{{"-y"}, {"-x"}, {"a", "-x", "1"}} {
		if _, err := read(args...); err == nil || !errors.As(err, new(*UsageError)) {
			t.Errorf("%q: %v", args, err)
		}
	}
	f := NewFlags("cmd")
	if err := f.ReadAll([]string{"more"}); err == nil || err.Error() != "cmd: more: unexpected" {
		t.Errorf("%v", err)
	}
	if f.Given("x") {
		t.Error("an option is given that is not there")
	}
}

// TestGetenv: of a variable that occurs twice, the first counts, as in getenv(3).
func TestGetenv(t *testing.T) {
	v := &Caller{Environ: []string{"AB=0", "A=1", "A=2", "odd"}}
	if got := v.Getenv("A"); got != "1" {
		t.Errorf("%q", got)
	}
	if got := v.Getenv("odd"); got != "" {
		t.Errorf("%q", got)
	}
}
