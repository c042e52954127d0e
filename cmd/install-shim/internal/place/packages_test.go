package place

import (
	"os"
	"slices"
	"testing"
)

// TestAliases: dpkg is asked by each path that a package may have for the file.
func TestAliases(t *testing.T) {
	for _, row := range []struct{ dir, other string }{{"/usr/bin", "/bin"}, {"/bin", "/usr/bin"}} {
		s := &site{dir: open(t, row.dir), name: "name"}
		a, err := os.Stat(row.dir)
		b, err2 := os.Stat(row.other)
		if err != nil || err2 != nil {
			t.Skip(err, err2)
		}
		got := s.aliases()
		if got[0] != row.dir+"/name" || slices.Contains(got, row.other+"/name") != os.SameFile(a, b) || slices.Contains(got, "/usr/lib/name") {
			t.Errorf("%s: %q", row.dir, got)
		}
	}
	elsewhere := &site{dir: open(t, t.TempDir()), name: "name"}
	if got := elsewhere.aliases(); len(got) != 1 || got[0] != elsewhere.path() {
		t.Errorf("%q", got)
	}
}

// TestLiteral: a path is no pattern.
func TestLiteral(t *testing.T) {
	for path, want := range map[string]string{"/usr/bin/[": `/usr/bin/\[`, "/a*b?c": `/a\*b\?c`, `/a\b`: `/a\\b`, "/bin/sh": "/bin/sh"} {
		if got := literal(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
