package general_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestCase06_PolicyVariableIsGone(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		file := u.Write(t, filepath.Join(p.work, "policy.json"), fmt.Sprintf(`{"version":1,"hidden":[%q]}`, p.hidden), 0o600)
		inline := fmt.Sprintf(`SANDBOX_EXEC_SHIM_POLICY={"version":1,"hidden":[%q]}`, p.hidden)
		rows := []struct {
			name string
			env  []string
			want []string
		}{
			{"first", []string{inline, "A=1", "B=2"}, []string{"A=1", "B=2"}},
			{"middle", []string{"A=1", inline, "B=2"}, []string{"A=1", "B=2"}},
			{"last", []string{"A=1", "B=2", inline}, []string{"A=1", "B=2"}},
			{"three times", []string{inline, "A=1", inline, "B=2", inline}, []string{"A=1", "B=2"}},
			{"file", []string{"A=1", "SANDBOX_EXEC_SHIM_POLICY=@" + file}, []string{"A=1"}},
			{
				"odd strings",
				[]string{"Z=", "A=1", "A=2", "", "NOEQ", "=x", "B=\xff\xfe", "C=a\nb", "GODEBUG=inittrace=1", "GOMEMLIMIT=foo", inline},
				[]string{"Z=", "A=1", "A=2", "", "NOEQ", "=x", "B=\xff\xfe", "C=a\nb", "GODEBUG=inittrace=1", "GOMEMLIMIT=foo"},
			},
			{"names like it", []string{inline, "SANDBOX_EXEC_SHIM_POLICY2=a", "XSANDBOX_EXEC_SHIM_POLICY=b", "SANDBOX_EXEC_SHIM_POLICY"}, []string{"SANDBOX_EXEC_SHIM_POLICY2=a", "XSANDBOX_EXEC_SHIM_POLICY=b", "SANDBOX_EXEC_SHIM_POLICY"}},
			{"locale", []string{"LC_CTYPE=C.UTF-8", inline}, []string{"LC_CTYPE=C.UTF-8"}},
			{"nothing else", []string{inline}, nil},
		}
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				c := p.sh(`/bin/cat /proc/$$/environ; /bin/cat "$1" 2>/dev/null`, nil)
				c.Env = row.env
				r := c.Run(t)
				want := ""
				for _, s := range row.want {
					want += s + "\x00"
				}
				if r.Stdout != want || r.Stderr != "" {
					t.Errorf("want %q: %v", want, r)
				}
			})
		}
		// The control: directly, the variable is there and the secret too.
		c := p.sh(`/bin/cat /proc/$$/environ; /bin/cat "$1"`, nil)
		c.Path, c.Env = launch.Look(t, "sh"), []string{inline}
		if r := c.Run(t); r.Stdout != inline+"\x00"+secretText {
			t.Errorf("directly: %v", r)
		}
	})
}

func TestCase07_ArgumentsAreExact(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		const show = `cat /proc/$$/cmdline; cat "$SECRET" 2>/dev/null`
		rows := map[string][]string{
			"plain":                  {"sh", "-c", show},
			"other argv0":            {"-dash of another name", "-c", show},
			"empty argv0":            {"", "-c", show},
			"empty arguments":        {"sh", "-c", show, "", "", ""},
			"newlines":               {"sh", "-c", show, "a\nb", "\n"},
			"double dash":            {"sh", "-c", show, "--", "--", "x"},
			"flags of a shim":        {"sh", "-c", show, "sh", "--version", "--help", "-h", "--policy=x", "install"},
			"not UTF-8":              {"sh", "-c", show, "\xff\xfe\x01"},
			"a policy":               {"sh", "-c", show, `SANDBOX_EXEC_SHIM_POLICY={`},
			"a long argument":        {"sh", "-c", show, strings.Repeat("x", 100_000)},
			"a thousand of them":     append([]string{"sh", "-c", show}, strings.Split(strings.Repeat("y ", 1000), " ")...),
			"argv0 names the secret": {p.secret, "-c", show},
		}
		for name, argv := range rows {
			t.Run(name, func(t *testing.T) {
				want := strings.Join(argv, "\x00") + "\x00"
				for _, policy := range []any{nil, p.policy(nil)} {
					c := launch.Cmd{Path: p.shim, Args: argv, User: u, Dir: p.work, Policy: policy, Env: []string{"PATH=/usr/bin:/bin", "SECRET=" + p.secret}}
					full := want
					if policy == nil {
						full += secretText
					}
					if r := c.Run(t); r.Stdout != full || r.Stderr != "" {
						t.Errorf("policy %v: want %q: %v", policy != nil, full, r)
					}
				}
			})
		}
	})
}

func TestCase08_ProcessIsTheSame(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		const show = `exec 8>&-
echo $$ $PPID; pwd -P; umask; ulimit -Sn; ulimit -Hn
awk '/^Threads/{print $2}' /proc/$$/status
ls /proc/$$/fd
read line; echo "0:$line"; read line <&9; echo "9:$line"; echo written >&7
echo 2 >&2`
		for _, more := range []object{nil, {"report": p.report, "log": object{"level": "trace", "to": filepath.Join(p.work, "log")}}} {
			r9, w9, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r7, w7, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w9.WriteString("nine\n"); err != nil {
				t.Fatal(err)
			}
			umask := 0o027
			c := p.sh(show, p.policy(more))
			c.Stdin = strings.NewReader("zero\n")
			c.Extra = []*os.File{nil, nil, nil, nil, w7, nil, r9}
			c.Setup = &launch.Setup{Umask: &umask, NoFile: &[2]uint64{70, 80}}
			r := c.Run(t)
			want := fmt.Sprintf("%d %d\n%s\n0027\n70\n80\n1\n0\n1\n2\n7\n9\n0:zero\n9:nine\n", r.PID, os.Getpid(), p.work)
			if r.Stdout != want || r.Stderr != "2\n" || r.Code != 0 {
				t.Errorf("want %q: %v", want, r)
			}
			w7.Close()
			buf := make([]byte, 100)
			if n, err := r7.Read(buf); err != nil || string(buf[:n]) != "written\n" {
				t.Errorf("descriptor 7: %q, %v", buf[:n], err)
			}
			r7.Close()
			r9.Close()
			w9.Close()
		}
		p.wantDenied(t, p.sh(readSecret, p.policy(nil)))
		p.wantReadable(t)
	})
}

func TestCase10_EndIsTheProgramsOwn(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		for _, policy := range []any{nil, p.policy(nil)} {
			for _, code := range []int{0, 1, 37, 125, 126, 127, 255} {
				if r := p.sh(fmt.Sprintf("exit %d", code), policy).Run(t); r.Code != code || r.Signal != 0 || r.Stdout+r.Stderr != "" {
					t.Errorf("exit %d, policy %v: %v", code, policy != nil, r)
				}
			}
			for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGPIPE, syscall.SIGHUP, syscall.SIGURG + 17} {
				if r := p.sh(fmt.Sprintf("kill -%d $$", int(sig)), policy).Run(t); r.Signal != sig || r.Stdout+r.Stderr != "" {
					t.Errorf("signal %d, policy %v: %v", int(sig), policy != nil, r)
				}
			}
		}
	})
}

// Closed standard descriptors are a launcher's right, and so is a standard
// error that nobody reads.
func TestClosedStandardDescriptorsStayClosed(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		for _, closed := range [][]int{{0}, {1}, {2}, {0, 1, 2}} {
			c := p.sh(`for i in 0 1 2; do [ -e /proc/$$/fd/$i ] || printf "$i " >>"$2"; done; cat "$1" >>"$2" 2>/dev/null || printf denied >>"$2"`, p.policy(object{"report": p.report}))
			c.Closed = closed
			p.unmark(t)
			r := c.Run(t)
			want := strings.Trim(fmt.Sprint(closed), "[]") + " denied"
			if got, err := os.ReadFile(p.marker); err != nil || string(got) != want {
				t.Errorf("closed %v: %q, want %q, %v: %v", closed, got, want, err, r)
			}
			// And an error with nowhere to say it.
			bad := p.mark("{")
			bad.Closed = closed
			p.unmark(t)
			if r := bad.Run(t); r.Code != 125 || p.started() || r.Stdout != "" {
				t.Errorf("closed %v: %v", closed, r)
			}
		}
	})
}
