package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

const (
	module = "github.com/sandbox-exec-shim/sandbox-exec-shim"
	// binEnv passes the directory of the built binaries to the test binary
	// that runs as another user.
	binEnv = "INSTALL_SHIM_TEST_BIN"
	// nobody is the other user.
	nobody = 65534
)

// binDir holds install-shim, sandbox-exec-shim, and a copy of this test binary
// and its data, where every user can read them.
var binDir string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	launch.Fresh()
	if binDir = os.Getenv(binEnv); binDir != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("/var/tmp", "install-shim-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binDir = dir
	if err := build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// build makes the binaries as the Makefile does.
func build(dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	mk, err := os.ReadFile("../../shim/boot/ldflags.mk")
	if err != nil {
		return err
	}
	value := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + `\s*:=\s*(\S+)$`).FindSubmatch(mk)
		if m == nil {
			return "missing-" + name
		}
		return string(m[1])
	}
	stamped := "-s -w -X main.version=sandbox-exec-shim-version=9.8.7; -E " + value("BOOT_ENTRY") + " -B " + value("BOOT_MARKER")
	for name, ldflags := range map[string]string{
		"sandbox-exec-shim": stamped,
		"install-shim":      "-s -w -X main.version=9.8.7",
	} {
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags,
			"-o", filepath.Join(dir, name), module+"/cmd/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build %s: %w\n%s", name, err, out)
		}
	}
	if err := copyFile("/proc/self/exe", filepath.Join(dir, "test"), 0o755); err != nil {
		return err
	}
	return os.CopyFS(filepath.Join(dir, "testdata"), os.DirFS("testdata"))
}

func copyFile(from, to string, perm os.FileMode) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, data, perm); err != nil {
		return err
	}
	return os.Chmod(to, perm)
}

// missing skips a test for something that this machine lacks. In CI nothing
// may be lacking.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("missing: %s", what)
	}
	t.Skipf("missing: %s", what)
}

func TestScripts(t *testing.T) {
	work, err := os.MkdirTemp("/var/tmp", "install-shim-scripts-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(work) })
	if err := os.Chmod(work, 0o755); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                filepath.Join(binDir, "testdata/script"),
		WorkdirRoot:        work,
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", binDir+":/usr/sbin:/usr/bin:/sbin:/bin")
			e.Setenv("BIN", binDir)
			e.Setenv("SHIM", filepath.Join(binDir, shims.Name))
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			default:
				return false, fmt.Errorf("unknown condition %q", cond)
			}
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": codeCommand,
		},
	})
}

// TestCommands: each command is in the overview, in its order, and explains itself.
func TestCommands(t *testing.T) {
	rest := overview
	for _, c := range commands() {
		i := strings.Index(rest, "\n  install-shim "+c.name+" ")
		if i < 0 && !strings.Contains(rest, "\n  install-shim "+c.name+"\n") {
			t.Errorf("%s is not in the overview, or out of order", c.name)
		}
		rest = rest[max(i, 0):]
		if !strings.HasPrefix(c.help, "install-shim "+c.name) || !strings.HasSuffix(c.help, "\n") {
			t.Errorf("%s: help %.30q", c.name, c.help)
		}
	}
}

// codeCommand runs a program and wants one exit code: code 125 PROGRAM ARG...
// Its output goes where stdout and stderr look.
func codeCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROGRAM ARG...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = fmt.Sprint(exit.ExitCode())
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != args[0] {
		ts.Fatalf("%s: exit code %s, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

// TestAsNobody runs all tests of this package again as a user without any
// privilege.
func TestAsNobody(t *testing.T) {
	if os.Getenv(binEnv) != "" {
		t.Skip("this is the run as nobody")
	}
	if os.Geteuid() != 0 {
		t.Skip("not root: the other tests already ran without privilege")
	}
	home, err := os.MkdirTemp("/var/tmp", "install-shim-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	if err := os.Chown(home, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(binDir, "test"), "-test.v")
	cmd.Dir = home
	cmd.Env = append(os.Environ(), binEnv+"="+binDir, "HOME="+home, "TMPDIR="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as uid %d: %v\n%s", nobody, err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestScripts/") {
		t.Fatalf("as uid %d no script ran:\n%s", nobody, out)
	}
}
