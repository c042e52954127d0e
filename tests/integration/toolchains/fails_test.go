package toolchains_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// What is known to fail in scope workspace, and what helps. The page on the
// scope has the same table.
func TestKnownFailures(t *testing.T) {
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
	}{
		{
			"git config --global", programs("git"), both, "git config --global user.name a", 255,
			"could not lock config file",
			map[string]any{"writable": []string{"~/.config/git"}},
		},
		{
			"npm from an empty HOME", programs("npm"), both, "npm pack ./dep && npm install --offline --no-update-notifier ./dep-1.0.0.tgz", 243,
			"EACCES",
			map[string]any{"toolchainDirs": "leaves"},
		},
		{
			"go install", programs("go"), both, "go env GOBIN; mkdir -p $(go env GOPATH)/bin", 1,
			"Permission denied",
			map[string]any{"writable": []string{"~/go"}},
		},
		{
			"start-up files", nil, both, `echo x >> "$HOME/.bashrc"`, 1,
			"Permission denied",
			map[string]any{"writable": []string{"~/.bashrc"}},
		},
		{
			"a directory beside the workspace", nil, both, "mkdir ../new", 1,
			"Permission denied", nil,
		},
		{
			"unshare -r", append(programs("unshare"), launch.UserNS), userOnly, "unshare -r true", 1,
			"/proc/self/",
			map[string]any{"writable": []string{"/proc"}},
		},
		{
			"its own name", nil, userOnly, "echo x > /proc/self/comm", 1,
			"Permission denied",
			map[string]any{"writable": []string{"/proc"}},
		},
		{
			"its own name, as root", nil, rootOnly, "echo x > /proc/self/comm", 1,
			"Permission denied", nil,
		},
		{
			"message queues", programs("/usr/bin/python3"), both, mqOpen, 13, "", nil,
		},
		{
			"mount", programs("mount"), rootOnly, "mkdir m && mount -t tmpfs t m && umount m", 32,
			"permission denied", nil,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			launch.Need(t, row.needs...)
			launch.EachUser(t, func(t *testing.T, u launch.User) {
				if row.who == rootOnly && u.UID != 0 || row.who == userOnly && u.UID == 0 {
					t.Skipf("not for %s", u.Name)
				}
				bash := launch.Look(t, "/bin/bash")
				shim := launch.Install(t, launch.Dir(t), "bash", launch.Record{Real: bash})
				run := func(path string, change map[string]any) launch.Result {
					// An own directory above the workspace, so that its permissions
					// deny nothing.
					top, home := u.Dir(t), u.Dir(t)
					mkdirs(t, u, home, ".config/git")
					mkdirs(t, u, home, "go")
					u.Write(t, filepath.Join(home, ".config/git/config"), "", 0o644)
					u.Write(t, filepath.Join(home, ".bashrc"), "", 0o644)
					ws := u.Mkdir(t, filepath.Join(top, "ws"), 0o755)
					mkdirs(t, u, ws, "dep")
					u.Write(t, filepath.Join(ws, "dep/package.json"), `{"name":"dep","version":"1.0.0"}`, 0o644)
					c := launch.Cmd{
						Path: path, Args: []string{"bash", "-c", row.command}, User: u, Dir: ws,
						Env: []string{"PATH=" + searchPath(), "HOME=" + home, "LC_ALL=C", "GOTOOLCHAIN=local"},
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

// mqOpen opens a POSIX message queue and exits with the errno. It needs the
// internal mount of mqueue, which is below no rule.
const mqOpen = `/usr/bin/python3 -c '
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
name = b"/shim-test-%d" % os.getpid()
fd = libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None)
if fd < 0: sys.exit(ctypes.get_errno())
libc.mq_unlink(name)'`
