package planner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// TestMakeReal: what is made, and what stands in the way. Nothing is made through
// a symlink, and nothing that is there is opened or changed.
func TestMakeReal(t *testing.T) {
	const other = "other/inside"
	for _, tt := range []struct {
		name, path string
		kind       rules.EntryKind
		plant      func(dir string) error
		// made is what must be there afterwards, with its mode; err a part of the
		// error, or "".
		made string
		mode os.FileMode
		err  string
	}{
		{"a directory", "a/b/c", rules.KindDir, nil, "a/b/c", os.ModeDir | 0o700, ""},
		{"its parents", "a/b/c", rules.KindDir, nil, "a/b", os.ModeDir | 0o700, ""},
		{"a file", "a/b/f", rules.KindFile, nil, "a/b/f", 0o600, ""},
		{"a directory that is there", "other", rules.KindDir, nil, "other", os.ModeDir | 0o755, ""},
		{"a file that is there", other, rules.KindFile, nil, other, 0o644, ""},
		{"a directory without permission", "d", rules.KindDir, func(dir string) error { return os.Mkdir(dir+"/d", 0) }, "d", os.ModeDir, ""},
		{"a FIFO for a file", "p", rules.KindFile, func(dir string) error { return unix.Mkfifo(dir+"/p", 0o600) }, "p", os.ModeNamedPipe | 0o600, ""},
		{"a FIFO for a directory", "p", rules.KindDir, func(dir string) error { return unix.Mkfifo(dir+"/p", 0o600) }, "p", os.ModeNamedPipe | 0o600, "not a directory"},
		{"a file for a directory", other + "/x", rules.KindDir, nil, other, 0o644, "not a directory"},
		{"a link for a directory", "l", rules.KindDir, link("other"), "l", os.ModeSymlink | 0o777, "is a symbolic link"},
		{"a link on the way", "l/new", rules.KindDir, link("other"), "l", os.ModeSymlink | 0o777, "is a symbolic link"},
		{"a link on the way to a file", "l/new", rules.KindFile, link("other"), "l", os.ModeSymlink | 0o777, "is a symbolic link"},
		{"a link to nothing for a file", "l", rules.KindFile, link("other/new"), "l", os.ModeSymlink | 0o777, ""},
		{"a link to nothing for a directory", "l", rules.KindDir, link("other/new"), "l", os.ModeSymlink | 0o777, "is a symbolic link"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(dir+"/other", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir+"/"+other, []byte("kept"), 0o644); err != nil {
				t.Fatal(err)
			}
			if tt.plant != nil {
				if err := tt.plant(dir); err != nil {
					t.Fatal(err)
				}
			}
			err = makeReal(dir+"/"+tt.path, tt.kind)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v, want %q", err, tt.err)
			}
			if info, err := os.Lstat(dir + "/" + tt.made); err != nil || info.Mode() != tt.mode {
				t.Errorf("%s: %v, %v; want %v", tt.made, info, err, tt.mode)
			}
			if _, err := os.Lstat(dir + "/other/new"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("made through a link: %v", err)
			}
			if data, err := os.ReadFile(dir + "/" + other); string(data) != "kept" {
				t.Errorf("%q, %v", data, err)
			}
			if names, err := os.ReadDir(dir + "/other"); len(names) != 1 {
				t.Errorf("%v, %v", names, err)
			}
		})
	}
}

func link(to string) func(string) error {
	return func(dir string) error { return os.Symlink(dir+"/"+to, dir+"/l") }
}

// TestMakeRealDescriptors: no descriptor stays open, whatever happens.
func TestMakeRealDescriptors(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("nowhere", dir+"/l"); err != nil {
		t.Fatal(err)
	}
	before := countDescriptors(t)
	for i, path := range []string{"/a/b/c", "/a/b/c", "/l/x", "/a/f"} {
		_ = makeReal(dir+path, []rules.EntryKind{rules.KindDir, rules.KindDir, rules.KindDir, rules.KindFile}[i])
	}
	if after := countDescriptors(t); after != before {
		t.Errorf("%d open before, %d after", before, after)
	}
}

func countDescriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
