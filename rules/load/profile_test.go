package load_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
)

// directory makes a profile directory from names and texts.
func directory(t *testing.T, files map[string]string) load.Options {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return load.Options{ProfileDir: dir}
}

// TestProfileDirectory: a file goes before a built-in profile of its name, and one
// that cannot be read stops the launch.
func TestProfileDirectory(t *testing.T) {
	o := directory(t, map[string]string{rules.PaperclipRunner: `{"version":1,"hidden":["/mine"]}`})
	p, err := o.Parse([]byte(`{"hidden":[],"required":true,"instanceRoot":"/i"}`))
	if err != nil || len(p.Hidden) != 1 || p.Hidden[0].Path != "/mine" || p.Targets != nil {
		t.Errorf("%+v, %v", p, err)
	}
	if want := filepath.Join(o.ProfileDir, rules.PaperclipRunner+".json"); p.ProfileFile != want {
		t.Errorf("read from %q, want %q", p.ProfileFile, want)
	}
	if err := os.Mkdir(filepath.Join(o.ProfileDir, "dir.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Profile("dir"); err == nil || !strings.Contains(err.Error(), "dir.json") || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := (load.Options{ProfileDir: "/sys/nowhere"}).Profile(rules.PaperclipRunner); err != nil {
		t.Errorf("no profile directory: %v", err)
	}
}

// TestExampleProfiles: the examples are sound, and do what they say.
func TestExampleProfiles(t *testing.T) {
	dir, err := filepath.Abs("../../examples/profiles")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d examples, %v", len(entries), err)
	}
	o := load.Options{ProfileDir: dir}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".json")
		if _, err := o.Parse([]byte(`{"version":1,"root":"/r","profile":"` + name + `"}`)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, err := o.Parse([]byte(`{"version":1,"root":"/n","profile":"night-shift"}`))
	if err != nil {
		t.Fatal(err)
	}
	q, dropped, err := p.Expand(rules.Values{
		Argv: []string{"night-worker", "--job", "17", "--ledger-page", "/n/ledger/pages/17"}, Cwd: "/home/u/w",
		Env: []string{"HOME=/home/u", "NIGHT_TENANT=a/b"}, Names: []string{"night-worker"},
	})
	if err != nil || len(dropped) != 0 {
		t.Fatalf("dropped %v, %v", dropped, err)
	}
	var got []string
	for _, e := range q.Exposed {
		got = append(got, e.Path)
	}
	want := []string{"/n/spool/a_b/17", "/n/ledger/pages/17", "/home/u/.night-shift/_home_u_w"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
