//go:build linux && (amd64 || arm64)

package boot_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/boot"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// Where the runtime cannot start, the pass-through does.
func TestPassThroughWithoutTheRuntime(t *testing.T) {
	t.Parallel()
	const nproc = 6 // RLIMIT_NPROC, which package syscall lacks
	for _, test := range []struct {
		name  string
		limit map[int][2]uint64
		uid   int
		exit  int // where the runtime would have to start
	}{
		{"address space", map[int][2]uint64{syscall.RLIMIT_AS: {500000 << 10, 500000 << 10}}, 0, 125},
		{"hardly any address space", map[int][2]uint64{syscall.RLIMIT_AS: {16 << 20, 16 << 20}}, 0, 125},
		{"data", map[int][2]uint64{syscall.RLIMIT_DATA: {16 << 20, 16 << 20}}, 0, 125},
		{"processes", map[int][2]uint64{nproc: {1, 1}}, 65534, 2},
		{"both", map[int][2]uint64{nproc: {0, 0}, syscall.RLIMIT_AS: {64 << 20, 64 << 20}}, 65534, 125},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.uid != 0 && os.Getuid() != 0 {
				unavailable(t, "another uid needs root")
			}
			s := state{Path: "/bin/cat", Argv: byteSlices("cat", "/proc/self/cmdline"), Limits: test.limit, UID: test.uid}
			want := result{Stdout: "cat\x00/proc/self/cmdline\x00"}
			if got := finish(t, command(t, s)); got != want {
				t.Fatalf("directly: %+v", got)
			}
			through := s
			through.Path = recorded(t, record.Record{Real: s.Path})
			if got := finish(t, command(t, through)); got != want {
				t.Errorf("through the shim: %+v", got)
			}
			// The limit does keep the runtime from starting.
			got := finish(t, command(t, throughRuntime(s, "")))
			if got.Exit != test.exit || got.Stdout != "" {
				t.Errorf("through the runtime: %+v", got)
			}
			if test.exit == 125 && (strings.Count(got.Stderr, "\n") != 1 || !strings.Contains(got.Stderr, "it cannot start")) {
				t.Errorf("through the runtime: %+v", got)
			}
		})
	}
}

// With as much address space as the entry asks for, the runtime does start.
func TestEnoughSpace(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		resource int
		mb       uint64
		want     int
	}{
		{syscall.RLIMIT_AS, 767, 125},
		{syscall.RLIMIT_AS, 768, 0},
		{syscall.RLIMIT_DATA, 63, 125},
		{syscall.RLIMIT_DATA, 64, 0},
	} {
		s := state{
			Path: "/bin/cat", Argv: byteSlices("cat", "/dev/null"),
			Limits: map[int][2]uint64{row.resource: {row.mb << 20, row.mb << 20}},
		}
		for range 10 { // address space is laid out at random
			if got := finish(t, command(t, throughRuntime(s, ""))); got.Exit != row.want {
				t.Fatalf("%+v: %+v", row, got)
			}
		}
	}
}

// Closed descriptors on which nothing can be put end in 125, too.
func TestNothingOnStandardDescriptors(t *testing.T) {
	t.Parallel()
	for _, closed := range [][]int{{0}, {1}, {0, 1, 2}, {2}} {
		s := state{
			Path: "/bin/cat", Argv: byteSlices("cat", "/dev/null"), Close: closed,
			Limits: map[int][2]uint64{syscall.RLIMIT_NOFILE: {0, 0}},
		}
		got := finish(t, command(t, throughRuntime(s, "")))
		said := strings.Count(got.Stderr, "\n") == 1 && strings.Contains(got.Stderr, "nothing on descriptors 0 to 2")
		if got.Exit != 125 || said == slices.Contains(closed, 2) {
			t.Errorf("closed %d: %+v", closed, got)
		}
	}
}

// What makes the entry start the runtime. The runner then says that it has no
// target, so each case tells the two ways apart.
func TestPassThroughDecision(t *testing.T) {
	t.Parallel()
	script := filepath.Join(dir, "decision.sh")
	unreadable := filepath.Join(dir, "unreadable")
	truth, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	writeExecutable(t, script, []byte("#!/bin/sh\nexit 0\n"))
	writeExecutable(t, unreadable, truth)
	if err := os.Chmod(unreadable, 0o111); err != nil {
		t.Fatal(err)
	}
	tiny := filepath.Join(dir, "tiny")
	writeExecutable(t, tiny, []byte("\x7fELF"))
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o755); err != nil {
		t.Fatal(err)
	}

	plainRecord := record.Record{Real: "/bin/true"}
	for _, test := range []struct {
		name   string
		record record.Record
		env    []string
		uid    int
		passes bool
	}{
		{"no policy", plainRecord, nil, 0, true},
		{"no policy as another user", plainRecord, nil, 65534, true},
		{"policy", plainRecord, []string{"A=1", "SANDBOX_EXEC_SHIM_POLICY={}"}, 0, false},
		{"blank policy", plainRecord, []string{"SANDBOX_EXEC_SHIM_POLICY="}, 0, false},
		{"name without value", plainRecord, []string{"SANDBOX_EXEC_SHIM_POLICY"}, 0, true},
		{"longer name", plainRecord, []string{"SANDBOX_EXEC_SHIM_POLICY_2=x"}, 0, true},
		{"shorter name", plainRecord, []string{"SANDBOX_EXEC_SHIM_POLIC=x"}, 0, true},
		{"another name, set", record.Record{Real: "/bin/true", PolicyEnv: "P"}, []string{"P=x"}, 0, false},
		{"another name, default set", record.Record{Real: "/bin/true", PolicyEnv: "P"}, []string{"SANDBOX_EXEC_SHIM_POLICY=x"}, 0, true},
		{"refuse", record.Record{Real: "/bin/true", OnMissing: record.Refuse}, nil, 0, false},
		{"missing file", record.Record{Real: "/sys/nowhere"}, nil, 0, false},
		{"directory", record.Record{Real: "/bin"}, nil, 0, false},
		{"script", record.Record{Real: script}, nil, 0, false},
		{"unreadable", record.Record{Real: unreadable}, nil, 65534, false},
		{"magic alone", record.Record{Real: tiny}, nil, 0, false},
		{"fifo", record.Record{Real: fifo}, nil, 0, false},
		{"a shim that would pass", record.Record{Real: recorded(t, plainRecord)}, nil, 0, false},
		{"a Go program that is no shim", record.Record{Real: probe}, nil, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.uid != 0 && os.Getuid() != 0 {
				unavailable(t, "another uid needs root")
			}
			got := finish(t, command(t, state{
				Path: recorded(t, test.record), Argv: byteSlices("x"), Env: byteSlices(test.env...), UID: test.uid,
			}))
			if test.passes && got.Exit != 0 || !test.passes && (got.Exit != 125 || !strings.HasPrefix(got.Stderr, "runner: exec ")) {
				t.Errorf("passes should be %v: %+v", test.passes, got)
			}
		})
	}
}

// A descriptor of the entry must not stay, nor take the place of a closed one.
func TestPassThroughFails(t *testing.T) {
	t.Parallel()
	got := finish(t, command(t, state{
		Path: recorded(t, record.Record{Real: "/bin", Argv0: record.Real}), Argv: byteSlices("name", "a"),
		Env: byteSlices("BOOT_TEST_STEP=describe"), Close: []int{0},
	}))
	if want := `argv=["name" "a"]`; !strings.HasPrefix(got.Stdout, want) || !strings.Contains(got.Stdout, "closed=[true false false]") {
		t.Errorf("%+v", got)
	}
}

func TestPassThroughArgv0(t *testing.T) {
	t.Parallel()
	s := state{Path: "/bin/cat", Argv: byteSlices("x", "/proc/self/cmdline")}
	for _, test := range []struct {
		argv0 record.Argv0
		want  string
	}{{record.Keep, "x"}, {record.Real, "/bin/cat"}} {
		through := s
		through.Path = recorded(t, record.Record{Real: s.Path, Argv0: test.argv0})
		if got := finish(t, command(t, through)); got.Stdout != test.want+"\x00/proc/self/cmdline\x00" {
			t.Errorf("argv0 %v: %+v", test.argv0, got)
		}
	}
	// Without arguments, too.
	through := state{Path: recorded(t, record.Record{Real: probe, Argv0: record.Real})}
	if got := finish(t, command(t, through)); got.Exit != 0 || !strings.HasPrefix(got.Stdout, "deathsig=0") {
		t.Errorf("no arguments: %+v", got)
	}
}

func TestPassThroughWithoutProc(t *testing.T) {
	if os.Getuid() != 0 {
		unavailable(t, "chroot needs root")
	}
	t.Parallel()
	root := t.TempDir()
	probeText, err := os.ReadFile(probe)
	if err != nil {
		t.Fatal(err)
	}
	shim, err := os.ReadFile(recorded(t, record.Record{Real: "/real"}))
	if err != nil {
		t.Fatal(err)
	}
	writeExecutable(t, root+"/real", probeText)
	writeExecutable(t, root+"/shim", shim)
	cmd := exec.Command("/shim")
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if got := finish(t, cmd); got.Exit != 0 || !strings.HasPrefix(got.Stdout, "deathsig=0") {
		t.Errorf("%+v", got)
	}
}

// A record that is damaged anywhere is not used before the runtime either.
func TestDamagedRecordIsNotUsed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(recorded(t, record.Record{Real: "/bin/true"}))
	if err != nil {
		t.Fatal(err)
	}
	start := strings.Index(string(text), "/bin/true\x00") - boot.RecordOffStrings
	for off := boot.RecordOffVersion; off < boot.RecordOffStrings+len("/bin/true"); off++ {
		damaged := append([]byte{}, text...)
		damaged[start+off] ^= 0x10
		file := filepath.Join(t.TempDir(), "shim")
		writeExecutable(t, file, damaged)
		if got := finish(t, command(t, state{Path: file, Argv: byteSlices("x")})); got.Exit != 125 {
			t.Errorf("byte %d: %+v", off, got)
		}
		if _, _, err := record.Read(damaged); !errors.Is(err, record.ErrBroken) {
			t.Errorf("byte %d: Read: %v", off, err)
		}
		os.Remove(file)
	}
}

// Ids that differ, or AT_SECURE, are for the runtime to judge.
func TestPassThroughNotForOtherIds(t *testing.T) {
	if os.Getuid() != 0 {
		unavailable(t, "setuid files need root")
	}
	t.Parallel()
	for _, mode := range []os.FileMode{os.ModeSetuid, os.ModeSetgid} {
		file := recorded(t, record.Record{Real: "/bin/true"})
		s := state{Path: file, Argv: byteSlices("x"), UID: 65534}
		if got := finish(t, command(t, s)); got.Exit != 0 {
			t.Fatalf("before chmod: %+v", got)
		}
		if err := os.Chmod(file, 0o755|mode); err != nil {
			t.Fatal(err)
		}
		if got := finish(t, command(t, s)); got.Exit != 125 {
			t.Errorf("%v: %+v", mode, got)
		}
	}
}
