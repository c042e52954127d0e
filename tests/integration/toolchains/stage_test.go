package toolchains_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A tool is one toolchain and the steps of a small project of its own.
type tool struct {
	name  string
	needs []launch.Feature
	// files are put into the workspace before the first step.
	files map[string]string
	steps []step
	// empty is toolchainDirs of the policy where HOME is empty, when the tool
	// does not work with the default there.
	empty any
	// env adds to the environment what this machine needs to reach its own
	// registry or compiler, and nothing that says where caches are. It skips
	// the test where the user has no such tool.
	env func(t *testing.T, u launch.User) []string
	// chance matches the parts of names that differ from run to run.
	chance *regexp.Regexp
}

// A step is one launch of bash with a command string.
type step struct {
	command string
	// says is a part of its output, "" for any.
	says string
}

func TestCase53_GoBuilds(t *testing.T)    { goTool.test(t) }
func TestCase54_MktempWorks(t *testing.T) { mktemp.test(t) }
func TestCase55_DevicesWork(t *testing.T) { devices.test(t) }

func TestToolchainsBuild(t *testing.T) {
	for _, tl := range tools {
		t.Run(tl.name, tl.test)
	}
}

// test runs a tool three times for each user: without the shim in an empty HOME,
// with it in another empty HOME, and with it in the HOME that the first run has
// filled. TMPDIR is not set: the temp directory is /tmp.
func (tl *tool) test(t *testing.T) {
	launch.Need(t, append(tl.needs, launch.ABIAtLeast(3))...)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		var extra []string
		if tl.env != nil {
			extra = tl.env(t, u)
		}
		used := removable(t, u.Dir(t))
		bare := tl.run(t, u, used, extra, nil)
		for _, row := range []struct {
			name, home string
			dirs       any
		}{{"empty HOME", removable(t, u.Dir(t)), tl.empty}, {"used HOME", used, nil}} {
			t.Run(row.name, func(t *testing.T) {
				policy := map[string]any{"version": 1, "scope": "workspace"}
				if row.dirs != nil {
					policy["toolchainDirs"] = row.dirs
				}
				tl.compare(t, bare, tl.run(t, u, row.home, extra, policy))
			})
		}
	})
}

// An outcome is what a run of all steps came to.
type outcome struct {
	results []launch.Result
	left    []string // in the workspace
}

// run runs the steps in a new workspace, without the shim when policy is nil.
func (tl *tool) run(t *testing.T, u launch.User, home string, extra []string, policy map[string]any) outcome {
	t.Helper()
	ws := removable(t, u.Dir(t))
	for name, text := range tl.files {
		mkdirs(t, u, ws, filepath.Dir(name))
		u.Write(t, filepath.Join(ws, name), text, 0o644)
	}
	bash := launch.Look(t, "/bin/bash")
	c := launch.Cmd{Path: bash, User: u, Dir: ws, Env: append([]string{"PATH=" + searchPath(), "HOME=" + home, "LC_ALL=C"}, extra...), Timeout: 10 * time.Minute}
	if policy != nil {
		c.Path = launch.Install(t, launch.Dir(t), "bash", launch.Record{Real: bash})
		policy["workspace"] = ws
		c.Policy = policy
	}
	var out outcome
	for _, s := range tl.steps {
		c.Args = []string{"bash", "-c", s.command}
		out.results = append(out.results, c.Run(t))
	}
	err := filepath.WalkDir(ws, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && path != ws {
			name := path[len(ws)+1:]
			if tl.chance != nil {
				name = tl.chance.ReplaceAllString(name, "#")
			}
			out.left = append(out.left, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (tl *tool) compare(t *testing.T, bare, got outcome) {
	t.Helper()
	for i, s := range tl.steps {
		want, r := bare.results[i], got.results[i]
		if want.Code != 0 || !strings.Contains(want.Stdout+want.Stderr, s.says) {
			t.Errorf("%s: does not work without the shim: %v", s.command, want)
		}
		if r.Code != want.Code || r.Signal != want.Signal || !strings.Contains(r.Stdout+r.Stderr, s.says) {
			t.Errorf("%s: %v\nwithout the shim: %v", s.command, r, want)
		}
	}
	if len(bare.left) == 0 {
		t.Error("nothing is left in the workspace: nothing was compared")
	}
	for _, name := range got.left {
		if !slices.Contains(bare.left, name) {
			t.Errorf("left in the workspace: %s", name)
		}
	}
}

// searchPath is a PATH with the usual directories and that of Go.
func searchPath() string {
	dirs := []string{"/usr/local/bin", "/usr/bin", "/bin"}
	if path, err := exec.LookPath("go"); err == nil && !slices.Contains(dirs, filepath.Dir(path)) {
		dirs = append(dirs, filepath.Dir(path))
	}
	return strings.Join(dirs, ":")
}

func mkdirs(t *testing.T, u launch.User, top, dir string) {
	t.Helper()
	for i := range dir {
		if dir[i] != '/' {
			continue
		}
		mkdir(t, u, filepath.Join(top, dir[:i]))
	}
	mkdir(t, u, filepath.Join(top, dir))
}

func mkdir(t *testing.T, u launch.User, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		u.Mkdir(t, path, 0o755)
	}
}

// removable lets the end of the test remove a directory in which a tool has
// left read-only directories, as Go's module cache does.
func removable(t *testing.T, dir string) string {
	t.Helper()
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(path, 0o755)
			}
			return err
		})
	})
	return dir
}

// ask returns the output of a command that the tests' own environment
// configures.
func ask(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatal(fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err))
	}
	return strings.TrimSpace(string(out))
}
