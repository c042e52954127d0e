package planner

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
)

// realDir returns a directory without symlinks in its path.
func missingDir(t *testing.T, above string, names ...string) plan.MissingDir {
	t.Helper()
	loc, err := pathcheck.Resolve(pathcheck.OS{}, above)
	errnotest.Must(t, err)
	return plan.MissingDir{Above: pathcheck.Place{Path: above, ID: loc.Info.ID}, Names: names, Mode: 0o700}
}

func TestMakeBeneath(t *testing.T) {
	defer unix.Umask(unix.Umask(0o022))
	tests := []struct {
		name string
		// spoil changes the tree between planning and making.
		spoil func(t *testing.T, dir string)
		want  error
	}{
		{name: "nothing there"},
		{name: "another launch was faster", spoil: func(t *testing.T, dir string) { errnotest.Must(t, os.MkdirAll(dir+"/a/b", 0o711)) }},
		{name: "a symlink came up", want: unix.ENOTDIR, spoil: func(t *testing.T, dir string) { errnotest.Must(t, os.Symlink(t.TempDir(), dir+"/a")) }},
		{name: "a symlink came up deeper", want: unix.ENOTDIR, spoil: func(t *testing.T, dir string) {
			errnotest.Must(t, os.Mkdir(dir+"/a", 0o755))
			errnotest.Must(t, os.Symlink(t.TempDir(), dir+"/a/b"))
		}},
		{name: "a symlink came up at the end", want: unix.ENOTDIR, spoil: func(t *testing.T, dir string) {
			errnotest.Must(t, os.MkdirAll(dir+"/a/b", 0o755))
			errnotest.Must(t, os.Symlink(dir+"/nothing", dir+"/a/b/c"))
		}},
		{name: "a file came up", want: unix.ENOTDIR, spoil: func(t *testing.T, dir string) { errnotest.Must(t, os.WriteFile(dir+"/a", nil, 0o644)) }},
		{name: "the directory is another", want: pathcheck.ErrChanged, spoil: func(t *testing.T, dir string) {
			errnotest.Must(t, os.Rename(dir, dir+".old"))
			errnotest.Must(t, os.Mkdir(dir, 0o755))
		}},
		{name: "the directory is a symlink", want: unix.ELOOP, spoil: func(t *testing.T, dir string) {
			errnotest.Must(t, os.Rename(dir, dir+".old"))
			errnotest.Must(t, os.Symlink(dir+".old", dir))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := errnotest.RealDir(t) + "/home"
			errnotest.Must(t, os.Mkdir(dir, 0o755))
			made := missingDir(t, dir, "a", "b", "c")
			if tt.spoil != nil {
				tt.spoil(t, dir)
			}
			err := makeBeneath(made)
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			info, statErr := os.Stat(dir + "/a/b/c")
			if tt.want != nil {
				if statErr == nil {
					t.Error("made where it leads elsewhere")
				}
				return
			}
			errnotest.Must(t, statErr)
			if info.Mode().Perm() != 0o700 {
				t.Errorf("mode %v", info.Mode())
			}
			if info, err := os.Stat(dir + "/a"); tt.spoil != nil && (err != nil || info.Mode().Perm() != 0o711) {
				t.Errorf("what was there is %v, %v", info.Mode(), err)
			}
		})
	}
}

// TestReplaceable: what a program could replace in a writable root, and that
// the same things outside are no matter.
func TestReplaceable(t *testing.T) {
	dir := errnotest.RealDir(t)
	errnotest.Must(t, os.Chmod(filepath.Dir(dir), 0o755))
	for _, d := range []string{"ws/open", "else"} {
		errnotest.Must(t, os.MkdirAll(dir+"/"+d, 0o755))
		errnotest.Must(t, os.WriteFile(dir+"/"+d+"/f", nil, 0o644))
	}
	errnotest.Must(t, os.Symlink("../else/f", dir+"/ws/l"))
	errnotest.Must(t, os.Symlink("ws/open/f", dir+"/in"))
	p := &rules.Policy{Version: 1, Scope: rules.ScopeWorkspace, Workspace: dir + "/ws", Toolchain: rules.ToolchainDirs{Mode: rules.ToolchainNone}}
	plan, err := plan.Make(p, plan.Launch{Cwd: "/"}, pathcheck.OS{})
	errnotest.Must(t, err)
	for path, want := range map[string]bool{
		"/ws/open/f": true, "/ws/l": true, "/ws/open": true, "/else/f": false, "/in": false, "/ws": false,
	} {
		g := guard{Input: &Input{Policy: p}, pl: plan, tree: pathcheck.OS{}}
		if got := g.replaceable(dir + path); (got != "") != want || g.err != nil {
			t.Errorf("%s: got %q, %v, want %v", path, got, g.err, want)
		}
	}
}
