package general_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// traced lets the system calls of c that name one of the paths, as they name it,
// fail with errno. Without an errno, they are traced and answered.
func traced(t *testing.T, c launch.Cmd, call, errno string, paths ...string) launch.Cmd {
	t.Helper()
	launch.Need(t, launch.Program("strace"))
	args := []string{"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call}
	if errno != "" {
		args = append(args, "-e", "inject="+call+":error="+errno)
	}
	for _, path := range paths {
		args = append(args, "-P", path)
	}
	args = append(args, c.Path)
	c.Path, c.Args = launch.Look(t, "strace"), append(args, c.Args[1:]...)
	return c
}

// A policy file that the program could write is refused. Where it cannot be told
// whether it could, nothing is started.
func TestUnansweredPolicyFileStops(t *testing.T) {
	launch.Need(t, launch.ABIAtLeast(3), launch.IsRoot)
	u := launch.Nobody
	p := newPlace(t, u)
	// Nothing but its own mode lets the program write it.
	ws := launch.Root.Mkdir(t, filepath.Join(p.dir, "ws"), 0o755)
	file := launch.Root.Write(t, filepath.Join(ws, "policy.json"),
		`{"version":1,"required":false,"scope":"workspace","workspace":"`+ws+`","toolchainDirs":false}`, 0o666)
	c := launch.Shell(p.shim, `: >"$1" && echo truncated`, file)
	c.User, c.Policy = u, "@"+file
	for _, row := range []struct{ name, call, errno, path, want string }{
		{"answered", "faccessat2", "", file, "the policy file: the program could replace it"},
		{"memory", "faccessat2", "ENOMEM", file, "cannot allocate memory"},
		{"stale", "faccessat2", "ESTALE", file, "stale"},
		{"unreadable directory", "openat", "EIO", "policy.json", "input/output error"},
		{"no server", "openat", "ENOTCONN", "policy.json", "not connected"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := traced(t, c, row.call, row.errno, row.path).Run(t)
			if r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, row.want) || strings.Count(r.Stderr, "\n") != 1 {
				t.Errorf("want 125 and %q, have %v", row.want, r)
			}
			if data, err := os.ReadFile(file); err != nil || len(data) == 0 {
				t.Errorf("the policy file: %q, %v", data, err)
			}
		})
	}
	// It cannot be written after all, says the kernel: then the program runs.
	if r := traced(t, c, "faccessat2", "EACCES", file).Run(t); r.Stdout != "truncated\n" {
		t.Errorf("denied: %v", r)
	}
}

// A hidden path at which nothing was must be seen to be closed.
func TestUnansweredProofStops(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		gone := filepath.Join(p.hidden, "gone")
		c := p.sh("echo ran", object{"version": 1, "required": false, "hidden": []string{gone}})
		for _, row := range []struct{ errno, want string }{
			{"", ""},
			{"EACCES", ""},
			{"ENOENT", ""},
			{"EMFILE", "the confinement cannot be proved: "},
			{"ENOMEM", "the confinement cannot be proved: "},
			{"EIO", "the confinement does not hold: "},
			{"ENXIO", "the confinement does not hold: "},
		} {
			t.Run(row.errno, func(t *testing.T) {
				r := traced(t, c, "openat", row.errno, gone).Run(t)
				if row.want == "" {
					if r.Code != 0 || r.Stdout != "ran\n" {
						t.Errorf("not started: %v", r)
					}
				} else if r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, row.want) {
					t.Errorf("want %q, have %v", row.want, r)
				}
			})
		}
	})
}

// A shell that cannot be known as one is not started unchecked.
func TestUnansweredCommandStops(t *testing.T) {
	launch.Need(t, launch.ABIAtLeast(3), launch.Program("bash"))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		real := filepath.Join(p.dir, "real")
		if err := os.Mkdir(real, 0o755); err != nil {
			t.Fatal(err)
		}
		mysh := filepath.Join(real, "mysh")
		if err := os.Symlink(launch.Look(t, "bash"), mysh); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(p.work, "link")
		if err := os.Symlink("/etc", link); err != nil {
			t.Fatal(err)
		}
		shim := launch.Install(t, p.bin, "mysh", launch.Record{Real: mysh})
		network := object{"version": 1, "network": "deny", "commandCheck": "deny"}
		scope := object{"version": 1, "scope": "workspace", "workspace": p.work, "toolchainDirs": false, "commandCheck": "deny"}
		for _, row := range []struct {
			policy               object
			command, errno, path string
			code                 int
			want                 string
		}{
			{network, "curl localhost", "", "mysh", 126, "sandbox violation"},
			{network, "curl localhost", "EMFILE", "mysh", 125, "command: "},
			{network, "curl localhost", "EIO", "mysh", 125, "command: "},
			{network, "true", "", "mysh", 0, ""},
			{scope, "touch " + link + "/passwd", "", "link", 126, "sandbox violation"},
			{scope, "touch " + link + "/passwd", "EMFILE", "link", 125, "command: "},
			{scope, "true " + p.work, "EMFILE", "link", 0, ""},
		} {
			c := launch.Cmd{Path: shim, Args: []string{"mysh", "-c", row.command}, User: u, Dir: p.work, Policy: row.policy}
			r := traced(t, c, "openat", row.errno, row.path).Run(t)
			if r.Code != row.code || r.Stdout != "" || !strings.Contains(r.Stderr, row.want) {
				t.Errorf("%s, %s of %s: want %d, %q: %v", row.command, row.errno, row.path, row.code, row.want, r)
			}
		}
	})
}

// Two shims whose records lead to each other end also when the one cannot look at
// the other, and a program that cannot be looked at is not said to be missing.
func TestUnansweredProgramStops(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		one, two := launch.Dir(t), launch.Dir(t)
		shim := launch.Install(t, one, "prog", launch.Record{Real: filepath.Join(two, "prog")})
		other := launch.Install(t, two, "prog", launch.Record{Real: shim})
		loop := launch.Cmd{Path: shim, Args: []string{"prog"}, User: u}
		bin := launch.Dir(t)
		program := launch.WriteProgram(t, filepath.Join(bin, "alone"), []byte("#!/bin/sh\necho ran\n"))
		onPath := launch.Cmd{
			Path: launch.Copy(t, one, "alone"), Args: []string{"alone"}, User: u,
			Env: append(slices.Clone(launch.DefaultEnv[1:]), "PATH="+one+":"+bin+":/bin"),
		}
		for _, row := range []struct {
			name        string
			c           launch.Cmd
			call, errno string
			paths       []string
			code        int
			want        string
		}{
			{"loop", loop, "openat", "", []string{other, shim}, 127, "not found"},
			{"loop", loop, "openat", "ENOMEM", []string{other, shim}, 126, "cannot allocate memory"},
			{"loop", loop, "openat", "EIO", []string{other, shim}, 126, "input/output error"},
			{"path", onPath, "openat", "", []string{program}, 0, ""},
			{"path", onPath, "openat", "ENFILE", []string{program}, 126, "too many open files"},
			{"path", onPath, "openat", "ENOMEM", []string{program}, 126, "cannot allocate memory"},
			{"path", onPath, "newfstatat", "ENOMEM", []string{program}, 126, "cannot allocate memory"},
			{"path", onPath, "newfstatat", "ENOENT", []string{program}, 127, "not found"},
			{"itself", onPath, "faccessat2", "ENOMEM", []string{"/proc/self/exe"}, 126, "cannot allocate memory"},
		} {
			r := traced(t, row.c, row.call, row.errno, row.paths...).Run(t)
			if r.Code != row.code || (r.Stdout == "ran\n") != (row.code == 0) || !strings.Contains(r.Stderr, row.want) {
				t.Errorf("%s, %s %s: want %d, %q: %v", row.name, row.call, row.errno, row.code, row.want, r)
			}
		}
	})
}

// A real program that an entry of PATH names from the current directory is at
// stake like one that has a whole path.
func TestReplaceableProgramIsRefused(t *testing.T) {
	launch.Need(t, launch.ABIAtLeast(3))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		shim := launch.Copy(t, p.bin, "tool")
		inside := u.Mkdir(t, filepath.Join(p.work, "tools"), 0o755)
		outside := u.Mkdir(t, filepath.Join(p.dir, "tools"), 0o755)
		for _, dir := range []string{inside, outside} {
			u.Write(t, filepath.Join(dir, "tool"), "#!/bin/sh\necho ran\n", 0o755)
		}
		for _, row := range []struct {
			path string
			want string
		}{{"tools", "the real program: the program could replace it"}, {"../tools", ""}, {inside, "the real program: the program could replace it"}} {
			r := launch.Cmd{
				Path: shim, Args: []string{"tool"}, User: u, Dir: p.work, Env: []string{"PATH=" + p.bin + ":" + row.path},
				Policy: object{"version": 1, "scope": "workspace", "workspace": p.work, "toolchainDirs": false},
			}.Run(t)
			if row.want == "" && r.Stdout != "ran\n" || row.want != "" && (r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, row.want)) {
				t.Errorf("PATH=%s: want %q, have %v", row.path, row.want, r)
			}
		}
	})
}
