package workspace_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestCase67_NetworkIsDenied(t *testing.T) {
	launch.Need(t, launch.Seccomp)
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		path := filepath.Join(p.outside, "socket")
		unix, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close()
		u.Own(t, path)
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
		connect := try{Op: "tcp-connect", Path: tcp.Addr().String()}
		bind := try{Op: "tcp-bind", Path: "127.0.0.1:0"}
		send := try{Op: "udp-send", Path: udp.LocalAddr().String()}
		local := try{Op: "unix-connect", Path: path}
		listen := try{Op: "unix-bind", Path: filepath.Join(p.ws, "s")}

		denied := map[try]string{connect: "EACCES", bind: "EACCES", send: "EACCES", local: ok, listen: ok}
		open := map[try]string{connect: ok, bind: ok, send: ok, local: ok, listen: ok}
		p.want(t, p.policy(m{"network": "deny"}), denied)
		p.want(t, m{"version": 1, "network": "deny"}, denied)
		p.want(t, p.policy(m{"network": "allow"}), open)
		p.want(t, p.policy(nil), open)
		p.want(t, p.policy(m{"network": "deny", "isolate": []string{"unix-sockets"}}), map[try]string{
			connect: "EACCES", local: "EACCES", listen: "EACCES",
		})

		// A client whose name no check can read.
		launch.Need(t, launch.Program("curl"))
		script := `c=$(printf cu); "${c}rl" -s -o /dev/null --max-time 5 "http:$(printf '\057\057')$1"`
		for _, row := range []struct {
			policy m
			code   int
		}{
			{p.policy(m{"network": "deny", "commandCheck": "deny"}), 7},
			{m{"version": 1, "network": "deny", "commandCheck": "deny"}, 7},
			{p.policy(nil), 0},
		} {
			go func() {
				if c, err := tcp.Accept(); err == nil {
					_, _ = c.Read(make([]byte, 1024))
					_, _ = c.Write([]byte("HTTP/1.0 204 No Content\r\n\r\n"))
					c.Close()
				}
			}()
			c := launch.Shell(p.sh, script, tcp.Addr().String())
			c.Env, c.Dir, c.User, c.Policy = p.env(), p.ws, u, row.policy
			if r := c.Run(t); r.Code != row.code {
				t.Errorf("%v: %v, want exit %d", row.policy, r, row.code)
			}
		}

		r := p.shell(t, m{"version": 1, "scope": "unrestricted", "network": "deny"}, "echo started")
		if r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, "network: not allowed with scope") {
			t.Error(r)
		}
	})
}

func TestCase68_OtherProcessesAreNotReached(t *testing.T) {
	launch.Need(t, launch.ABIAtLeast(6))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		// The canary holds a secret in its environment and lives through it.
		canary := launch.Cmd{
			Path: "/bin/sh", Args: []string{"sh", "-c", "read line"}, User: u, Stdin: pipe(t),
			Env: []string{"SECRET=4711", "PATH=/usr/bin:/bin"},
		}.Start(t)
		pid := strconv.Itoa(canary.PID)
		rows := func(kill, environ string) map[try]string {
			return map[try]string{
				{Op: "kill", Path: pid}: kill,
				{Op: "kill-self"}:       ok,
				{Op: "read-all", Path: "/proc/" + pid + "/environ"}: environ,
				{Op: "read-all", Path: "/proc/self/environ"}:        ok,
			}
		}
		p.want(t, nil, rows(ok, ok))
		p.run(t, p.policy(m{"isolate": []string{"signals", "proc"}}), ":")
		// Where the private /proc is given, the process is not even there.
		environ := "EACCES"
		if slices.ContainsFunc(p.report(t).Enforced, func(e rules.Enforcement) bool { return e.What == "proc-visibility" }) {
			environ = "ENOENT"
		}
		p.want(t, p.policy(m{"isolate": []string{"signals", "proc"}}), rows("EPERM", environ))
		p.want(t, m{"version": 1, "isolate": []string{"signals"}}, map[try]string{
			{Op: "kill", Path: pid}: "EPERM", {Op: "kill-self"}: ok,
		})
		canary.Kill(t, 15)
		if r := canary.Wait(t); r.Signal != 15 {
			t.Errorf("the canary had ended before: %v", r)
		}
	})
}

// pipe returns the end of a pipe that nothing is ever written to.
func pipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r
}
