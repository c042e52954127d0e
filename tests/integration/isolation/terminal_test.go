package isolation

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A dialog is what a person at a terminal sees and types.
type dialog struct {
	t     *testing.T
	outer *os.File
	seen  string
}

// until waits for text, and forgets all up to it.
func (d *dialog) until(text string) {
	d.t.Helper()
	buf := make([]byte, 4096)
	for {
		if _, rest, ok := strings.Cut(d.seen, text); ok {
			d.seen = rest
			return
		}
		if err := d.outer.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			d.t.Fatal(err)
		}
		n, err := d.outer.Read(buf)
		d.seen += string(buf[:n])
		if err != nil && !strings.Contains(d.seen, text) {
			d.t.Fatalf("%q did not come: %q, %v", text, d.seen, err)
		}
	}
}

func (d *dialog) say(text string) {
	d.t.Helper()
	if _, err := d.outer.WriteString(text); err != nil {
		d.t.Fatal(err)
	}
}

// Terminals work as ever under every isolation: job control, Ctrl-C, raw mode,
// a terminal within the terminal.
func TestTerminalsWork(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.ABIAtLeast(6), launch.Program("bash"), launch.Program("script"), launch.Program("stty"))
	all := object{"version": 1, "isolate": []string{"signals", "abstract-unix", "unix-sockets", "proc", "tty"}, "network": "deny"}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		bash := launch.Install(t, u.Dir(t), "bash", launch.Record{Real: launch.Look(t, "bash")})
		for _, c := range []struct {
			name   string
			args   []string
			dialog func(*dialog)
		}{
			{"interrupt", []string{"-c", `trap 'echo caught; exit 7' INT; echo ready; while :; do :; done`}, func(d *dialog) {
				d.until("ready")
				d.say("\x03")
				d.until("caught")
			}},
			{"job control", []string{"--norc", "--noprofile", "-i"}, func(d *dialog) {
				d.say(`bash -c 'echo be""gun; while read x; do echo got""-$x; done'` + "\n")
				d.until("begun")
				d.say("\x1a")
				d.until("Stopped")
				d.say("fg\n")
				d.until("got\"\"-$x; done'") // the shell says what it continues, and reads no more
				d.say("hello\n")
				d.until("got-hello")
				d.say("\x03")
				d.until("prompt>") // or the next line goes to whom it interrupts
				d.say("echo done''-$?\n")
				d.until("done-130")
				d.say("exit 7\n")
			}},
			{"raw mode", []string{"-c", `stty raw -echo && echo set && dd bs=1 count=1 2>/dev/null | od -An -tx1 && stty sane && stty -a && exit 7`}, func(d *dialog) {
				d.until("set")
				d.say("\x03") // a byte like any other now
				d.until("03")
				d.until(" icanon")
			}},
			{"script", []string{"-c", `script -qec 'tty; echo in''ner' /dev/null && exit 7`}, func(d *dialog) {
				d.until("/dev/pts/")
				d.until("inner")
			}},
		} {
			t.Run(c.name, func(t *testing.T) {
				for _, policy := range []any{nil, all} {
					outer, inner := terminal(t, u)
					p := launch.Cmd{
						Path: bash, Args: append([]string{"bash"}, c.args...), User: u, Policy: policy,
						Env:   []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + launch.Nowhere, "LC_ALL=C", "TERM=dumb", "PS1=prompt>"},
						Stdin: inner, Stdout: inner, Stderr: inner,
						Sys: &syscall.SysProcAttr{Setsid: true, Setctty: true},
					}.Start(t)
					c.dialog(&dialog{t: t, outer: outer})
					if r := p.Wait(t); r.Code != 7 {
						t.Errorf("policy %v: %v", policy, r)
					}
				}
			})
		}
	})
}
