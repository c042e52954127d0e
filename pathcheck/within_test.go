package pathcheck

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

var containment = []struct {
	dir, path       string
	within, beneath bool
}{
	{"/ws", "/ws", true, false},
	{"/ws", "/ws/a", true, true},
	{"/ws", "/ws-evil", false, false},
	{"/ws", "/w", false, false},
	{"/ws", "/", false, false},
	{"/", "/", true, false},
	{"/", "/ws", true, true},
	{"/a/b", "/a/bc/d", false, false},
	{"/a/b", "/a/b/c/d", true, true},
	{"/a b", "/a b/\n", true, true},
}

func TestContainment(t *testing.T) {
	for _, c := range containment {
		if got := Within(c.dir, c.path); got != c.within {
			t.Errorf("Within(%q, %q) = %v, want %v", c.dir, c.path, got, c.within)
		}
		if got := Beneath(c.dir, c.path); got != c.beneath {
			t.Errorf("Beneath(%q, %q) = %v, want %v", c.dir, c.path, got, c.beneath)
		}
	}
}

// FuzzContainment holds the lexical functions to path/filepath.
func FuzzContainment(f *testing.F) {
	if runtime.GOOS == "windows" {
		f.Skip("filepath speaks of other paths there")
	}
	for _, c := range containment {
		f.Add(c.dir, c.path)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.Contains(a+b, "\x00") {
			t.Skip("no path")
		}
		dir, path := filepath.Clean("/"+a), filepath.Clean("/"+b)
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		within := rel != ".." && !strings.HasPrefix(rel, "../")
		if got := Within(dir, path); got != within {
			t.Fatalf("Within(%q, %q) = %v, but Rel is %q", dir, path, got, rel)
		}
		if got := Beneath(dir, path); got != (within && dir != path) {
			t.Fatalf("Beneath(%q, %q) = %v, but Rel is %q", dir, path, got, rel)
		}
		if within {
			if rel == "." {
				rel = ""
			}
			if got := Rel(dir, path); got != rel {
				t.Fatalf("Rel(%q, %q) = %q, want %q", dir, path, got, rel)
			}
			if got := Join(dir, rel); got != path {
				t.Fatalf("Join(%q, %q) = %q, want %q", dir, rel, got, path)
			}
		}
		if got, want := Parent(path), filepath.Dir(path); got != want {
			t.Fatalf("Parent(%q) = %q, want %q", path, got, want)
		}
	})
}
