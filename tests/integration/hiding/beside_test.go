package hiding

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// What ordinary programs need works next to something hidden. Each script
// prints "fine" at its end, without a policy and with one.
func TestOrdinaryProgramsWorkBesideTheHidden(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Program("python3"), launch.Program("script"), launch.Program("ps"))
	scripts := map[string]string{
		"mktemp":      `f=$(mktemp) && echo x >"$f" && rm "$f" && d=$(mktemp -d) && rmdir "$d"`,
		"dev null":    `echo x >/dev/null && cat </dev/null && dd if=/dev/zero of=/dev/null count=1 2>/dev/null`,
		"here text":   "cat <<EOF >/dev/null\nx\nEOF\n",
		"dev fd":      `echo x | cat /dev/stdin >/dev/null && [ "$(echo y | cat /dev/fd/0)" = y ]`,
		"ps":          `ps -p $$ -o comm= >/dev/null`,
		"pty":         `/usr/bin/python3 -c 'import pty,os; m,s=pty.openpty(); assert os.isatty(s); assert pty.spawn(["true"])==0' >/dev/null </dev/null`,
		"script":      `script -qec true /dev/null >/dev/null </dev/null`,
		"shm":         `/usr/bin/python3 -c 'import multiprocessing as m; l=m.Lock(); l.acquire(); l.release()'`,
		"sockets":     `/usr/bin/python3 -c 'import socket; s=socket.create_server(("127.0.0.1",0)); c=socket.create_connection(s.getsockname()); a,b=socket.socketpair(); a.send(b"x"); assert b.recv(1)==b"x"'`,
		"unix socket": `cd work && /usr/bin/python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.bind("sock"); s.listen(); c=socket.socket(socket.AF_UNIX); c.connect("sock")'`,
		"work":        `cd work && echo x >new && mv new sub/new && cp sub/new f2 && ln sub/new hard && ln -s f soft && rm f2 hard soft sub/new`,
	}
	shell := launch.Look(t, "bash")
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		for name, script := range scripts {
			t.Run(name, func(t *testing.T) {
				for _, policy := range []any{nil, hideSecret} {
					w := newWorld(t, u)
					w.shim = launch.Install(t, launch.Dir(t), "bash", launch.Record{Real: shell})
					c := launch.Shell(w.shim, "(\n"+script+"\n) && echo fine; ! cat secret/f 2>/dev/null && echo hidden")
					c.User, c.Dir = u, w.dir
					if policy != nil {
						c.Policy = w.policy(t, hideSecret)
					}
					r := c.Run(t)
					want := "fine\nhidden\n"
					if policy == nil {
						want = "fine\n" + secret
					}
					if r.Stdout != want {
						t.Errorf("policy %v: want %q, have %v", policy != nil, want, r)
					}
				}
			})
		}
	})
}

// With SYS_ADMIN kept, root enters a mount namespace that another process left
// behind, in which other mounts show the hidden place. The report says that the
// capability reaches around; without it there is no way.
func TestKeptCapabilitiesAreALimit(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts, launch.Program("unshare"))
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			privateMounts(t)
			w := newWorld(t, launch.Root)
			w.mkdir(t, "$W/work/m")
			w.extra = []*os.File{otherNamespace(t, w)}
			enter := try{"setns", "$W/work/m/f", "fd:3"}
			if free := w.free(t, enter); free[0].Errno != ok || free[0].Data != secret {
				t.Fatalf("control: %+v", free)
			}
			w.setup = m.setup
			out, r := w.held(t, `{"version":1,`+m.policy+`"hidden":["$W/secret"]}`, enter, try{"read", "$W/secret/f", ""})
			if out[1].Errno != denied {
				t.Errorf("%+v", out[1])
			}
			if m.name != "keep" {
				if out[0].Errno != "EPERM" {
					t.Errorf("%+v, want EPERM", out[0])
				}
				return
			}
			if out[0].Errno == ok {
				wantLimit(t, r, "capabilities")
				if text := strings.Join(limits(r, "capabilities"), " "); !strings.Contains(text, "SYS_ADMIN") {
					t.Errorf("the limit %q does not name SYS_ADMIN", text)
				}
			}
		})
	}
}

// otherNamespace makes a mount namespace in which $W/work/m shows $W/secret, and
// returns its file.
func otherNamespace(t *testing.T, w *world) *os.File {
	t.Helper()
	cmd := exec.Command(launch.Look(t, "unshare"), "--mount", "--propagation", "private", "sh", "-c",
		`mount --bind "$1" "$2" && echo ready && exec sleep infinity`, "sh", w.at("$W/secret"), w.at("$W/work/m"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the other namespace was not made: %q, %v", line, err)
	}
	f, err := os.Open("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
