package general_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// nest is a chain of launches, each of which hides one more directory. From
// the second on, none can list the directories that the first has frozen, so
// what they use must be named: by PATH, HOME, the current directory, the temp
// directory or their policy.
type nest struct {
	place
	home, script string
}

const top = 17

// newNest prepares the policies. Number i hides own-i beside the current
// directory, the last one a directory in HOME.
func newNest(t *testing.T, u launch.User) nest {
	t.Helper()
	p := newPlace(t, u)
	n := nest{place: p, home: u.Mkdir(t, filepath.Join(p.dir, "home"), 0o755)}
	u.Mkdir(t, filepath.Join(n.home, "sub"), 0o755)
	for i := 1; i <= top; i++ {
		u.Write(t, filepath.Join(u.Mkdir(t, n.own(i), 0o755), "secret"), fmt.Sprint("secret ", i), 0o644)
	}
	// $1 counts up; the variable of the next level is set by this one.
	n.script = launch.Root.Write(t, filepath.Join(p.bin, "nest.sh"), `
i=$1; last=$2; shift 2
if [ "$i" -gt "$last" ]; then exec /bin/sh -c "$@"; fi
hide="`+p.dir+`/own-$i" required=true
if [ "$i" -eq 17 ]; then hide="`+n.own(top)+`" required=$REQUIRED_17; fi
SANDBOX_EXEC_SHIM_POLICY="{\"version\":1,\"hidden\":[\"$hide\"],\"required\":$required,\"report\":\"`+p.work+`/report-$i\"}"
export SANDBOX_EXEC_SHIM_POLICY
exec "`+p.shim+`" "$0" $((i + 1)) "$last" "$@"
`, 0o755)
	return n
}

func (n nest) own(i int) string {
	if i == top {
		return filepath.Join(n.home, "sub", "own")
	}
	return filepath.Join(n.dir, fmt.Sprint("own-", i))
}

// run nests to depth and runs the script there.
func (n nest) run(t *testing.T, depth int, required17 bool, script string, args ...string) launch.Result {
	t.Helper()
	for i := range depth {
		os.Remove(fmt.Sprintf("%s/report-%d", n.work, i+1))
	}
	return launch.Cmd{
		Path: launch.Look(t, "sh"), Args: append([]string{n.script, n.script, "1", fmt.Sprint(depth), script, "sh"}, args...), User: n.u, Dir: n.work,
		Env: []string{"PATH=" + n.bin + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + n.home, "LC_ALL=C", fmt.Sprintf("REQUIRED_17=%v", required17)},
	}.Run(t)
}

const readOwn = `i=1; while [ $i -le $1 ]; do cat "$2/own-$i/secret" 2>/dev/null || printf "denied $i"; echo; i=$((i+1)); done; cat "$3/secret" 2>/dev/null || printf "denied last"`

// readable is what readOwn says at a depth. Secrets that no policy hides yet
// are out of reach from the second level on, since nothing names them.
func readable(depth int) string {
	var b strings.Builder
	for i := 1; i < top; i++ {
		if i <= depth || depth > 1 {
			fmt.Fprintf(&b, "denied %d\n", i)
		} else {
			fmt.Fprintf(&b, "secret %d\n", i)
		}
	}
	return b.String() + "secret 17"
}

func TestCase14_NestedPoliciesAddUp(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		n := newNest(t, u)
		args := []string{"16", n.dir, n.own(top)}
		for _, depth := range []int{0, 1, 2, 15, 16} {
			t.Run(fmt.Sprint(depth), func(t *testing.T) {
				r := n.run(t, depth, true, readOwn, args...)
				if want := readable(depth); r.Code != 0 || r.Stdout != want || r.Stderr != "" {
					t.Errorf("want %q: %v", want, r)
				}
				for i := 1; i <= depth; i++ {
					rep := launch.Report(t, fmt.Sprintf("%s/report-%d", n.work, i))
					if rep.PID != r.PID || rep.Outcome != "exec" || rep.Mechanism != "landlock" || rep.Landlock.Layers != 1 || !slices.Equal(rep.Hidden, []string{n.own(i)}) {
						t.Errorf("report %d: %+v", i, rep)
					}
					if got := len(launch.NotEnforced(rep, "unlisted")) > 0; got != (i > 1) {
						t.Errorf("report %d says unlisted: %v", i, got)
					}
				}
			})
		}
		t.Run("17 required", func(t *testing.T) {
			n.unmark(t)
			r := n.run(t, top, true, `: >"$1"`, n.marker)
			if r.Code != 125 || r.Stdout != "" || n.started() || !oneMessage.MatchString(r.Stderr) || !strings.Contains(r.Stderr, "16 Landlock domains") {
				t.Errorf("%v", r)
			}
			if rep := launch.Report(t, n.work+"/report-17"); rep.Outcome != "error" || rep.Mechanism == "landlock" {
				t.Errorf("report %+v", rep)
			}
		})
		t.Run("17 not required", func(t *testing.T) {
			r := n.run(t, top, false, readOwn, args...)
			if want := readable(16); r.Code != 0 || r.Stdout != want || !oneWarning.MatchString(r.Stderr) {
				t.Errorf("want %q and one warning: %v", want, r)
			}
			rep := launch.Report(t, n.work+"/report-17")
			if rep.Outcome != "exec" || rep.Mechanism != "unavailable" || rep.Landlock != nil && rep.Landlock.Layers != 0 || rep.Warning == "" || launch.Enforced(rep, "hidden") || launch.Enforced(rep, "truncate") ||
				!slices.Equal(launch.NotEnforced(rep, "hidden"), []string{"failure"}) || len(rep.Frozen) != 0 {
				t.Errorf("report %+v", rep)
			}
		})
		t.Run("a frozen current directory that is not", func(t *testing.T) {
			// No domain, no frozen directory, and no word about one.
			r := n.run(t, 16, true, `cd "$2" && SANDBOX_EXEC_SHIM_POLICY="$3" exec "$1" -c 'pwd; mkdir made && rmdir made'`, n.shim, n.home,
				fmt.Sprintf(`{"version":1,"hidden":[%q],"required":false}`, n.own(top)))
			if r.Code != 0 || r.Stdout != n.home+"\n" || !oneWarning.MatchString(r.Stderr) {
				t.Errorf("want one warning: %v", r)
			}
			// The control: with a domain it is frozen, which is said.
			r = n.run(t, 1, true, `cd "$2" && SANDBOX_EXEC_SHIM_POLICY="$3" exec "$1" -c 'pwd; mkdir made'`, n.shim, n.home,
				fmt.Sprintf(`{"version":1,"hidden":[%q],"required":false}`, n.own(top)))
			if r.Code == 0 || r.Stdout != n.home+"\n" || !strings.Contains(r.Stderr, "is frozen") || !strings.Contains(r.Stderr, "Permission denied") {
				t.Errorf("want the current directory frozen: %v", r)
			}
		})
		t.Run("without a policy at depth", func(t *testing.T) {
			r := n.run(t, 16, true, `shim=$4; exec "$shim" -c "$5" sh "$1" "$2" "$3"`, append(args, n.shim, readOwn)...)
			if want := readable(16); r.Code != 0 || r.Stdout != want || r.Stderr != "" {
				t.Errorf("want %q: %v", want, r)
			}
		})
		t.Run("15 and the last", func(t *testing.T) {
			// The control for the last path: where there is room for its
			// domain, it is hidden.
			c := n.sh(`cat "$1"/secret 2>/dev/null || echo denied`, object{"version": 1, "hidden": []string{n.own(top)}})
			c.Args[4] = n.own(top)
			if r := c.Run(t); r.Stdout != "denied\n" || r.Stderr != "" {
				t.Errorf("%v", r)
			}
		})
	})
}

// Ordinary programs work at the deepest level, although / cannot be listed.
func TestCase14_ProgramsWorkAtDepth(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Program("git"), launch.Program("python3"))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		n := newNest(t, u)
		rows := []struct{ name, script, want string }{
			{"ls", `mkdir d && touch d/a d/b && ls d && rm -r d`, "a\nb\n"},
			{"pipeline", `printf 'b\na\n' | sort | tr a-z A-Z | { read x; echo $x; cat; }`, "A\nB\n"},
			{"here document", "cat <<E\nx\nE\n", "x\n"},
			{"mktemp", `f=$(mktemp) && echo t >$f && cat $f && rm $f`, "t\n"},
			{"null", `echo x >/dev/null && head -c1 /dev/urandom | wc -c | tr -d ' '`, "1\n"},
			{"git", `rm -rf g && git init -q g && cd g && echo 1 >f && git add f && git -c user.name=a -c user.email=b@c commit -qm m && git log --format=%s`, "m\n"},
			{"python", `python3 -c 'import json,subprocess,tempfile,os; tempfile.TemporaryFile().write(b"x"); print(subprocess.check_output(["echo", os.getcwd().split("/")[-1]]).decode().strip())'`, "work\n"},
			{"rename across", `mkdir -p r/a r/b && echo y >r/a/f && mv r/a/f r/b/g && cat r/b/g`, "y\n"},
			{"proc", `head -c 4 /proc/self/cmdline; [ -r /proc/meminfo ] && ls /usr >/dev/null && echo " ok"`, "head ok\n"},
			{"the root is not listed", `ls / 2>/dev/null || echo denied`, "denied\n"},
		}
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				r := n.run(t, 16, true, row.script)
				if r.Code != 0 || r.Stdout != row.want || r.Stderr != "" {
					t.Errorf("want %q: %v", row.want, r)
				}
				if strings.HasPrefix(row.name, "the root") {
					if r := n.run(t, 0, true, row.script); r.Stdout == row.want {
						t.Errorf("control: %v", r)
					}
				}
			})
		}
	})
}
