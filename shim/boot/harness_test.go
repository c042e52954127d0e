//go:build linux && (amd64 || arm64)

package boot_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// Programs that the tests build. They stand where uid 65534 can read them.
var (
	dir      string
	launcher string // testdata/launcher
	runner   string // testdata/runner with the entry point
	plain    string // testdata/runner without it
	probe    string // testdata/probe
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		launch.Fresh()
		var err error
		if dir, err = os.MkdirTemp("/var/tmp", "boot"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		for name, path := range map[string]*string{"launcher": &launcher, "runner": &runner, "plain": &plain, "probe": &probe} {
			*path = filepath.Join(dir, name)
		}
		if err := errors.Join(os.Chmod(dir, 0o755), build(launcher, "launcher", ""), build(probe, "probe", ""),
			build(runner, "runner", "-s -w "+ldflags()), build(plain, "runner", "")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

func build(out, name, flags string, env ...string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", flags, "-o", out, "./testdata/"+name)
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, text)
	}
	return nil
}

// ldflags returns BOOT_LDFLAGS as make would expand it.
func ldflags() string {
	text, err := os.ReadFile("ldflags.mk")
	if err != nil {
		panic(err)
	}
	vars := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)\s*:=\s*(.*)$`).FindAllStringSubmatch(string(text), -1) {
		vars[m[1]] = regexp.MustCompile(`\$\((\w+)\)`).ReplaceAllStringFunc(m[2], func(s string) string {
			return vars[strings.Trim(s, "$()")]
		})
	}
	return vars["BOOT_LDFLAGS"]
}

// state is what testdata/launcher reads.
type state struct {
	Path      string
	Argv, Env [][]byte
	Ignore    []int
	Block     []int
	Close     []int
	Limits    map[int][2]uint64
	DeathSig  int
	UID       int
}

func byteSlices(list ...string) [][]byte {
	b := make([][]byte, len(list))
	for i, s := range list {
		b[i] = []byte(s)
	}
	return b
}

// command returns the launcher's command for a state.
func command(t testing.TB, s state) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(launcher, file)
	// The launcher's own runtime must leave no preemption signal pending.
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
	return cmd
}

// result is how a process ended.
type result struct {
	Stdout, Stderr string
	Exit           int // -1 if a signal ended it
	Signal         syscall.Signal
}

func finish(t testing.TB, cmd *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &errs
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome(cmd, out.String(), errs.String())
}

func outcome(cmd *exec.Cmd, out, errs string) result {
	r := result{Stdout: out, Stderr: errs, Exit: cmd.ProcessState.ExitCode()}
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		r.Signal = ws.Signal()
	}
	return r
}

// A way is how a program is reached.
type way struct {
	name string
	// through changes a state that starts the program directly.
	through func(t testing.TB, s state) state
}

// ways are the two ways through a shim. Each must give what the direct start
// gives.
func ways() []way {
	return []way{
		{"runtime", func(t testing.TB, s state) state { return throughRuntime(s, "") }},
		{"pass-through", func(t testing.TB, s state) state {
			s.Path = recorded(t, record.Record{Real: s.Path})
			return s
		}},
	}
}

// throughRuntime makes the runner start the program of s after a step.
func throughRuntime(s state, step string) state {
	// In the middle and at the end, so that removal is tried too.
	env := append([][]byte{}, s.Env[:len(s.Env)/2]...)
	env = append(env, []byte("BOOT_TEST_TARGET="+s.Path))
	env = append(env, s.Env[len(s.Env)/2:]...)
	if step != "" {
		env = append(env, []byte("BOOT_TEST_STEP="+step))
	}
	s.Env, s.Path = env, runner
	return s
}

// recorded returns a runner with a record. If the pass-through does not happen,
// the runner has no target and fails.
func recorded(t testing.TB, r record.Record) string {
	t.Helper()
	shim, err := os.ReadFile(runner)
	if err != nil {
		t.Fatal(err)
	}
	shim, err = record.Patch(shim, r)
	if err != nil {
		t.Fatal(err)
	}
	tmp, err := os.MkdirTemp(dir, "shim")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(tmp) })
	file := filepath.Join(tmp, "shim")
	if err := os.Chmod(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	writeExecutable(t, file, shim)
	return file
}

// writeExecutable writes a file that is to be run. No other test may fork
// meanwhile: its child would hold the file open for writing, which makes an
// execve of it fail (ETXTBSY).
func writeExecutable(t testing.TB, file string, text []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(file, text, 0o755); err != nil {
		t.Fatal(err)
	}
}

// field returns a line of /proc/self/status, such as SigIgn.
func field(t testing.TB, status, name string) string {
	t.Helper()
	for line := range strings.Lines(status) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	t.Fatalf("no %s in %q", name, status)
	return ""
}

// signals returns a set of /proc/self/status as bits.
func signals(t testing.TB, status, name string) uint64 {
	t.Helper()
	v, err := strconv.ParseUint(field(t, status, name), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func bit(s syscall.Signal) uint64 { return 1 << (s - 1) }

// unavailable ends a test that this machine cannot run.
func unavailable(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
