package place

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// TestCheckProgram: what cannot stand behind a shim is refused.
func TestCheckProgram(t *testing.T) {
	dir := t.TempDir()
	script := func(name string, perm os.FileMode) string { return write(t, dir+"/"+name, "#!/bin/sh\n", perm) }
	copyOf := func(path, name string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Skip(err)
		}
		return write(t, dir+"/"+name, string(data), 0o755)
	}
	if err := os.Symlink("plain", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	fifo := dir + "/fifo"
	if err := unix.Mkfifo(fifo, 0o755); err != nil {
		t.Fatal(err)
	}
	rows := []struct{ path, why string }{
		{script("good", 0o755), ""},
		{script("plain", 0o644), "is not executable"},
		{dir + "/link", "leads to " + dir + "/plain, which is not executable"},
		{dir, "is a directory"},
		{fifo, "is not a regular file"},
		{dir + "/nothing", "no such file"},
		{script("suid", 0o755|os.ModeSetuid), "set-user-id"},
		{script("sgid", 0o755|os.ModeSetgid), "set-group-id"},
		{launch.Copy(t, dir, "shim"), "is itself a shim"},
	}
	file, err := filepath.EvalSymlinks("/lib64/ld-linux-x86-64.so.2")
	if err == nil {
		rows = append(rows, []struct{ path, why string }{
			{file, "is a dynamic loader"}, {copyOf(file, "ld-9.so"), "is a dynamic loader"}, {copyOf(file, "unnamed"), "is a dynamic loader"},
		}...)
	}
	if os.Geteuid() == 0 {
		capable := script("capable", 0o755)
		// vfs_cap_data of revision 2 with CAP_NET_RAW (capabilities(7)).
		caps := []byte{1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		if err := unix.Setxattr(capable, "security.capability", caps, 0); err == nil {
			rows = append(rows, struct{ path, why string }{capable, "has file capabilities"})
		}
	}
	for _, row := range rows {
		_, err := checkProgram(row.path)
		if row.why == "" && err != nil || row.why != "" && (err == nil || !strings.Contains(err.Error(), row.why)) {
			t.Errorf("%s: %v, want %q", row.path, err, row.why)
		}
	}
}

// TestCheckName: a name is one, and not one that install gives itself.
func TestCheckName(t *testing.T) {
	for name, good := range map[string]bool{
		"bash": true, "g++": true, "": false, ".": false, "..": false, "a/b": false, "/a": false, "a\x00": false, "bash.shim-real": false,
	} {
		if err := checkName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestRecord: what a shim cannot do is not recorded.
func TestRecord(t *testing.T) {
	for _, row := range []struct {
		args string
		good bool
	}{
		{"", true},
		{"--policy-env MY_POLICY --argv0 real --on-missing pass --report /r --log /l --profile-dir /p", true},
		{"--policy-env 1X", false},
		{"--policy-env A=B", false},
		{"--policy-env PATH", false},
		{"--policy-env HOME", false},
		{"--policy-env LD_PRELOAD", false},
		{"--argv0 other", false},
		{"--on-missing refuse", false},
		{"--on-missing other", false},
		{"--report relative", false},
		{"--log /a/../b", false},
	} {
		var o recordOptions
		f := voice.NewFlags("install")
		o.register(f)
		if _, err := f.Read(strings.Fields(row.args)); err != nil {
			t.Fatal(err)
		}
		if _, err := o.record(f); (err == nil) != row.good {
			t.Errorf("%s: %v", row.args, err)
		}
	}
}
