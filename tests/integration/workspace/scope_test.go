package workspace_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestCase51_ScopesConfineAsNamed(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		outside := filepath.Join(p.outside, "new")
		create := try{Op: "create", Path: outside}

		p.want(t, p.policy(nil), map[try]string{create: "EACCES"})
		if r := p.report(t); !strings.HasPrefix(r.Mechanism, "landlock") {
			t.Errorf("workspace: mechanism %q", r.Mechanism)
		}

		p.want(t, m{"version": 1, "scope": "unrestricted", "report": p.reports}, map[try]string{create: "ok"})
		if r := p.report(t); r.Mechanism != "none" || r.Network != "allow" || r.WritableDirs != nil {
			t.Errorf("unrestricted: %+v", r)
		}
		if r := p.run(t, m{"version": 1, "scope": "unrestricted"}, "grep NoNewPrivs /proc/self/status"); r.Stdout != "NoNewPrivs:\t0\n" {
			t.Errorf("unrestricted: %q", r.Stdout)
		}

		for _, bad := range []struct {
			policy m
			says   string
		}{
			{m{"version": 1, "scope": ""}, "scope: "},
			{m{"version": 1, "scope": "project"}, "scope: "},
			{m{"version": 1, "scope": "workspace", "network": "some"}, "network: "},
			{m{"version": 1, "workspace": p.ws}, `workspace: only allowed with scope "workspace"`},
			{m{"version": 1, "scope": "local", "writable": []string{p.ws}}, `writable: only allowed with scope "workspace"`},
			{m{"version": 1, "toolchainDirs": true}, `toolchainDirs: only allowed with scope "workspace"`},
			{m{"version": 1, "scope": "unrestricted", "network": "allow"}, "network: not allowed with scope"},
			{m{"version": 1, "scope": "unrestricted", "isolate": []string{}}, "isolate: not allowed with scope"},
			{m{"version": 1, "scope": "unrestricted", "capabilities": "keep"}, "capabilities: not allowed with scope"},
			{m{"version": 1, "scope": "unrestricted", "descriptors": "keep"}, "descriptors: not allowed with scope"},
			{m{"version": 1, "scope": "unrestricted", "commandCheck": "off"}, "commandCheck: not allowed with scope"},
			{m{"version": 1, "scope": "unrestricted", "workspace": p.ws}, "workspace: "},
			{m{"version": 1, "scope": "unrestricted", "writable": []string{}}, "writable: "},
			{m{"version": 1, "scope": "unrestricted", "toolchainDirs": false}, "toolchainDirs: "},
		} {
			r := p.shell(t, bad.policy, "echo started")
			if r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, bad.says) {
				t.Errorf("%v: %v, want 125 and %q", bad.policy, r, bad.says)
			}
		}
	})
}

func TestCase52_WritesOnlyInTheRoots(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		extra := u.Mkdir(t, filepath.Join(p.dir, "extra"), 0o755)
		pol := p.policy(m{"writable": []string{extra}})
		p.run(t, pol, ":")
		dirs := p.report(t).WritableDirs
		want := []string{p.ws, extra, p.tmp, filepath.Join(p.home, ".cache"), filepath.Join(p.home, "go/pkg")}
		if !slices.Equal(dirs, want) {
			t.Errorf("listed %q, want %q", dirs, want)
		}
		rows := map[try]string{
			{Op: "create", Path: filepath.Join(p.home, "x")}:     "EACCES",
			{Op: "create", Path: "/etc/shim-test-x"}:             "EACCES",
			{Op: "create", Path: "/usr/shim-test-x"}:             "EACCES",
			{Op: "create", Path: "/usr/local/bin/shim-test-x"}:   "EACCES",
			{Op: "create", Path: "/var/tmp/shim-test-x"}:         "EACCES",
			{Op: "create", Path: "/shim-test-x"}:                 "EACCES",
			{Op: "append", Path: "/etc/passwd"}:                  "EACCES",
			{Op: "read", Path: "/etc/passwd"}:                    "ok",
			{Op: "list", Path: "/"}:                              "ok",
			{Op: "list", Path: "/etc"}:                           "ok",
			{Op: "read", Path: filepath.Join(p.outside, "file")}: "ok",
			{Op: "list", Path: filepath.Join(p.outside, "dir")}:  "ok",
		}
		for _, dir := range dirs {
			rows[try{Op: "create", Path: filepath.Join(dir, "new")}] = "ok"
		}
		p.want(t, pol, rows)

		// The permissions allow what was denied: HOME and /var/tmp to both
		// users, the rest to root.
		allowed := []string{p.home, "/var/tmp"}
		if u.UID == 0 {
			allowed = append(allowed, "/etc", "/usr", "/usr/local/bin", "/", "/etc/passwd")
		}
		for _, dir := range allowed {
			r := p.run(t, nil, `test -w '`+dir+`' && echo yes`)
			if r.Stdout != "yes\n" {
				t.Errorf("%s cannot be written without the shim either: %v", dir, r)
			}
		}

		// A path that only the shell knows.
		script := `D="$1"; f=$(printf "%s" "x$$"); echo x > "$D/$f"`
		for dir, code := range map[string]int{p.outside: 2, p.ws: 0, p.tmp: 0} {
			c := launch.Shell(p.sh, script, dir)
			c.Env, c.Dir, c.User, c.Policy = p.env(), p.ws, u, pol
			r := c.Run(t)
			if r.Code != code || (code != 0) != strings.HasSuffix(r.Stderr, ": Permission denied\n") {
				t.Errorf("computed path in %s: %v, want exit %d", dir, r, code)
			}
		}
	})
}

func TestCase64_LocalConfinesNoWriting(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		// The network is denied so that there is a confinement at all.
		pol := m{"version": 1, "scope": "local", "network": "deny", "report": p.reports}
		p.want(t, pol, map[try]string{
			{Op: "create", Path: filepath.Join(p.outside, "new")}:    "ok",
			{Op: "create", Path: filepath.Join(p.home, "new")}:       "ok",
			{Op: "truncate", Path: filepath.Join(p.outside, "file")}: "ok",
		})
		r := p.report(t)
		if r.WritableDirs != nil || launch.Enforced(r, "writes") || !launch.Enforced(r, "network") {
			t.Errorf("report: %+v", r)
		}
		if left := tree(t, p.home); !slices.Equal(left, []string{"new"}) {
			t.Errorf("toolchain directories were made: %q", left)
		}
	})
}

func TestCase65_RenameBetweenRoots(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		p.fill(t, p.ws)
		p.run(t, p.policy(nil), ":") // makes ~/.cache
		in := func(dir, name string) string { return filepath.Join(dir, name) }
		p.want(t, p.policy(nil), map[try]string{
			{Op: "rename", Path: in(p.ws, "file"), To: in(p.tmp, "file")}:         ok,
			{Op: "rename", Path: in(p.ws, "dir"), To: in(p.home, ".cache/dir")}:   ok,
			{Op: "link", Path: in(p.ws, "other"), To: in(p.tmp, "other")}:         ok,
			{Op: "rename", Path: in(p.outside, "file"), To: in(p.ws, "stolen")}:   "EACCES",
			{Op: "rename", Path: in(p.ws, "empty"), To: in(p.outside, "gift")}:    "EACCES",
			{Op: "exchange", Path: in(p.ws, "empty"), To: in(p.outside, "empty")}: "EACCES",
			{Op: "rename", Path: in(p.outside, "dir"), To: in(p.outside, "dir2")}: "EACCES",
		})
		r := p.run(t, p.policy(nil), `mv "$TMPDIR/file" back && mv "$HOME/.cache/dir" . && cat back dir/in`)
		if r.Stdout != "texttext" {
			t.Error(r)
		}
	})
}

const ok = "ok"

// What the scope does not cover: modes and times of files outside. The report
// lists it.
func TestCase66_MetadataIsALimit(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		file := filepath.Join(p.outside, "file")
		p.want(t, p.policy(nil), map[try]string{
			{Op: "chmod", Path: file}: ok,
			{Op: "times", Path: file}: ok,
			{Op: "owner", Path: file}: ok,
			{Op: "xattr", Path: file}: ok,
			{Op: "write", Path: file}: "EACCES",
		})
		var st unix.Stat_t
		if err := unix.Stat(file, &st); err != nil || st.Mode&0o777 != 0o700 || st.Mtim.Sec != 1 {
			t.Errorf("mode %o, mtime %d, %v", st.Mode, st.Mtim.Sec, err)
		}
		if got := launch.NotEnforced(p.report(t), "metadata-changes"); !slices.Equal(got, []string{"limit"}) {
			t.Errorf("metadata-changes: %q", got)
		}
	})
}

func TestCase69_WithoutLandlockWritesAreNotHeld(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		launch.Need(t, launch.Seccomp, launch.IsRoot)
		const script = `echo started; echo x > ../outside/new`
		for _, row := range []struct {
			name      string
			abi       int
			required  bool
			code      int
			says      string
			mechanism string
			enforced  bool
		}{
			{"none, required", 0, true, 125, "cannot enforce writes: Landlock is not available", "unavailable", false},
			{"none, not required", 0, false, 0, "not enforced: writes", "unavailable", false},
			{"ABI 2, required", 2, true, 125, "cannot enforce writes: needs Landlock ABI 3", "unavailable", false},
			{"ABI 2, not required", 2, false, 0, "not enforced: writes", "landlock", false},
			{"ABI 3, required", 3, true, 2, "", "landlock", true},
		} {
			t.Run(row.name, func(t *testing.T) {
				p.reports = filepath.Join(u.Dir(t), "report")
				new := filepath.Join(p.outside, "new")
				if err := os.RemoveAll(new); err != nil {
					t.Fatal(err)
				}
				c := launch.Shell(p.sh, script)
				c.Env, c.Dir, c.User, c.Policy = p.env(), p.ws, u, p.policy(m{"required": row.required})
				c.FakeABI = &launch.ABI{Version: row.abi}
				r := c.Run(t)
				started := strings.HasPrefix(r.Stdout, "started")
				// The kernel below the fake enforces what it is given, so on
				// ABI 2 the file may be denied all the same.
				if r.Code != row.code && (row.abi != 2 || row.required) || started != (row.code != 125) || !strings.Contains(r.Stderr, row.says) {
					t.Errorf("%v", r)
				}
				rep := p.report(t)
				if rep.Mechanism != row.mechanism || launch.Enforced(rep, "writes") != row.enforced {
					t.Errorf("mechanism %q, enforced %v", rep.Mechanism, rep.Enforced)
				}
				if listed := rep.WritableDirs != nil; listed != (rep.Mechanism == "landlock") {
					t.Errorf("mechanism %q, and %q is listed", rep.Mechanism, rep.WritableDirs)
				}
				if (rep.Warning != "") != (row.code == 0) {
					t.Errorf("warning %q", rep.Warning)
				}
			})
		}
	})
}

func TestCase70_NoticeIsTrue(t *testing.T) {
	const writable = "For this run, temp and per-user cache directories are writable."
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		for _, row := range []struct {
			policy   string
			writable bool
			network  string
		}{
			{`{"version":1,"scope":"workspace"}`, true, "allow"},
			{`{"version":1,"scope":"workspace","network":"deny"}`, true, "deny"},
			{`{"version":1,"scope":"local"}`, false, "allow"},
			{`{"version":1,"network":"deny"}`, false, "deny"},
			{`{"version":1,"scope":"unrestricted"}`, false, "allow"},
		} {
			pol, err := rules.Parse([]byte(row.policy))
			if err != nil {
				t.Fatal(err)
			}
			lines := rules.Notice(pol)
			if got := slices.Contains(lines, writable); got != row.writable {
				t.Errorf("%s: %q", row.policy, lines)
			}
			blocked := slices.ContainsFunc(lines, func(s string) bool { return strings.Contains(s, "network is blocked") })
			if blocked != (row.network == "deny") {
				t.Errorf("%s: %q", row.policy, lines)
			}

			// What is said is what a launch does.
			p.reports = filepath.Join(u.Dir(t), "report")
			c := launch.Shell(p.sh, ":")
			c.Env, c.Dir, c.User = p.env(), p.ws, u
			c.Policy = strings.Replace(row.policy, `}`, `,"report":"`+p.reports+`"}`, 1)
			if r := c.Run(t); r.Code != 0 {
				t.Fatal(r)
			}
			rep := p.report(t)
			if rep.Network != row.network || (rep.WritableDirs != nil) != row.writable {
				t.Errorf("%s: network %q, writable %q", row.policy, rep.Network, rep.WritableDirs)
			}
		}
	})
}
