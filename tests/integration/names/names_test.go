package names

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/transparency/bare"
)

// A scene has the witness behind shims of every kind, for one user.
type scene struct {
	user                  launch.User
	dir, out              string
	real                  string // the witness
	path                  string // the variable
	copied, links, hidden string // directories
	caller                *bare.Caller
}

const toolName = "tool"

func newScene(t *testing.T, u launch.User) *scene {
	t.Helper()
	s := &scene{user: u, dir: u.Dir(t)}
	sub := func(name string) string { return u.Mkdir(t, filepath.Join(s.dir, name), 0o755) }
	s.copied, s.links, s.hidden = sub("copied"), sub("links"), sub("hidden")
	s.real = bare.Witness.Install(t, sub("real"), toolName)
	work := sub("work")
	s.caller, s.out = bare.NewCaller(t, work), filepath.Join(work, "out")
	s.path = "PATH=" + s.copied + ":" + filepath.Dir(s.real)
	return s
}

// kinds are the installs under test, each at dir/kind/tool.
var kinds = []struct {
	name   string
	record func(s *scene, dir string, t *testing.T) *launch.Record
	// argv0 is what the program gets for argv[0]; nil means what the caller gave.
	argv0 func(s *scene) string
}{
	{"recorded", func(s *scene, _ string, _ *testing.T) *launch.Record { return &launch.Record{Real: s.real} }, nil},
	{
		"recorded, argv0 real",
		func(s *scene, _ string, _ *testing.T) *launch.Record { return &launch.Record{Real: s.real, Argv0: 1} },
		func(s *scene) string { return s.real },
	},
	{"in place", func(_ *scene, dir string, t *testing.T) *launch.Record {
		return &launch.Record{Real: bare.Witness.Install(t, dir, toolName+".shim-real"), InPlace: true}
	}, nil},
	{"by PATH", nil, nil},
}

// A form is how the shim at shim is asked for.
type form struct {
	name string
	// state gives the path that execve gets, argv, and more.
	state func(t *testing.T, s *scene, shim string) bare.State
	// argv0 is what the program should get, if not what is in the state.
	argv0 func(s *scene, shim string) string
	// more are arguments that the kernel puts behind it.
	more func(s *scene) []string
	// pathless is a form in which nothing tells a shim without a record which
	// name was asked for.
	pathless bool
	noProc   bool
}

func named(argv0 string) func(*testing.T, *scene, string) bare.State {
	return func(_ *testing.T, s *scene, shim string) bare.State {
		return bare.NewState(shim, argv0, s.out, "", "a b")
	}
}

func link(t *testing.T, path, to string) string {
	t.Helper()
	os.Remove(path)
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
	return path
}

var forms = []form{
	{name: "its name", state: named(toolName)},
	{name: "-tool", state: named("-tool")},
	{name: "exec -a anything", state: named("anything")},
	{name: "exec -a sandbox-exec-shim", state: named("sandbox-exec-shim")},
	{name: "exec -a /bin/true", state: named("/bin/true")},
	{name: "an empty argv[0]", state: named("")},
	{name: "execveat", state: func(_ *testing.T, s *scene, shim string) bare.State {
		st := bare.NewState(shim, "-x", s.out, "", "a b")
		st.Execveat = bare.ExecveatKeep
		return st
	}},
	{name: "execveat, close-on-exec", state: func(_ *testing.T, s *scene, shim string) bare.State {
		st := bare.NewState(shim, "x", s.out, "", "a b")
		st.Execveat = bare.ExecveatClose
		return st
	}},
	{name: "a symlink of the same name", state: func(t *testing.T, s *scene, shim string) bare.State {
		return bare.NewState(link(t, filepath.Join(s.links, toolName), shim), toolName, s.out, "", "a b")
	}},
	{name: "a symlink to a symlink", state: func(t *testing.T, s *scene, shim string) bare.State {
		return bare.NewState(link(t, filepath.Join(s.links, toolName), link(t, filepath.Join(s.links, "hop"), shim)), "x", s.out, "", "a b")
	}},
	{name: "a symlink of another name", pathless: true, state: func(t *testing.T, s *scene, shim string) bare.State {
		return bare.NewState(link(t, filepath.Join(s.links, "alias"), shim), "alias", s.out, "", "a b")
	}},
	{name: "a relative path", state: func(_ *testing.T, s *scene, shim string) bare.State {
		st := bare.NewState("./"+filepath.Base(shim), toolName, s.out, "", "a b")
		st.Dir = filepath.Dir(shim)
		return st
	}},
	{name: "a bare file name", state: func(_ *testing.T, s *scene, shim string) bare.State {
		st := bare.NewState(filepath.Base(shim), "", s.out, "", "a b")
		st.Dir = filepath.Dir(shim)
		return st
	}},
	{
		name: "a #! line that names the shim",
		state: func(t *testing.T, s *scene, shim string) bare.State {
			launch.WriteProgram(t, s.script(), []byte("#!"+shim+" "+s.out+"\n"))
			return bare.NewState(s.script(), "ignored", "", "a b")
		},
		argv0: func(_ *scene, shim string) string { return shim },
		more:  func(s *scene) []string { return []string{s.script()} },
	},
	{
		name: "env -S in a #! line",
		state: func(t *testing.T, s *scene, shim string) bare.State {
			launch.WriteProgram(t, s.script(), []byte("#!/usr/bin/env -S "+shim+" "+s.out+"\n"))
			return bare.NewState(s.script(), "ignored", "", "a b")
		},
		argv0: func(_ *scene, shim string) string { return shim },
		more:  func(s *scene) []string { return []string{s.script()} },
	},
	{name: "/proc not mounted", noProc: true, state: named("-tool")},
	{name: "/proc not mounted, execveat", noProc: true, pathless: true, state: func(_ *testing.T, s *scene, shim string) bare.State {
		st := bare.NewState(shim, "-x", s.out, "", "a b")
		st.Execveat = bare.ExecveatKeep
		return st
	}},
}

func (s *scene) script() string { return filepath.Join(s.links, "script") }

// start starts a state and returns the witness's account.
func (s *scene) start(t *testing.T, st bare.State, noProc bool) (bare.Account, error) {
	t.Helper()
	os.Remove(s.out)
	if s.user.UID != os.Geteuid() {
		st.UID = uint64(s.user.UID)
	}
	path, argv := s.caller.Command(t, st)
	c := launch.Cmd{Path: path, Args: argv, Env: []string{}}
	if noProc {
		c = launch.Shell("/bin/sh", `umount -l -R /proc && exec "$@"`, append([]string{path}, argv[1:]...)...)
		c.Sys = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}
	if r := c.Run(t); r.Code != 0 || r.Stdout != "" || r.Stderr != "" {
		return nil, fmt.Errorf("%v", r)
	}
	data, err := os.ReadFile(s.out)
	if err != nil {
		return nil, err
	}
	return bare.ParseAccount(data)
}

// Under whatever name the shim is asked for, the program is the right one and
// its argv what the caller gave.
func TestEveryNameLeadsToItsProgram(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		s := newScene(t, u)
		policy, err := json.Marshal(map[string]any{"version": 1, "hidden": []string{s.hidden}})
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range kinds {
			dir := s.copied
			if k.record != nil {
				dir = u.Mkdir(t, filepath.Join(s.dir, fmt.Sprintf("kind%d", i)), 0o755)
			}
			shim := filepath.Join(dir, toolName)
			target := s.real
			if k.record == nil {
				launch.Copy(t, dir, toolName)
			} else {
				r := k.record(s, dir, t)
				launch.Install(t, dir, toolName, *r)
				target = r.Real
			}
			for _, f := range forms {
				for _, confined := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/policy %v", k.name, f.name, confined), func(t *testing.T) {
						if f.noProc {
							launch.Need(t, launch.IsRoot, launch.Mounts)
						}
						st := f.state(t, s, shim)
						st.Env = []string{s.path}
						if confined {
							st.Env = append(st.Env, policyVariable+"="+string(policy))
						}
						a, err := s.start(t, st, f.noProc)
						if k.record == nil && f.pathless {
							if err == nil || !strings.Contains(err.Error(), "exit 127") {
								t.Errorf("without a record and a name it ended with %v", err)
							}
							return
						}
						if err != nil {
							t.Fatal(err)
						}
						want := slices.Clone(st.Argv)
						if f.argv0 != nil {
							want[0] = f.argv0(s, shim)
						}
						if k.argv0 != nil {
							want[0] = k.argv0(s)
						}
						if f.more != nil {
							want = slices.Concat(want[:1], []string{s.out}, f.more(s), want[1:])
						}
						if got := strings.Split(strings.TrimSuffix(a.Get("argv"), "\x00"), "\x00"); !slices.Equal(got, want) {
							t.Errorf("argv is %q, want %q", got, want)
						}
						if got := a.Get("exe"); !f.noProc && got != target {
							t.Errorf("the program is %q, want %q", got, target)
						}
						if got := a.Get("no new privileges"); (strings.TrimSpace(got) != fmt.Sprintf("%016x", 0)) != confined {
							t.Errorf("no_new_privs is %s", got)
						}
					})
				}
			}
		}
	})
}

// With no arguments at all the kernel makes argv[0] empty, for a direct start
// too. The witness then writes to its output.
func TestNoArgumentsAreNone(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		s := newScene(t, u)
		shim := launch.Install(t, s.links, toolName, launch.Record{Real: s.real})
		argv0 := launch.Install(t, s.links, "real", launch.Record{Real: s.real, Argv0: 1})
		copied := launch.Copy(t, s.copied, toolName)
		for _, row := range []struct{ name, path, policy, want string }{
			{"directly", s.real, "", ""},
			{"pass-through", shim, "", ""},
			{"blank policy", shim, policyVariable + "=", ""},
			{"policy", shim, policyVariable + `={"version":1,"hidden":["` + s.hidden + `"]}`, ""},
			{"by PATH", copied, "", ""},
			{"argv0 real", argv0, "", s.real},
		} {
			st := bare.NewState(row.path)
			st.Env = []string{s.path, row.policy}
			if u.UID != os.Geteuid() {
				st.UID = uint64(u.UID)
			}
			path, argv := s.caller.Command(t, st)
			r := launch.Cmd{Path: path, Args: argv, Env: []string{}}.Run(t)
			a, err := bare.ParseAccount([]byte(r.Stdout))
			if err != nil || r.Code != 0 || r.Stderr != "" {
				t.Fatalf("%s: %v, code %d, stderr %q", row.name, err, r.Code, r.Stderr)
			}
			if got := a.Get("argv"); got != row.want+"\x00" {
				t.Errorf("%s: argv is %q, want %q", row.name, got, row.want+"\x00")
			}
		}
	})
}

// Entries of PATH that are empty or relative name places in the working
// directory, for the shim's own place and for the program's.
func TestRelativePathEntriesAreFollowed(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		s := newScene(t, u)
		launch.Copy(t, s.copied, toolName)
		realDir := filepath.Dir(s.real)
		rel := func(dir string) string { return "../" + filepath.Base(dir) }
		for _, row := range []struct{ dir, path, exec string }{
			{s.copied, ":" + realDir, toolName},
			{s.copied, ".:" + realDir, "./" + toolName},
			{s.copied, realDir + "x::" + realDir, toolName},
			{s.links, rel(s.copied) + ":" + rel(realDir), rel(s.copied) + "/" + toolName},
			{realDir, s.copied + ":", s.copied + "/" + toolName},
			{realDir, s.copied + "::/bin", s.copied + "/" + toolName},
			{realDir, rel(s.copied) + ":.", rel(s.copied) + "/" + toolName},
			{"/", s.copied + "/:" + realDir + "//", s.copied + "//" + toolName},
		} {
			st := bare.NewState(row.exec, toolName, s.out)
			st.Dir, st.Env = row.dir, []string{"PATH=" + row.path}
			a, err := s.start(t, st, false)
			if err != nil {
				t.Errorf("PATH=%q in %s: %v", row.path, row.dir, err)
				continue
			}
			if got := a.Get("exe"); got != s.real {
				t.Errorf("PATH=%q in %s: the program is %q", row.path, row.dir, got)
			}
		}
	})
}
