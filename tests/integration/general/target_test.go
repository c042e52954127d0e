package general_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// program is a script that says its name.
func program(t *testing.T, dir, name, says string) string {
	t.Helper()
	return launch.WriteProgram(t, filepath.Join(dir, name), []byte("#!/bin/sh\necho "+says+"\n"))
}

func TestCase11_FindsTheNextOnPath(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		sub := func(name string) string { return launch.Root.Mkdir(t, filepath.Join(p.dir, name), 0o755) }
		front, real, links, hard, copies, empty := sub("front"), sub("real"), sub("links"), sub("hard"), sub("copies"), sub("empty")
		shim := launch.Copy(t, front, "tool")
		program(t, real, "tool", "real")
		launch.Copy(t, copies, "tool")
		if err := os.Symlink(shim, filepath.Join(links, "tool")); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(shim, filepath.Join(hard, "tool")); err != nil {
			t.Fatal(err)
		}
		dirAsProgram := sub("dirs")
		launch.Root.Mkdir(t, filepath.Join(dirAsProgram, "tool"), 0o755)
		notExec := sub("notexec")
		launch.Root.Write(t, filepath.Join(notExec, "tool"), "#!/bin/sh\n", 0o644)

		rows := []struct {
			name string
			path []string
			by   string
		}{
			{"next", []string{front, real}, shim},
			{"empty folders", []string{empty, front, launch.Nowhere, empty, real}, shim},
			{"again through a symlink", []string{front, links, real}, shim},
			{"through a symlink first", []string{links, front, real}, filepath.Join(links, "tool")},
			{"again by a hard link", []string{front, hard, real}, shim},
			{"another copy", []string{front, copies, real}, shim},
			{"copies before", []string{copies, front, hard, links, real}, shim},
			{"its folder twice", []string{front, front, real}, shim},
			{"a trailing slash", []string{front + "/", front + "//.", real}, shim},
			{"a directory of that name", []string{front, dirAsProgram, real}, shim},
			{"a file without x", []string{front, notExec, real}, shim},
		}
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				for _, policy := range []any{nil, p.policy(nil)} {
					c := launch.Cmd{Path: row.by, Args: []string{"tool"}, User: u, Policy: policy, Env: []string{"PATH=" + strings.Join(row.path, ":") + ":/usr/bin:/bin"}}
					if r := c.Run(t); r.Code != 0 || r.Stdout != "real\n" || r.Stderr != "" {
						t.Errorf("policy %v: %v", policy != nil, r)
					}
				}
			})
		}
		t.Run("relative", func(t *testing.T) {
			for name, path := range map[string]string{"dots": "../front:../real", "empty entry": "../front:", "dot": "../front:."} {
				for _, policy := range []any{nil, p.policy(nil)} {
					c := launch.Cmd{Path: "../front/tool", Args: []string{"tool"}, User: u, Policy: policy, Dir: real, Env: []string{"PATH=" + path}}
					if r := c.Run(t); r.Code != 0 || r.Stdout != "real\n" || r.Stderr != "" {
						t.Errorf("%s, policy %v: %v", name, policy != nil, r)
					}
				}
				// What hides such a program is told as for any other.
				c := launch.Cmd{
					Path: "../front/tool", Args: []string{"tool"}, User: u, Dir: real, Env: []string{"PATH=" + path},
					Policy: object{"version": 1, "hidden": []string{real}},
				}
				if r := c.Run(t); r.Code != 125 || !strings.Contains(r.Stderr, "hides the program") {
					t.Errorf("%s, hidden: %v", name, r)
				}
			}
		})
		t.Run("by descriptor", func(t *testing.T) {
			f, err := os.Open(shim)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, path := range []string{"/proc/self/fd/3", "/dev/fd/3"} {
				for _, policy := range []any{nil, p.policy(nil)} {
					c := launch.Cmd{Path: path, Args: []string{"another name"}, Extra: []*os.File{f}, User: u, Policy: policy, Env: []string{"PATH=" + front + ":" + real}}
					if r := c.Run(t); r.Code != 0 || r.Stdout != "real\n" || r.Stderr != "" {
						t.Errorf("%s, policy %v: %v", path, policy != nil, r)
					}
				}
			}
		})
		t.Run("nothing but shims", func(t *testing.T) {
			for _, policy := range []any{nil, p.policy(nil)} {
				c := launch.Cmd{Path: shim, Args: []string{"tool"}, User: u, Policy: policy, Env: []string{"PATH=" + strings.Join([]string{front, links, hard, copies, front}, ":")}}
				r := c.Run(t)
				if r.Code != 127 || r.Stdout != "" || !oneMessage.MatchString(r.Stderr) {
					t.Errorf("policy %v: %v", policy != nil, r)
				}
			}
		})
		t.Run("before it on PATH", func(t *testing.T) {
			// The entries before the shim's own are not its to look at.
			c := launch.Cmd{Path: shim, Args: []string{"tool"}, User: u, Env: []string{"PATH=" + real + ":" + front}}
			if r := c.Run(t); r.Code != 127 || r.Stdout != "" {
				t.Errorf("%v", r)
			}
		})
	})
}

func TestCase12_NoProgramIs127Or126(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		at := func(name string) string { return filepath.Join(p.dir, name) }
		launch.Root.Write(t, at("plain"), "text\n", 0o644)
		launch.Root.Mkdir(t, at("directory"), 0o755)
		launch.WriteProgram(t, at("nointerp"), []byte("#!"+launch.Nowhere+"/interpreter\n: >\"$1\"\n"))
		launch.WriteProgram(t, at("empty"), nil)
		if err := os.Symlink(at("missing"), at("dangling")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at("loop"), at("loop")); err != nil {
			t.Fatal(err)
		}
		rows := []struct {
			real string
			code int
		}{
			{"missing", 127},
			{"missing/deeper", 127},
			{"plain/deeper", 127},
			{"dangling", 127},
			{"plain", 126},
			{"directory", 126},
			{"nointerp", 126},
			{"loop", 126},
		}
		for _, row := range rows {
			t.Run(row.real, func(t *testing.T) {
				shim := launch.Install(t, p.bin, "tool", launch.Record{Real: at(row.real)})
				for name, policy := range map[string]any{"none": nil, "blank": " ", "hidden": p.policy(nil), "not required": p.policy(object{"required": false})} {
					c := launch.Cmd{Path: shim, Args: []string{"tool", p.marker}, User: u, Policy: policy}
					r := p.wantNotStarted(t, c, row.code, at(row.real))
					if t.Failed() {
						t.Fatalf("policy %s: %v", name, r)
					}
				}
			})
		}
		// A script without #! is run by sh, as execvp does; so is an empty file.
		launch.WriteProgram(t, at("bare"), []byte(": >\"$1\"; echo \"$0 $#\"; cat \"$2\" 2>/dev/null\n"))
		shim := launch.Install(t, p.bin, "tool", launch.Record{Real: at("bare")})
		for _, policy := range []any{nil, p.policy(nil)} {
			p.unmark(t)
			want := at("bare") + " 3\n"
			if policy == nil {
				want += secretText
			}
			r := launch.Cmd{Path: shim, Args: []string{"tool", p.marker, p.secret, "c d"}, User: u, Policy: policy}.Run(t)
			if r.Stdout != want || r.Stderr != "" || !p.started() {
				t.Errorf("want %q: %v", want, r)
			}
		}
		launch.Install(t, p.bin, "tool", launch.Record{Real: at("empty")})
		if r := (launch.Cmd{Path: shim, Args: []string{"tool"}, User: u, Policy: p.policy(nil)}).Run(t); r.Code != 0 || r.Stdout+r.Stderr != "" {
			t.Errorf("an empty program: %v", r)
		}
	})
}

// The policy's program counts only without a record.
func TestProgramCountsOnlyWithoutARecord(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		one, two := program(t, p.dir, "one", "one"), program(t, p.dir, "two", "two")
		bare := launch.Copy(t, p.bin, "bare")
		recorded := launch.Install(t, p.bin, "recorded", launch.Record{Real: one})
		run := func(shim string, program string) launch.Result {
			return launch.Cmd{Path: shim, Args: []string{"x"}, User: u, Policy: p.policy(object{"program": program})}.Run(t)
		}
		if r := run(bare, two); r.Stdout != "two\n" || r.Stderr != "" {
			t.Errorf("without a record: %v", r)
		}
		if r := run(recorded, two); r.Stdout != "one\n" || r.Stderr != "" {
			t.Errorf("with a record: %v", r)
		}
		c := launch.Cmd{Path: bare, Args: []string{"x", p.marker}, User: u, Policy: p.policy(object{"program": p.dir + "/missing"})}
		p.wantNotStarted(t, c, 127, p.dir+"/missing")
		c.Policy = p.policy(object{"program": p.dir})
		p.wantNotStarted(t, c, 126, p.dir)
		c.Policy = p.policy(object{"program": bare})
		p.wantNotStarted(t, c, 127, "shim")
		c.Policy = p.policy(object{"program": recorded})
		p.wantNotStarted(t, c, 127, "shim")
		// A program that is hidden is refused before anything runs.
		hidden := program(t, p.hidden, "tool", "hidden")
		c.Policy = p.policy(object{"program": hidden})
		p.wantNotStarted(t, c, 125, "hidden[0]", hidden)
	})
}

func TestEnvironmentIsChangedAsAsked(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		c := p.sh("/bin/cat /proc/$$/environ", p.policy(object{"env": object{
			"unset": []string{"GONE", "ABSENT", "LD_PRELOAD"},
			"set":   object{"KEPT": "new", "Z_NEW": "z", "A_NEW": "a=b\nc", "EMPTY": ""},
		}}))
		c.Env = []string{"GONE=1", "KEPT=old", "", "GONE", "B=1", "GONE=2", "KEPT=older", "EMPTY", "LD_PRELOAD=" + launch.Nowhere + ".so"}
		want := strings.Join([]string{"KEPT=new", "", "GONE", "B=1", "EMPTY", "A_NEW=a=b\nc", "EMPTY=", "Z_NEW=z"}, "\x00") + "\x00"
		if r := c.Run(t); r.Stdout != want || r.Stderr != "" {
			t.Errorf("want %q: %v", want, r)
		}
		// The changed PATH does not decide which program is meant.
		front := launch.Root.Mkdir(t, filepath.Join(p.dir, "front"), 0o755)
		one := launch.Root.Mkdir(t, filepath.Join(p.dir, "one"), 0o755)
		two := launch.Root.Mkdir(t, filepath.Join(p.dir, "two"), 0o755)
		launch.WriteProgram(t, filepath.Join(one, "tool"), []byte("#!/bin/sh\necho one $PATH\n"))
		program(t, two, "tool", "two")
		c = launch.Cmd{
			Path: launch.Copy(t, front, "tool"), Args: []string{"tool"}, User: u, Env: []string{fmt.Sprintf("PATH=%s:%s", front, one)},
			Policy: p.policy(object{"env": object{"set": object{"PATH": two}}}),
		}
		if r := c.Run(t); r.Stdout != "one "+two+"\n" {
			t.Errorf("a changed PATH: %v", r)
		}
	})
}
