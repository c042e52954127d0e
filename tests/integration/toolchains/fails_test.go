package toolchains_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// What is known to fail in scope workspace, and what helps. The page on the
// scope has the same table.
func TestKnownFailuresHaveTheirCure(t *testing.T) {
	launch.Need(t, launch.ABIAtLeast(3))
	const both, rootOnly, userOnly = "", "root", "user"
	for _, row := range []struct {
		name    string
		needs   []launch.Feature
		who     string
		command string
		code    int
		says    string
		// cure changes the policy so that it works; nil if nothing does. In its
		// values "~" is HOME.
		cure map[string]any
		// env is as in a tool.
		env func(*testing.T, launch.User) []string
	}{
		{
			"git config --global", programs("git"), both, "git config --global user.name a", 255,
			"could not lock config file",
			map[string]any{"writable": []string{"~/.config/git"}},
			nil,
		},
		{
			"npm from an empty HOME", programs("npm"), both, "npm pack ./dep && npm install --offline --no-update-notifier ./dep-1.0.0.tgz", 243,
			"EACCES",
			map[string]any{"toolchainDirs": "leaves"},
			nil,
		},
		{
			"go install", programs("go"), both, "go env GOBIN; mkdir -p $(go env GOPATH)/bin", 1,
			"Permission denied",
			map[string]any{"writable": []string{"~/go"}},
			nil,
		},
		{
			"npm install -g", programs("npm"), both,
			"export npm_config_cache=$PWD/cache npm_config_prefix=$HOME/npm; npm pack ./dep && npm install -g --offline --no-update-notifier ./dep-1.0.0.tgz", 243,
			"EACCES",
			map[string]any{"writable": []string{"~/npm"}},
			nil,
		},
		{
			"pip install --user", programs("/usr/bin/python3"), both, pipUser, 1,
			"Permission denied",
			map[string]any{"writable": []string{"~/.local"}},
			nil,
		},
		{
			"cargo install", programs("cargo", "cc"), both, "cargo new -q --vcs none app && cargo install -q --offline --path app", 101,
			"Permission denied",
			map[string]any{"writable": []string{"~/.cargo"}},
			cargoEnv,
		},
		{
			"start-up files", nil, both, `echo x >> "$HOME/.bashrc"`, 1,
			"Permission denied",
			map[string]any{"writable": []string{"~/.bashrc"}},
			nil,
		},
		{
			"a directory beside the workspace", nil, both, "mkdir ../new", 1,
			"Permission denied", nil, nil,
		},
		{
			"unshare -r", append(programs("unshare"), launch.UserNS), userOnly, "unshare -r true", 1,
			"/proc/self/",
			map[string]any{"writable": []string{"/proc"}},
			nil,
		},
		{
			"its own name", nil, userOnly, "echo x > /proc/self/comm", 1,
			"Permission denied",
			map[string]any{"writable": []string{"/proc"}},
			nil,
		},
		{
			"its own name, as root", nil, rootOnly, "echo x > /proc/self/comm", 1,
			"Permission denied", nil, nil,
		},
		{
			"message queues", programs("/usr/bin/python3"), both, mqOpen, 13, "", nil, nil,
		},
		{
			"mount", programs("mount"), rootOnly, "mkdir m && mount -t tmpfs t m && umount m", 32,
			"permission denied", nil, nil,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			launch.Need(t, row.needs...)
			launch.EachUser(t, func(t *testing.T, u launch.User) {
				if row.who == rootOnly && u.UID != 0 || row.who == userOnly && u.UID == 0 {
					t.Skipf("not for %s", u.Name)
				}
				var extra []string
				if row.env != nil {
					extra = row.env(t, u)
				}
				bash := launch.Look(t, "/bin/bash")
				shim := launch.Install(t, launch.Dir(t), "bash", launch.Record{Real: bash})
				run := func(path string, change map[string]any) launch.Result {
					// An own directory above the workspace, so that its permissions
					// deny nothing.
					top, home := u.Dir(t), u.Dir(t)
					mkdirs(t, u, home, ".config/git")
					for _, dir := range []string{"go", "npm", ".local", ".cargo"} {
						mkdirs(t, u, home, dir)
					}
					u.Write(t, filepath.Join(home, ".config/git/config"), "", 0o644)
					u.Write(t, filepath.Join(home, ".bashrc"), "", 0o644)
					ws := u.Mkdir(t, filepath.Join(top, "ws"), 0o755)
					mkdirs(t, u, ws, "dep")
					u.Write(t, filepath.Join(ws, "dep/package.json"), `{"name":"dep","version":"1.0.0"}`, 0o644)
					c := launch.Cmd{
						Path: path, Args: []string{"bash", "-c", row.command}, User: u, Dir: ws,
						Env: append([]string{"PATH=" + searchPath(), "HOME=" + home, "LC_ALL=C", "GOTOOLCHAIN=local"}, extra...),
					}
					if change != nil {
						policy := map[string]any{"version": 1, "scope": "workspace", "workspace": ws}
						for key, value := range change {
							if list, ok := value.([]string); ok {
								value = []string{strings.Replace(list[0], "~", home, 1)}
							}
							policy[key] = value
						}
						c.Policy = policy
					}
					return c.Run(t)
				}
				if r := run(bash, nil); r.Code != 0 {
					t.Errorf("does not work without the shim either: %v", r)
				}
				if r := run(shim, map[string]any{}); r.Code != row.code || !strings.Contains(r.Stderr, row.says) {
					t.Errorf("%v, want exit %d and %q", r, row.code, row.says)
				}
				if row.cure != nil {
					if r := run(shim, row.cure); r.Code != 0 {
						t.Errorf("with %v: %v", row.cure, r)
					}
				}
			})
		})
	}
}

// pipUser installs a wheel that it makes, with the pip that Python has for new
// environments.
const pipUser = `/usr/bin/python3 -c '
import zipfile
z = zipfile.ZipFile("dep-1.0-py3-none-any.whl", "w")
z.writestr("dep.py", "")
z.writestr("dep-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: dep\nVersion: 1.0\n")
z.writestr("dep-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
z.writestr("dep-1.0.dist-info/RECORD", "dep.py,,\n")
z.close()' && pip=$(/usr/bin/python3 -c '
import ensurepip, glob, os
dirs = [getattr(ensurepip, "_WHEEL_PKG_DIR", None), os.path.dirname(ensurepip.__file__) + "/_bundled"]
print([w for d in dirs if d for w in glob.glob(d + "/pip-*.whl")][0])') &&
PIP_BREAK_SYSTEM_PACKAGES=1 /usr/bin/python3 "$pip/pip" install -q --disable-pip-version-check --no-cache-dir --user --no-index --no-deps ./dep-1.0-py3-none-any.whl`

// mqOpen opens a POSIX message queue and exits with the errno. It needs the
// internal mount of mqueue, which is below no rule.
const mqOpen = `/usr/bin/python3 -c '
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
name = b"/shim-test-%d" % os.getpid()
fd = libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None)
if fd < 0: sys.exit(ctypes.get_errno())
libc.mq_unlink(name)'`
