package shims

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(m *testing.M) { launch.Main(m) }

func write(t *testing.T, path, text string, perm os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), perm); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAbsolute: ".." counts from where the symbolic link before it leads, and the
// last component is not resolved.
func TestAbsolute(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"/a/b", "/c"} {
		if err := os.MkdirAll(dir+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir+"/a/b", dir+"/c/link"); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir + "/c")
	for _, row := range []struct{ path, want string }{
		{"x", dir + "/c/x"},
		{"./x//y/.", dir + "/c/x/y"},
		{"link", dir + "/c/link"},
		{"link/../x", dir + "/a/x"},
		{dir + "/c/link/..", dir + "/a"},
		{"../c/link", dir + "/c/link"},
		{"/", "/"},
	} {
		if got, err := Absolute(row.path); err != nil || got != row.want {
			t.Errorf("%s: %s, %v, want %s", row.path, got, err, row.want)
		}
	}
	for _, path := range []string{"", "nothing/../x"} {
		if got, err := Absolute(path); err == nil || strings.Contains(err.Error(), "nothing") {
			t.Errorf("%q: %s, %v", path, got, err)
		}
	}
}

// TestOnPath: what a name means is what execvp(3) would take, in its order.
func TestOnPath(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"plain", "none", "first", "second", "dir/tool"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir+"/plain/tool", "text", 0o644)
	first, second := write(t, dir+"/first/tool", "", 0o755), dir+"/second/tool"
	launch.Install(t, dir+"/second", "tool", launch.Record{Real: first})
	if err := os.Symlink("first", dir+"/again"); err != nil {
		t.Fatal(err)
	}
	v := &voice.Caller{Environ: []string{"PATH=:relative:" + strings.Join([]string{
		dir + "/plain", dir + "/nothing", dir + "/none", dir + "/dir", dir + "/first", dir + "/again", dir + "/second",
	}, ":")}}
	found := OnPath(v, "tool")
	if len(found) != 2 || found[0].Path != first || found[0].IsShim || found[1].Path != second || !found[1].IsShim {
		t.Fatalf("%+v", found)
	}
	if found[1].Record.Real != first || found[1].Data != nil {
		t.Errorf("%+v", found[1].Record)
	}
	if at, err := Find(v, "tool"); err != nil || at.Path != first {
		t.Errorf("by name: %s, %v", at.Path, err)
	}
	if at, err := Find(v, second); err != nil || !at.IsShim {
		t.Errorf("by path: %+v, %v", at.Path, err)
	}
	for _, name := range []string{"", "absent"} {
		if at, err := Find(v, name); err == nil {
			t.Errorf("%q: %+v", name, at)
		}
	}
}

// TestAll: the installed shims of a directory, each once, and neither temporary
// files nor real programs.
func TestAll(t *testing.T) {
	dir := t.TempDir()
	real := write(t, dir+"/real", "", 0o755)
	for _, name := range []string{"a", "b", ".b.shim-new", "c" + Suffix} {
		launch.Install(t, dir, name, launch.Record{Real: real})
	}
	launch.Copy(t, dir, "bare")
	write(t, dir+"/gone"+Suffix, "", 0o755)
	if err := os.Symlink("a", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	names, err := Names(dir)
	if want := []string{"a", "b", "bare", "c", "gone"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("names %q, %v, want %q", names, err, want)
	}
	var found []string
	for _, f := range All([]string{dir, dir + "/nothing", dir}) {
		found = append(found, f.Path)
	}
	if want := []string{dir + "/a", dir + "/b"}; !slices.Equal(found, want) {
		t.Errorf("shims %q, want %q", found, want)
	}
}

// TestLoad: only a shim that this machine can start is loaded.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	bare := launch.Copy(t, dir, "bare")
	recorded := launch.Install(t, dir, "recorded", launch.Record{Real: "/bin/true"})
	data, err := os.ReadFile(bare)
	if err != nil {
		t.Fatal(err)
	}
	other := slices.Clone(data)
	other[18], other[19] = 8, 0 // e_machine (elf(5)): EM_MIPS
	for _, row := range []struct{ name, path, why string }{
		{"a bare shim", bare, ""},
		{"an installed shim", recorded, ""},
		{"another machine", write(t, dir+"/mips", string(other), 0o755), "is built for EM_MIPS"},
		{"another program", "/bin/true", "is not a shim"},
		{"a directory", dir, "is not a shim"},
		{"nothing", dir + "/nothing", "no such file"},
		{"cut off", write(t, dir+"/short", string(data[:8192]), 0o755), "no record block"},
		{"two blocks", write(t, dir+"/two", string(data)+string(data), 0o755), "more than one record block"},
	} {
		at, err := Load(row.path)
		if row.why == "" && (err != nil || at.Path != row.path || len(at.Data) != len(data) || at.Recorded != (row.path == recorded)) {
			t.Errorf("%s: %s, %d bytes, recorded %v, %v", row.name, at.Path, len(at.Data), at.Recorded, err)
		}
		if row.why != "" && (err == nil || !strings.Contains(err.Error(), row.why)) {
			t.Errorf("%s: %v, want %q", row.name, err, row.why)
		}
	}
}

// TestLookWaitsForNothing: a FIFO without a writer is no shim, at once.
func TestLookWaitsForNothing(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan File, 1)
	go func() { done <- At(fifo) }()
	select {
	case at := <-done:
		if at.IsShim {
			t.Errorf("%+v", at)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a FIFO was waited for")
	}
	// Nothing is read from it, nor from a device.
	for _, path := range []string{fifo, os.DevNull} {
		if f, err := Open(unix.AT_FDCWD, path, 0); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v, %v", path, f, err)
		}
	}
	if err := os.Symlink(fifo, fifo+"-link"); err != nil {
		t.Fatal(err)
	}
	if _, err := Look(unix.AT_FDCWD, fifo+"-link", unix.O_NOFOLLOW); err == nil {
		t.Error("a symbolic link was followed")
	}
}
