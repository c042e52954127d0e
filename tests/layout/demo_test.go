package layout

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// demo runs the demo with the binaries in bin, and returns what it printed.
func demo(t *testing.T, bin string, uid uint32) (string, error) {
	t.Helper()
	script := filepath.Join(bin, "demo.sh")
	if err := os.WriteFile(script, read(t, filepath.Join(root, "examples", "demo.sh")), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", script, bin)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/sys/nowhere"}
	if os.Geteuid() == 0 && uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// publicDir is a directory of the test's own that every user can read.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "shim-layout.")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDemo(t *testing.T) {
	bin := publicDir(t)
	build(t, "BIN="+bin)
	users := map[string]uint32{"as it is": uint32(os.Geteuid())}
	if os.Geteuid() == 0 {
		users["without root"] = 65534
	}
	for name, uid := range users {
		t.Run(name, func(t *testing.T) {
			out, err := demo(t, bin, uid)
			if err != nil {
				if strings.Contains(out, "Landlock is not available") && os.Getenv("CI") == "" {
					t.Skip("this kernel has no Landlock")
				}
				t.Fatalf("the demo failed: %v\n%s", err, out)
			}
			if !strings.Contains(out, "read the grader                                    worked     denied") {
				t.Errorf("the demo's table is not there:\n%s", out)
			}
			dir := regexp.MustCompile(`/var/tmp/sandbox-demo\.\w+`).FindString(out)
			if _, err := os.Stat(dir); dir == "" || !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the demo's directory %q is still there: %v", dir, err)
			}
		})
	}
}

// TestDemoIsACheck: with a shim that confines nothing, the demo must fail.
func TestDemoIsACheck(t *testing.T) {
	bin := publicDir(t)
	fake := "#!/bin/sh\nln -s /bin/bash \"$3/$4\"\n"
	if err := os.WriteFile(filepath.Join(bin, "install-shim"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := demo(t, bin, 0)
	if err == nil {
		t.Fatalf("the demo was content with a bash that is not confined:\n%s", out)
	}
	if !strings.Contains(out, "not what they must be") {
		t.Errorf("the demo failed for another reason: %v\n%s", err, out)
	}
}
