//go:build linux

// Package arm64 runs the arm64 build of what precedes the Go runtime under
// qemu-user, on a machine of any architecture: start, pass-through, signal
// state, and failure.
//
// A guest's execve is done by the emulator in the host, so a program that it
// becomes is one of the host, unless binfmt_misc sends it to the emulator again.
package arm64

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/boot"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

var (
	qemu   string
	dir    string
	runner string // shim/boot/testdata/runner
	probe  string // shim/boot/testdata/probe
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		launch.Fresh()
		var err error
		if qemu, err = exec.LookPath("qemu-aarch64"); err != nil {
			if qemu, err = exec.LookPath("qemu-aarch64-static"); err != nil {
				fmt.Fprintln(os.Stderr, "qemu-aarch64 is missing (package qemu-user)")
				if os.Getenv("CI") != "" {
					return 1
				}
				return 0
			}
		}
		if dir, err = os.MkdirTemp("/var/tmp", "arm64"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		runner, probe = filepath.Join(dir, "runner"), filepath.Join(dir, "probe")
		flags, err := ldflags()
		if err := errors.Join(err, os.Chmod(dir, 0o755), build(runner, "runner", "-s -w "+flags), build(probe, "probe", "")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// ldflags returns the flags of a shim, as make would expand them.
func ldflags() (string, error) {
	text, err := os.ReadFile("../../shim/boot/ldflags.mk")
	if err != nil {
		return "", err
	}
	marker := regexp.MustCompile(`0x[0-9a-f]{40}`).FindString(string(text))
	return fmt.Sprintf("-E %s -B %s", boot.EntrySymbol, marker), nil
}

func build(out, name, flags string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", flags, "-o", out, "../../shim/boot/testdata/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=arm64")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, text)
	}
	return nil
}

// recorded returns a runner with a record.
func recorded(t *testing.T, r record.Record) string {
	t.Helper()
	shim, err := os.ReadFile(runner)
	if err != nil {
		t.Fatal(err)
	}
	if shim, err = record.Patch(shim, r); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "shim")
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(file, shim, 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// run runs a shell script in which $qemu and $shim stand for the emulator and a
// shim. The environment is empty but for these and env.
func run(t *testing.T, shim, script string, env ...string) (stdout, stderr string, exit int) {
	t.Helper()
	cmd := exec.Command("/bin/bash", "-c", script)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin", "qemu=" + qemu, "shim=" + shim, "runner=" + runner, "probe=" + probe}, env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exitErr *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exitErr) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestStart(t *testing.T) {
	t.Parallel()
	out, errs, exit := run(t, runner, `BOOT_TEST_STEP=describe exec -a name $qemu $shim a "" "b c" 2>&1`)
	if exit != 0 || !strings.HasPrefix(out, fmt.Sprintf(`argv=[%q "a" "" "b c"] execfn=%q closed=[false false false]`, runner, runner)) {
		t.Errorf("%d: %s%s", exit, out, errs)
	}
}

func TestEnvironmentIsExact(t *testing.T) {
	t.Parallel()
	const want = "GOMEMLIMIT=foo\x00GODEBUG=inittrace=1\x00A=1\x00" // qemu-user reverses the order
	out, errs, exit := run(t, runner, `exec env -i A=1 GODEBUG=inittrace=1 BOOT_TEST_TARGET=/bin/cat GOMEMLIMIT=foo $qemu $shim /proc/self/environ`)
	if exit != 0 || out != want || errs != "" {
		t.Errorf("%d: %q %s", exit, out, errs)
	}
}

func TestManyEnvironmentSizes(t *testing.T) {
	t.Parallel()
	shim := recorded(t, record.Record{Real: "/bin/true"})
	for n := range 16 {
		env := strings.Repeat("V=1 ", n)
		for _, target := range []string{shim, runner} {
			if out, errs, exit := run(t, target, `exec env -i `+env+` BOOT_TEST_TARGET=/bin/true $qemu $shim x`); exit != 0 || out+errs != "" {
				t.Errorf("%d entries, %s: %d: %s%s", n, target, exit, out, errs)
			}
		}
	}
}

func TestSignalStateIsExact(t *testing.T) {
	t.Parallel()
	const script = `trap '' TERM PIPE INT QUIT CHLD USR1; exec $qemu $shim /proc/self/status`
	out, errs, exit := run(t, runner, script, "BOOT_TEST_TARGET=/bin/cat")
	if want := "SigIgn:\t0000000000015206\n"; exit != 0 || !strings.Contains(out, want) || !strings.Contains(out, "SigBlk:\t0000000000000000\n") {
		t.Errorf("%d: %s%s", exit, out, errs)
	}
}

// With many threads and collections, nothing may be left pending.
func TestNoSignalOfTheRuntimeIsLeft(t *testing.T) {
	t.Parallel()
	out, errs, exit := run(t, runner, `exec $qemu $shim /proc/self/status`, "BOOT_TEST_TARGET=/bin/cat", "BOOT_TEST_STEP=busy")
	if exit != 0 || !strings.Contains(out, "ShdPnd:\t0000000000000000\n") || !strings.Contains(out, "SigPnd:\t0000000000000000\n") {
		t.Errorf("%d: %s%s", exit, out, errs)
	}
}

func TestClosedDescriptorsStayClosed(t *testing.T) {
	t.Parallel()
	const inner = `for i in 0 1 2; do [ -h /proc/$$/fd/$i ] && echo -n $i >&3; done; true`
	for _, test := range []struct{ redirect, want string }{
		{"", "012"}, {"<&-", "12"}, {"<&- >&-", "2"}, {"<&- >&- 2>&-", ""}, {">&- 2>&-", "0"},
	} {
		out, errs, exit := run(t, runner, `exec 3>&1; $qemu $shim -c "$inner" `+test.redirect, "BOOT_TEST_TARGET=/bin/sh", "inner="+inner)
		if exit != 0 || out != test.want {
			t.Errorf("%s: %d: %q %s", test.redirect, exit, out, errs)
		}
	}
}

func TestPassThrough(t *testing.T) {
	t.Parallel()
	shim := recorded(t, record.Record{Real: "/bin/cat"})
	out, errs, exit := run(t, shim, `exec $qemu $shim /proc/self/cmdline /proc/self/comm`)
	if want := shim + "\x00/proc/self/cmdline\x00/proc/self/comm\x00cat\n"; exit != 0 || out != want {
		t.Errorf("%d: %q %s", exit, out, errs)
	}
	for name, script := range map[string]string{
		"a policy":      `SANDBOX_EXEC_SHIM_POLICY= exec $qemu $shim /proc/self/cmdline`,
		"a missing one": `exec $qemu $missing /proc/self/cmdline`,
		"a shim":        `exec $qemu $loop /proc/self/cmdline`,
	} {
		_, errs, exit := run(t, shim, script,
			"missing="+recorded(t, record.Record{Real: "/sys/nowhere"}), "loop="+recorded(t, record.Record{Real: runner}))
		if exit != 125 || !strings.HasPrefix(errs, "runner: exec ") {
			t.Errorf("%s: %d %s", name, exit, errs)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	if out, errs, exit := run(t, runner, `exec $qemu $shim`, "BOOT_TEST_STEP=panic"); exit != 125 || out != "recovered\n" {
		t.Errorf("nil pointer: %d: %s%s", exit, out, errs)
	}
	out, errs, exit := run(t, runner, `trap '' TERM; exec $qemu $shim /proc/self/status`, "BOOT_TEST_TARGET=/bin/cat", "BOOT_TEST_STEP=retry")
	if exit != 0 || !strings.Contains(out, "SigIgn:\t0000000000004000\n") {
		t.Errorf("after a failed execve: %d: %s%s", exit, out, errs)
	}
}

// From one arm64 program to another: a user namespace has a binfmt_misc of its
// own from Linux 6.7.
func TestPassThroughToArm64(t *testing.T) {
	if runtime.GOARCH == "arm64" {
		t.Skip("there is nothing to emulate")
	}
	t.Parallel()
	shim := recorded(t, record.Record{Real: probe})
	// The kernel gives the emulator the descriptor (F) and argv[0] (P).
	const setup = `mount -t binfmt_misc none /proc/sys/fs/binfmt_misc &&
		printf '%s' ':arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:'$qemu':F' \
		>/proc/sys/fs/binfmt_misc/register || exit 77; `
	out, errs, exit := run(t, shim, `exec unshare -Urm /bin/bash -c "$inner"`, "inner="+setup+`exec $shim`)
	if exit == 77 || strings.Contains(errs, "unshare") {
		const why = "no binfmt_misc in a user namespace: "
		if os.Getenv("CI") != "" {
			t.Fatal(why, errs)
		}
		t.Skip(why, errs)
	}
	if exit != 0 || !strings.HasPrefix(out, "deathsig=0 ") {
		t.Errorf("pass-through: %d: %q %s", exit, out, errs)
	}
	out, errs, exit = run(t, runner, `exec unshare -Urm /bin/bash -c "$inner"`, "inner="+setup+`BOOT_TEST_TARGET=$probe exec $shim`)
	if exit != 0 || !strings.HasPrefix(out, "deathsig=0 ") {
		t.Errorf("through the runtime: %d: %q %s", exit, out, errs)
	}
}
