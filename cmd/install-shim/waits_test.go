package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// within is how long a command may take that waits for nothing, on a busy machine. The
// kernel gives a lease 45 seconds, and nobody ever writes to the FIFO.
const within = 20 * time.Second

// prompt runs install-shim with a PATH and returns its exit code and what it said.
func prompt(t *testing.T, path string, args ...string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), within)
	defer stop()
	cmd := exec.CommandContext(ctx, filepath.Join(binDir, "install-shim"), args...)
	cmd.Env, cmd.WaitDelay = []string{"PATH=" + path}, time.Second
	out, err := cmd.CombinedOutput()
	code := 0
	switch exit, failed := errors.AsType[*exec.ExitError](err); {
	case ctx.Err() != nil:
		t.Fatalf("install-shim %q waits", args)
	case failed:
		code = exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	return strconv.Itoa(code) + " " + string(out)
}

// lease makes this process the holder of a write lease until release.
func lease(t *testing.T, path string) (release func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		// A file that somebody else has open, just started for example, gives EAGAIN.
		if _, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err == nil {
			return func() { f.Close() }
		}
		if !errors.Is(err, unix.EAGAIN) || time.Now().After(deadline) {
			f.Close()
			missing(t, "a lease: "+err.Error())
		}
	}
}

// TestLeaseIsNotWaitedFor: a lease on a file does not make any command wait, and none
// takes the file for something else. Without the lease each does its work.
func TestLeaseIsNotWaitedFor(t *testing.T) {
	if os.Getenv(binEnv) != "" {
		t.Skip("already done as root, and no other without privilege")
	}
	dir := t.TempDir()
	tool, shims := dir+"/bin/tool", dir+"/shims"
	shim, policy, bare := shims+"/tool", dir+"/policy", dir+"/bare"
	if err := os.Mkdir(dir+"/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := copyFile("/bin/echo", tool, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := copyFile(filepath.Join(binDir, "sandbox-exec-shim"), bare, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(policy, []byte(`{"version":1,"hidden":["/nowhere"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	installShim(t, "install", "--dir", shims, "--real", tool, "tool")
	path := shims + ":" + dir + "/bin"
	const held = "another process holds a lease on it"
	for _, row := range []struct {
		leased, held, free string
		args               []string
	}{
		{shim, "1 SHIM", "0 SHIM", []string{"status"}},
		{shim, "unreadable", " ok\n", []string{"status", shim}},
		{shim, held, "target " + tool, []string{"explain", "--policy", policy, "--target", shim}},
		{shim, held, "target " + tool, []string{"explain", "--policy", policy, "--target", "tool"}},
		{shim, held, "0 ", []string{"probe", "--policy", policy, "--target", shim}},
		{shim, held, "0 it works\n", []string{"run", "--policy", policy, "--", shim, "it", "works"}},
		{bare, held, "0 it works\n", []string{"run", "--shim", bare, "--policy", policy, "--", tool, "it", "works"}},
		{bare, held, "0 updated", []string{"install", "--shim", bare, "--dir", shims, "--real", tool, "--report", "/tmp/x", "tool"}},
		{policy, "resource temporarily unavailable", "target " + tool, []string{"explain", "--policy", policy, "--target", tool}},
		{tool, "126 install-shim: " + tool + ": " + held, "0 it works\n", []string{"run", "--policy", policy, "--", tool, "it", "works"}},
		{tool, held, "0 SHIM", []string{"status", shim}},
		{tool, held, "0 unchanged", []string{"install", "--dir", shims, "--real", tool, "--report", "/tmp/x", "tool"}},
		{shim, held, "0 updated", []string{"install", "--dir", shims, "--real", tool, "tool"}},
		{shim, held, "0 removed", []string{"uninstall", "--dir", shims, "tool"}},
		{tool, held, "0 installed", []string{"install", "--in-place", dir + "/bin/tool"}},
		{tool, held, "0 restored", []string{"uninstall", "--in-place", dir + "/bin/tool"}},
	} {
		release := lease(t, row.leased)
		said := prompt(t, path, row.args...)
		release()
		if !strings.Contains(said, row.held) || strings.HasPrefix(said, "0 ") {
			t.Errorf("%q with a lease on %s: %s\nwant %q", row.args, row.leased, said, row.held)
		}
		if said := prompt(t, path, row.args...); !strings.Contains(said, row.free) {
			t.Errorf("%q without a lease: %s\nwant %q", row.args, said, row.free)
		}
	}
}

// TestNothingIsWaitedFor: FIFOs, devices and files of the kernel on PATH, as a target
// and as a file that is named.
func TestNothingIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	policy, fifo := dir+"/policy", dir+"/bin/tool"
	if err := os.Mkdir(dir+"/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(policy, []byte(`{"version":1,"hidden":["/nowhere"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(fifo, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/bin/tool.shim-real", nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(fifo, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := copyFile("/bin/echo", dir+"/program", 0o755); err != nil {
		t.Fatal(err)
	}
	path := dir + "/bin"
	for _, row := range []struct {
		want string
		args []string
	}{
		{"1 SHIM", []string{"status"}},
		{"not on PATH", []string{"install", "--dir", dir + "/new", "tool"}},
		{"not on PATH", []string{"run", "--policy", policy, "--", "tool"}},
		{"not on PATH", []string{"explain", "--policy", policy, "--target", "tool"}},
		{"0 installed", []string{"install", "--in-place", dir + "/program"}},
		{"0 restored", []string{"uninstall", "--in-place", dir + "/program"}},
		{"larger than 1 MiB", []string{"explain", "--policy", "/dev/zero", "--target", "/bin/sh"}},
	} {
		if said := prompt(t, path, row.args...); !strings.Contains(said, row.want) {
			t.Errorf("%q: %s\nwant %q", row.args, said, row.want)
		}
	}
	for _, file := range []string{fifo, "/dev/zero", "/proc/kmsg"} {
		for _, row := range []struct {
			want []string
			args []string
		}{
			{[]string{" not-a-shim\n", " replaced\n"}, []string{"status", file}},
			{[]string{"is not an executable file"}, []string{"explain", "--policy", policy, "--target", file}},
			{[]string{"is not a shim"}, []string{"probe", "--policy", policy, "--target", file}},
			{[]string{"is not an executable file"}, []string{"run", "--policy", policy, "--", file}},
			{[]string{"is not a shim"}, []string{"install", "--dir", dir, "--shim", file, "x"}},
			{[]string{"is not a regular file", "is not executable"}, []string{"install", "--dir", dir, "--real", file, "x"}},
		} {
			said := prompt(t, path, row.args...)
			// Only root may look at the messages of the kernel.
			ok := os.Geteuid() != 0 && strings.Contains(said, "permission denied")
			for _, want := range row.want {
				ok = ok || strings.Contains(said, want)
			}
			if !ok || strings.HasPrefix(said, "0 ") {
				t.Errorf("%q: %s\nwant one of %q", row.args, said, row.want)
			}
		}
	}
	// The messages of the kernel are no policy, and the next one is not waited for.
	if said := prompt(t, path, "explain", "--policy", "/proc/kmsg", "--target", "/bin/sh"); strings.HasPrefix(said, "0 ") {
		t.Error(said)
	}
}

// TestHugeFilesAreNotRead: a sparse file that begins as a shim is no reason to read it.
func TestHugeFilesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		if err := copyFile(filepath.Join(binDir, "sandbox-exec-shim"), filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, name), 8<<30); err != nil {
			t.Fatal(err)
		}
	}
	said := prompt(t, dir, "status", "--dir", dir)
	if n := strings.Count(said, "has 8589934592 bytes, more than any shim"); n != 8 {
		t.Errorf("%d of 8\n%s", n, said)
	}
	if said := prompt(t, dir, "install", "--shim", dir+"/a", "--dir", dir, "--real", "/bin/echo", "x"); !strings.Contains(said, "more than any shim") {
		t.Error(said)
	}
	// One of them is a shim all the same, and no program.
	if said := prompt(t, "/nowhere", "install", "--dir", dir+"/new", "--real", dir+"/a", "x"); !strings.Contains(said, "is itself a shim") {
		t.Error(said)
	}
	if said := prompt(t, "/nowhere", "install", "--dir", dir, "--real", "/bin/echo", "a"); !strings.HasPrefix(said, "0 updated") {
		t.Error(said)
	}
	mustEcho(t, dir+"/a", "in the place of a huge file")
}
