package workspace_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A variable that would open everything is dropped, with a warning.
func TestCase61_WideVariablesAreDropped(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		for _, row := range []struct {
			name, value string
			says        string
		}{
			{"TMPDIR", "/", "is /"},
			{"TMPDIR", "~", "is the home directory"},
			{"TMPDIR", "~/..", "is above the home directory"},
			{"TMPDIR", "/var", "is above the home directory"},
			{"GOMODCACHE", "~", "is the home directory"},
			{"GOCACHE", "/", "is /"},
			{"XDG_CACHE_HOME", "~/", "is the home directory"},
			{"GOTMPDIR", "//.", "is /"},
		} {
			t.Run(row.name+"="+row.value, func(t *testing.T) {
				p := newPlace(t, u)
				p.set[row.name] = strings.ReplaceAll(row.value, "~", p.home)
				r := p.run(t, p.policy(nil), ":")
				warning := row.name + " "
				if !strings.Contains(r.Stderr, warning) || !strings.Contains(r.Stderr, row.says) {
					t.Errorf("no warning that says %q: %v", row.says, r)
				}
				rep := p.report(t)
				for _, dir := range rep.WritableDirs {
					if dir == "/" || dir == p.home || strings.HasPrefix(p.home, dir+"/") {
						t.Errorf("%s is listed", dir)
					}
				}
				if !strings.Contains(rep.Warning, row.says) {
					t.Errorf("report: warning %q", rep.Warning)
				}
				p.want(t, p.policy(nil), map[try]string{
					{Op: "create", Path: filepath.Join(p.home, "x")}:    "EACCES",
					{Op: "create", Path: filepath.Join(p.outside, "x")}: "EACCES",
					{Op: "create", Path: filepath.Join(p.ws, "x")}:      ok,
				})
			})
		}
	})
}

// What a policy names itself is an error instead.
func TestCase61_WideRootsAreRefused(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		for _, row := range []struct {
			name   string
			change m
			says   string
		}{
			{"workspace /", m{"workspace": "/"}, `workspace: "/": is /`},
			{"workspace HOME", m{"workspace": p.home}, "is the home directory"},
			{"workspace above HOME", m{"workspace": p.dir}, "is above the home directory"},
			{"writable /", m{"writable": []string{p.ws, "/"}}, `writable[1]: "/": is /`},
			{"writable above the shim", m{"writable": []string{filepath.Dir(p.sh)}}, "is above the shim"},
			{"workspace is HOME as the program gets it", m{"workspace": p.outside, "env": m{"set": m{"HOME": p.outside}}}, "is the home directory"},
			{"workspace is HOME as the launcher has it", m{"workspace": p.home, "env": m{"set": m{"HOME": p.outside}}}, "is the home directory"},
			{"workspace is a file", m{"workspace": filepath.Join(p.outside, "file")}, "is not a directory"},
			{"workspace is missing", m{"workspace": filepath.Join(p.outside, "none")}, "does not exist"},
			{"the current directory is HOME", m{"workspace": nil}, "is the home directory"},
		} {
			t.Run(row.name, func(t *testing.T) {
				c := launch.Shell(p.sh, "echo started")
				c.Env, c.Dir, c.User, c.Policy = p.env(), p.home, u, p.policy(row.change)
				r := c.Run(t)
				if r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, row.says) {
					t.Errorf("%v, want 125 and %q", r, row.says)
				}
			})
		}
		// The current directory is the default where nothing is wrong with it.
		c := launch.Shell(p.sh, "echo x > here && cat here")
		c.Env, c.Dir, c.User, c.Policy = p.env(), p.outside, u, p.policy(m{"workspace": nil})
		if r := c.Run(t); r.Code != 0 || r.Stdout != "x\n" {
			t.Error(r)
		}
	})
}

// A program can replace a cache directory by a link to what the next launch
// should not write. The next launch drops it.
func TestReplacedCacheIsDropped(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		for _, row := range []struct {
			name    string
			make    string // in HOME, before the first launch
			set     map[string]string
			replace string // what the first launch replaces, in HOME
		}{
			{"inside .cache", ".cache/go-build", map[string]string{"GOCACHE": "~/.cache/go-build"}, ".cache/go-build"},
			{"inside the module cache", "go/pkg/deep", map[string]string{"GOCACHE": "~/go/pkg/deep"}, "go/pkg/deep"},
			{"a directory on the way", ".cache/a/b", map[string]string{"GOCACHE": "~/.cache/a/b"}, ".cache/a"},
		} {
			t.Run(row.name, func(t *testing.T) {
				p := newPlace(t, u)
				mkdirAll(t, u, p.home, row.make)
				ssh := u.Mkdir(t, filepath.Join(p.home, ".ssh"), 0o700)
				mkdirAll(t, u, ssh, "b")
				for name, value := range row.set {
					p.set[name] = strings.ReplaceAll(value, "~", p.home)
				}
				target := filepath.Join(p.home, row.replace)
				attack := `mv "$1" "$1.old" && ln -s "$HOME/.ssh" "$1" && readlink "$1"`
				c := launch.Shell(p.sh, attack, target)
				c.Env, c.Dir, c.User, c.Policy = p.env(), p.ws, u, p.policy(nil)
				if r := c.Run(t); r.Code != 0 || r.Stdout != ssh+"\n" {
					t.Fatalf("the first launch could not make the link, so nothing is tried: %v", r)
				}
				for _, dir := range p.listed(t, nil) {
					if strings.HasPrefix(dir, ssh) {
						t.Errorf("%s is listed", dir)
					}
				}
				if w := p.report(t).Warning; !strings.Contains(w, "goes through the symlink") {
					t.Errorf("warning %q", w)
				}
				p.want(t, p.policy(nil), map[try]string{
					{Op: "create", Path: filepath.Join(ssh, "authorized_keys")}:    "EACCES",
					{Op: "create", Path: filepath.Join(ssh, "b/x")}:                "EACCES",
					{Op: "create", Path: filepath.Join(target, "authorized_keys")}: "EACCES",
					{Op: "create", Path: filepath.Join(p.home, ".cache/still")}:    ok,
				})
			})
		}
	})
}

// What toolchains must be able to change but the roots of the environment is
// itself no root: HOME cannot be given another .cache by a launch.
func TestCacheItselfCannotBeReplaced(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		p.run(t, p.policy(nil), ":")
		cache := filepath.Join(p.home, ".cache")
		p.want(t, p.policy(nil), map[try]string{
			{Op: "rename", Path: cache, To: filepath.Join(p.home, "x")}: "EACCES",
			{Op: "rename", Path: cache, To: filepath.Join(p.ws, "x")}:   "EACCES",
			{Op: "rmdir", Path: cache}:                                  "EACCES",
			{Op: "rename", Path: p.ws, To: filepath.Join(p.dir, "x")}:   "EACCES",
		})
	})
}
