package network

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// What programs do without a network works as ever when it is denied; each row
// runs once without and once with the policy, and says the same.
func TestProgramsWorkWithoutANetwork(t *testing.T) {
	launch.Need(t, launch.Landlock)
	for _, row := range []struct {
		name, program, script, want string
		rootOnly                    bool
	}{
		{name: "node spawnSync", program: "node", want: "hi\n", script: `node -e 'console.log(require("child_process").spawnSync("echo", ["hi"]).stdout.toString().trim())'`},
		{name: "node fork", program: "node", want: "message hello\n", script: `cat >fork.js <<'END'
const cp = require("child_process");
if (process.send) process.send("hello");
else cp.fork(__filename).on("message", m => console.log("message", m));
END
node fork.js`},
		{name: "node interfaces", program: "node", want: "true\n", script: `node -e 'console.log("lo" in require("os").networkInterfaces())'`},
		{name: "node unix server", program: "node", want: "answer\n", script: `node -e 'const net = require("net");
const s = net.createServer(c => c.end("answer\n")).listen("./socket", () => net.connect("./socket").on("data", d => process.stdout.write(d)).on("close", () => s.close()))'`},
		{name: "python asyncio", program: "python3", want: "b'hi\\n'\n", script: `python3 - <<'END'
import asyncio
async def main():
    p = await asyncio.create_subprocess_exec("echo", "hi", stdout=asyncio.subprocess.PIPE)
    print((await p.communicate())[0])
asyncio.run(main())
END`},
		{name: "python multiprocessing", program: "python3", want: "[1, 4]\n", script: `cat >pool.py <<'END'
import multiprocessing
def square(n): return n * n
if __name__ == "__main__":
    with multiprocessing.Pool(2) as p: print(p.map(square, [1, 2]))
END
python3 pool.py`},
		{name: "python localhost", program: "python3", want: "127.0.0.1\n", script: `python3 -c 'import socket; print(socket.gethostbyname("localhost"))'`},
		{name: "git", program: "git", want: "?? file\n", script: `git init -q repo && cd repo && echo x >file && git status --porcelain`},
		{name: "git clone", program: "git", want: "one\n", script: `git init -q a && cd a && git -c user.name=n -c user.email=e commit -q --allow-empty -m one && cd .. && git clone -q a b 2>/dev/null && git -C b log --format=%s`},
		{name: "cargo", program: "cargo", rootOnly: true, want: "Hello, world!\n", script: `export HOME=$REAL_HOME; cargo new --quiet --vcs none hello && cd hello && cargo build --quiet --offline && ./target/debug/hello`},
		{name: "shell pipes", program: "bash", want: "a\n", script: `bash -c 'cat <(echo a) | cat'`},
	} {
		t.Run(row.name, func(t *testing.T) {
			launch.Need(t, launch.Program(row.program))
			launch.EachUser(t, func(t *testing.T, u launch.User) {
				if row.rootOnly && u.UID != os.Getuid() {
					t.Skipf("%s is installed for the user who runs the tests only", row.program)
				}
				if row.rootOnly {
					launch.Need(t, launch.Works(row.program, "--version"))
				}
				program, err := exec.LookPath(row.program)
				if err != nil {
					t.Fatal(err)
				}
				for _, policy := range []any{nil, map[string]any{"version": 1, "network": "deny"}} {
					dir := u.Dir(t)
					sh := launch.Install(t, u.Dir(t), "sh", launch.Record{Real: "/bin/sh"})
					c := launch.Shell(sh, row.script)
					c.User, c.Dir, c.Policy = u, dir, policy
					c.Env = []string{"PATH=" + filepath.Dir(program) + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + dir, "LC_ALL=C", "REAL_HOME=" + os.Getenv("HOME")}
					if r := c.Run(t); r.Stdout != row.want {
						t.Errorf("policy %v: want %q: %v", policy, row.want, r)
					}
				}
			})
		})
	}
}

// Names do not resolve, and that looks like a resolver that is down for now.
func TestNamesDoNotResolve(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Program("python3"))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		sh := launch.Install(t, u.Dir(t), "sh", launch.Record{Real: "/bin/sh"})
		c := launch.Shell(sh, `python3 -Sc 'import socket
try: print(socket.getaddrinfo("name.invalid", 80))
except socket.gaierror as e: print(e.errno == socket.EAI_AGAIN)'`)
		c.User, c.Policy = u, map[string]any{"version": 1, "network": "deny"}
		if r := c.Run(t); r.Stdout != "True\n" {
			t.Errorf("python: %v", r)
		}
		if _, err := exec.LookPath("curl"); err != nil {
			t.Skip("no curl")
		}
		c.Args[2] = `curl -sS http://name.invalid/`
		if r := c.Run(t); r.Code != 6 {
			t.Errorf("curl: %v", r)
		}
		c.Args[2] = `curl -sS http://127.0.0.1:9/`
		if r := c.Run(t); r.Code != 7 || strings.Contains(r.Stderr, "resolve") {
			t.Errorf("curl by address: %v", r)
		}
	})
}

// The report says what is in force, not what was asked for.
func TestMissingSeccompStopsOrIsReported(t *testing.T) {
	launch.Need(t, launch.Landlock)
	u := launch.Current()
	dir := u.Dir(t)
	sh := launch.Install(t, dir, "sh", launch.Record{Real: "/bin/sh"})
	report := filepath.Join(dir, "report")
	c := launch.Shell(sh, "echo started")
	c.User = u
	c.Setup = &launch.Setup{Errno: []launch.Errno{{Nr: unix.SYS_PRCTL, If: true, Arg0: unix.PR_SET_SECCOMP, Errno: unix.EINVAL}}}
	policy := map[string]any{"version": 1, "network": "deny", "report": report}
	c.Policy = policy
	if r := c.Run(t); r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, "cannot enforce network: seccomp is not available") {
		t.Errorf("required: %v", r)
	}
	os.Remove(report)
	policy["required"] = false
	if r := c.Run(t); r.Code != 0 || r.Stdout != "started\n" || !strings.Contains(r.Stderr, "not enforced: network") {
		t.Errorf("not required: %v", r)
	}
	got := launch.Report(t, report)
	if got.Network != "allow" || launch.Enforced(got, "network") || len(launch.NotEnforced(got, "network")) != 1 {
		t.Errorf("report: %+v", got)
	}
}
