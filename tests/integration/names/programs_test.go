package names

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/transparency/bare"
)

// An install is where the shim stands and what it does to argv[0].
type install struct {
	inPlace, real bool
}

func (i install) String() string {
	return map[bool]string{false: "PATH", true: "in place"}[i.inPlace] + map[bool]string{false: ", keep", true: ", real"}[i.real]
}

var installs = []install{{false, false}, {false, true}, {true, false}, {true, true}}

// A program that cares how it is called. Directly, real is started with argv.
type program struct {
	name string
	real string // in /usr/bin, or %/… in the scratch directory
	argv []string
	// as is what is executed in place of real, when real is reached by a link.
	as string
	// script is the text of real.
	script string
	// prepare makes things; it gets what the program under test is called.
	prepare func(t *testing.T, l *lab, run func(argv ...string) launch.Result)
	// shell says that execvp(3) would start real by /bin/sh.
	shell bool
	// leads says where the link leads that prepare makes at as.
	leads map[install]string
	// gone says that what prepare makes works with the shim only.
	gone map[install]bool
	// differs says for an install what the output then holds. Whatever is not
	// named here is the same as directly.
	differs map[install]string
}

// inPlaceName is what a script gets for its name: the file that is started.
var inPlaceName = map[install]string{{true, false}: "[%/own/script.shim-real][a][][b c]", {true, true}: "[%/own/script.shim-real][a][][b c]"}

const show = `import sys; print(sys.executable, sys.prefix, sys.argv)`

var programs = []program{
	{
		name: "busybox applet by name", real: "/usr/bin/busybox", as: "%/bin/echo", argv: []string{"echo", "a", "b"},
		prepare: func(t *testing.T, l *lab, _ func(...string) launch.Result) {
			link(t, l.dir+"/bin/echo", "/usr/bin/busybox")
		},
		differs: map[install]string{{false, true}: "applet not found", {true, true}: "applet not found"},
	},
	{name: "busybox sh", real: "/usr/bin/busybox", argv: []string{"busybox", "sh", "-c", "echo $0 $1; busybox echo x", "n", "m"}},
	{name: "bash", real: "/usr/bin/bash", argv: []string{"bash", "-c", `echo "$0 $1"; shopt -q login_shell && echo login; true`, "n", "m"}},
	{
		name: "bash as a login shell", real: "/usr/bin/bash", argv: []string{"-bash", "-c", "shopt -q login_shell && echo login; true"},
		differs: map[install]string{{false, true}: "", {true, true}: ""},
	},
	{
		name: "node", real: "/usr/bin/node",
		argv:    []string{"node", "-e", `console.log(process.argv.slice(1), process.title, require("child_process").execFileSync(process.execPath, ["-p", "1+1"]).toString())`, "x"},
		differs: map[install]string{{false, true}: "/usr/bin/node 2", {true, true}: "/usr/bin/node.shim-real 2"},
	},
	{
		name: "python3", real: "/usr/bin/python3", argv: []string{"python3", "-c", show, "x"},
		differs: map[install]string{{false, false}: "%/front/python3 /usr [", {true, true}: "/usr/bin/python3.shim-real /usr ["},
	},
	{
		name: "python3 in a virtual environment made before", real: "/usr/bin/python3", as: "%/venv/bin/python3",
		argv:    []string{"%/venv/bin/python3", "-c", show},
		prepare: func(t *testing.T, l *lab, _ func(...string) launch.Result) { l.venv(t, "/usr/bin/python3") },
		// The environment is found by argv[0], so this loses it.
		differs: map[install]string{{true, true}: "/usr/bin/python3.shim-real /usr ["},
	},
	{
		name: "python3 in a virtual environment made through the shim", real: "/usr/bin/python3", as: "%/venv/bin/python3",
		argv: []string{"%/venv/bin/python3", "-c", show},
		prepare: func(t *testing.T, l *lab, run func(...string) launch.Result) {
			if r := run("python3", "-m", "venv", "--without-pip", l.dir+"/venv"); r.Code != 0 {
				t.Fatal(r)
			}
		},
		// With argv0 real, what the environment starts is not the shim.
		leads: map[install]string{
			{false, false}: "%/front/python3", {false, true}: "/usr/bin/python3",
			{true, false}: "/usr/bin/python3", {true, true}: "python3.shim-real",
		},
		gone:    map[install]bool{{true, true}: true},
		differs: map[install]string{{true, true}: "%/venv/bin/python3 %/venv ["},
	},
	{
		name: "gcc", real: "/usr/bin/gcc", argv: []string{"gcc", "-o", "%/bin/a.out", "%/bin/a.c"},
		prepare: func(t *testing.T, l *lab, _ func(...string) launch.Result) {
			launch.Current().Write(t, l.dir+"/bin/a.c", "int main(void) { return 0; }\n", 0o644)
		},
		differs: map[install]string{{false, false}: "cannot execute 'cc1'"},
	},
	{name: "a script", real: "%/own/script", argv: []string{"script", "a", "", "b c"}, script: "#!/bin/sh\n" + `printf '[%s]' "$0" "$@"` + "\n", differs: inPlaceName},
	{name: "a script with env -S", real: "%/own/script", argv: []string{"script", "a", "", "b c"}, script: "#!/usr/bin/env -S sh -u\n" + `printf '[%s]' "$0" "$@"` + "\n", differs: inPlaceName},
	{name: "a script without a #! line", real: "%/own/script", argv: []string{"script", "a", "", "b c"}, script: `printf '[%s]' "$0" "$@"` + "\n", shell: true, differs: inPlaceName},
}

// A lab is where one program runs, for one user.
type lab struct {
	user   launch.User
	dir    string
	caller *bare.Caller
}

func (l *lab) fill(text string) string { return strings.ReplaceAll(text, "%", l.dir) }

func (l *lab) venv(t *testing.T, python string) {
	t.Helper()
	r := launch.Cmd{Path: python, Args: []string{"python3", "-m", "venv", "--without-pip", l.dir + "/venv"}, User: l.user}.Run(t)
	if r.Code != 0 {
		t.Fatal(r)
	}
}

// mountInPlace replaces a program of /usr/bin for its descendants only.
const mountInPlace = `set -e
mount -t overlay overlay -o lowerdir=/usr/bin,upperdir="$1/upper",workdir="$1/work" /usr/bin
cp "$3" "$1/new"
mv "$2" "$2.shim-real"
mv "$1/new" "$2"
shift 3
exec "$@"`

// run starts the program as l.user by an install, or directly for nil.
func (l *lab) run(t *testing.T, p program, in *install, policy string, argv ...string) launch.Result {
	t.Helper()
	real := l.fill(p.real)
	path := real
	if p.as != "" && argv[0] == l.fill(p.argv[0]) {
		path = l.fill(p.as)
	}
	env := []string{"PATH=/usr/bin:/bin", "HOME=" + l.dir, "LC_ALL=C", "TMPDIR=" + l.dir + "/bin"}
	wrap := func(path string, argv []string) launch.Cmd {
		return launch.Cmd{Path: path, Args: argv, Env: []string{}}
	}
	if in != nil {
		r := launch.Record{Real: real, InPlace: in.inPlace}
		if in.real {
			r.Argv0 = 1
		}
		front := filepath.Join(l.dir, "front")
		name := filepath.Base(argv[0])
		switch {
		case !in.inPlace:
			shim := launch.Install(t, front, strings.TrimPrefix(name, "-"), r)
			if path == real || strings.HasSuffix(path, "/bin/echo") {
				path = shim
			}
			env[0] = "PATH=" + front + ":/usr/bin:/bin"
		case strings.HasPrefix(real, l.dir):
			r.Real += ".shim-real"
			if _, err := os.Stat(r.Real); err != nil {
				if err := os.Rename(real, r.Real); err != nil {
					t.Fatal(err)
				}
			}
			launch.Install(t, filepath.Dir(real), filepath.Base(real), r)
		default:
			r.Real += ".shim-real"
			shim := launch.Install(t, front, "shim", r)
			over := launch.Dir(t)
			for _, name := range []string{"upper", "work"} {
				launch.Root.Mkdir(t, filepath.Join(over, name), 0o755)
			}
			wrap = func(path string, argv []string) launch.Cmd {
				c := launch.Shell("/bin/sh", mountInPlace, append([]string{over, real, shim, path}, argv[1:]...)...)
				c.Sys = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
				return c
			}
		}
	}
	st := bare.NewState(path, argv...)
	st.Env = env
	if policy != "" {
		st.Env = append(st.Env, policyVariable+"="+policy)
	}
	if l.user.UID != os.Geteuid() {
		st.UID = uint64(l.user.UID)
	}
	return wrap(l.caller.Command(t, st)).Run(t)
}

// Programs that look at their own name do the same behind a shim as directly,
// but for what the table says.
func TestProgramsThatKnowTheirNameWork(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		for _, p := range programs {
			for _, in := range installs {
				t.Run(p.name+"/"+in.String(), func(t *testing.T) {
					if strings.HasPrefix(p.real, "/") {
						launch.Need(t, launch.Program(p.real))
					}
					l := &lab{user: u, dir: u.Dir(t)}
					for _, name := range []string{"bin", "front", "own", "state", "hidden"} {
						u.Mkdir(t, filepath.Join(l.dir, name), 0o755)
					}
					l.caller = bare.NewCaller(t, filepath.Join(l.dir, "state"))
					if p.script != "" {
						launch.WriteProgram(t, l.fill(p.real), []byte(p.script))
					}
					var argv []string
					for _, a := range p.argv {
						argv = append(argv, l.fill(a))
					}
					through := func(policy string) func(argv ...string) launch.Result {
						return func(argv ...string) launch.Result { return l.run(t, p, &in, policy, argv...) }
					}
					if p.prepare != nil {
						p.prepare(t, l, through(""))
					}
					if want, ok := p.leads[in]; ok {
						if got, err := os.Readlink(l.fill(p.as)); err != nil || got != l.fill(want) {
							t.Errorf("%s leads to %q, %v; want %q", p.as, got, err, want)
						}
					}
					var direct launch.Result
					if p.shell {
						direct = launch.Cmd{Path: "/bin/sh", Args: append([]string{"/bin/sh", l.fill(p.real)}, argv[1:]...), User: u}.Run(t)
					} else {
						direct = l.run(t, p, nil, "", argv...)
					}
					if direct.Code != 0 && !p.gone[in] {
						t.Fatalf("directly: %v", direct)
					}
					for _, policy := range []string{"", `{"version":1,"hidden":["` + l.dir + `/hidden"],"frozen":"allow"}`} {
						got := through(policy)(argv...)
						text := fmt.Sprintf("exit %d, %q, %q", got.Code, got.Stdout, got.Stderr)
						t.Logf("policy %v: %s", policy != "", strings.ReplaceAll(text, l.dir, "%"))
						want, differs := p.differs[in]
						same := got.Code == direct.Code && got.Stdout == direct.Stdout && got.Stderr == direct.Stderr
						switch {
						case !differs && !same:
							t.Errorf("directly: %v\nthrough the shim: %v", direct, got)
						case differs && (same && !p.gone[in] || !strings.Contains(text, l.fill(want))):
							t.Errorf("should differ with %q: %v", want, got)
						}
					}
				})
			}
		}
	})
}
