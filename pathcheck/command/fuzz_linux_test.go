package command

import (
	"slices"
	"strings"
	"testing"
)

func FuzzCheck(f *testing.F) {
	for _, r := range slices.Concat(rows, moreRows) {
		f.Add(r.text, uint8(0))
	}
	for i, g := range growths {
		f.Add(g.of(300), uint8(i))
	}
	f.Fuzz(func(t *testing.T, text string, how uint8) {
		o := Options{
			Scope: ScopeWorkspace, Workspace: "/base/ws", Roots: []string{"/base/cache"}, Dir: "/base/ws",
			Lookup:  func(name string) (string, bool) { return "/base/home", name == "HOME" },
			Resolve: func(p string) (string, error) { return p, errNoTree },
		}
		if how&1 != 0 {
			o.Scope, o.Network = ScopeLocal, NetworkDeny
		}
		res, err := Check(text, o)
		outside := false
		for _, n := range res.Paths {
			if n.Pos < 0 || n.Pos > len(text) || !strings.HasPrefix(n.Path, "/") {
				t.Fatalf("%q: %+v", text, n)
			}
			outside = outside || n.Outside && n.Use != read
		}
		if o.Scope == ScopeWorkspace && outside && err == nil {
			t.Fatalf("%q: a path outside and no error: %+v", text, res)
		}
		// The plain rule holds where the text has no quoting at all.
		if o.Scope == ScopeWorkspace && plainEscape(text) && err == nil {
			t.Fatalf("%q: an absolute word outside is let pass: %+v", text, res)
		}
	})
}

// plainEscape reports whether text is words and blanks alone, one of which is an
// absolute path that stays outside.
func plainEscape(text string) bool {
	if !strings.HasPrefix(text, "touch ") || strings.Trim(text, plainWords) != "" {
		return false
	}
	for _, w := range strings.Fields(strings.TrimPrefix(text, "touch ")) {
		if strings.HasPrefix(w, "/etc/") && !strings.Contains(w, "..") {
			return true
		}
	}
	return false
}

const plainWords = "abcdefghijklmnopqrstuvwxyz/. "

type noTree struct{}

func (noTree) Error() string { return "no tree" }

var errNoTree = noTree{}

func FuzzShellCommand(f *testing.F) {
	for _, line := range argvs {
		f.Add(line, "bash")
		f.Add("sh "+line, "busybox")
	}
	for name := range strings.FieldsSeq(shells) {
		f.Add("-o x -c TEXT", name)
	}
	f.Fuzz(func(t *testing.T, line, name string) {
		argv := append([]string{name}, strings.Split(line, " ")...)
		for _, as := range []string{"", name, "sh", "zsh", "yash"} {
			if i, ok := ShellCommand(argv, as); ok && (i < 2 || i >= len(argv)) {
				t.Fatalf("%q: index %d", argv, i)
			}
		}
		ShellCommand(nil, name)
	})
}
