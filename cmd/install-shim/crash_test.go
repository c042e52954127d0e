package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// calls are the system calls by which install-shim changes anything, but for
// the openat that creates a file, which a write follows.
const calls = "write,fchown,fchmod,fsync,renameat,renameat2,linkat,unlinkat,mkdirat"

// kill runs install-shim and kills it when it enters the n-th of calls. It
// reports whether that many were made.
func kill(t *testing.T, n int, noExchange bool, args ...string) bool {
	t.Helper()
	set := calls
	trace := []string{"-f", "--seccomp-bpf", "-qq", "-o", "/dev/null"}
	if noExchange {
		set = strings.Replace(calls, "renameat2,", "", 1)
		trace = append(trace, "-e", "inject=renameat2:error=EINVAL")
	}
	trace = append(trace, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", set, n))
	trace = append(trace, filepath.Join(binDir, "install-shim"))
	cmd := exec.Command("strace", append(trace, args...)...)
	cmd.Env = []string{"PATH=/nowhere"} // else all of PATH is read for other shims
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	// strace ends as its program did.
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("strace: %v\n%s", err, out)
	}
	return true
}

// installShim runs install-shim to its end.
func installShim(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(binDir, "install-shim"), args...)
	cmd.Env = []string{"PATH=/nowhere"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("install-shim %q: %v\n%s", args, err, out)
	}
}

// A crashCase is one operation that is killed at every step.
type crashCase struct {
	name       string
	noExchange bool
	inPlace    bool
	symlink    bool       // the name is a symbolic link to the program
	before     [][]string // operations that come first
	op         []string
	// stages that must have been seen after a kill, or the test has not
	// reached what it is about.
	stages []stage
}

func TestKilledAtEveryCall(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		missing(t, "strace")
	}
	install := []string{"install", "--in-place", "P"}
	cases := []crashCase{
		{name: "install", inPlace: true, op: install, stages: []stage{fresh, unfinished, installed}},
		{name: "install by link", inPlace: true, noExchange: true, op: install, stages: []stage{fresh, unfinished, installed}},
		{name: "install a symlink", inPlace: true, symlink: true, op: install, stages: []stage{fresh, unfinished, installed}},
		{name: "install a symlink by link", inPlace: true, symlink: true, noExchange: true, op: install, stages: []stage{fresh, unfinished, installed}},
		{name: "update", inPlace: true, before: [][]string{install}, op: []string{"install", "--in-place", "--argv0", "real", "P"}, stages: []stage{installed}},
		{name: "uninstall", inPlace: true, before: [][]string{install}, op: []string{"uninstall", "--in-place", "P"}, stages: []stage{installed, fresh}},
		{name: "install in a directory", op: []string{"install", "--dir", "D", "--real", "P", "name"}},
		{name: "update in a directory", before: [][]string{{"install", "--dir", "D", "--real", "P", "name"}}, op: []string{"install", "--dir", "D", "--real", "P", "--argv0", "real", "name"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			seen := make(map[stage]bool)
			n := 1
			for ; ; n++ {
				if n > 100 {
					t.Fatal("the operation does not end")
				}
				killed := false
				for _, then := range []string{"install", "uninstall"} {
					killed = c.try(t, n, then, seen)
				}
				if !killed {
					break
				}
			}
			if n < 8 {
				t.Errorf("only %d system calls were interrupted", n-1)
			}
			for _, s := range c.stages {
				if !seen[s] {
					t.Errorf("stage %d was never seen in %d kills", s, n-1)
				}
			}
		})
	}
}

// try does the operation with a kill at the n-th call, looks whether the
// program works, and whether what comes then brings order.
func (c *crashCase) try(t *testing.T, n int, then string, seen map[stage]bool) (killed bool) {
	t.Helper()
	dir := t.TempDir()
	program, shims := filepath.Join(dir, "program"), filepath.Join(dir, "shims")
	origin := program
	if c.symlink {
		origin = filepath.Join(dir, "origin")
		if err := os.Symlink("origin", program); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyFile("/bin/echo", origin, 0o751); err != nil {
		t.Fatal(err)
	}
	var was unix.Stat_t
	if err := unix.Lstat(program, &was); err != nil {
		t.Fatal(err)
	}
	fill := func(args []string) []string {
		out := make([]string, len(args))
		for i, a := range args {
			out[i] = strings.NewReplacer("P", program, "D", shims).Replace(a)
		}
		return out
	}
	for _, b := range c.before {
		installShim(t, fill(b)...)
	}
	killed = kill(t, n, c.noExchange, fill(c.op)...)
	mustEcho(t, program, n)

	if !c.inPlace {
		name := filepath.Join(shims, "name")
		if _, err := os.Lstat(name); err == nil {
			mustEcho(t, name, n)
		} else if c.before != nil {
			t.Fatalf("kill %d: %v", n, err)
		}
		installShim(t, fill([]string{"install", "--dir", "D", "--real", "P", "name"})...)
		mustEcho(t, name, n)
		wantNames(t, shims, "name")
		return killed
	}

	d, err := openDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	s, err := d.inspect("program")
	if err != nil {
		t.Fatal(err)
	}
	if killed {
		seen[s.stage()] = true
	}
	names := []string{"program"}
	if c.symlink {
		names = append(names, "origin")
	}
	if then == "install" {
		installShim(t, "install", "--in-place", program)
		mustEcho(t, program, n)
		wantNames(t, dir, append(names, "program"+siblingSuffix)...)
		installShim(t, "status", program)
	}
	installShim(t, "uninstall", "--in-place", program)
	mustEcho(t, program, n)
	wantNames(t, dir, names...)
	var is unix.Stat_t
	if err := unix.Lstat(program, &is); err != nil {
		t.Fatal(err)
	}
	// Reading a link changes its access time, and no more than a direct use.
	was.Ctim, was.Atim, is.Ctim, is.Atim = unix.Timespec{}, unix.Timespec{}, unix.Timespec{}, unix.Timespec{}
	if was != is {
		t.Fatalf("kill %d: the program is\n%+v, was\n%+v", n, is, was)
	}
	return killed
}

func mustEcho(t *testing.T, program string, n int) {
	t.Helper()
	out, err := exec.Command(program, "it", "works").Output()
	if err != nil || string(out) != "it works\n" {
		t.Fatalf("kill %d: %s: %v, %q", n, program, err, out)
	}
}

func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]bool)
	for _, e := range entries {
		got[e.Name()] = true
	}
	for _, w := range want {
		if !got[w] {
			t.Fatalf("%s: no %s in %v", dir, w, got)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %v, want only %v", dir, got, want)
	}
}
