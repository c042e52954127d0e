//go:build linux && (amd64 || arm64)

package boot_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// held is a runner that waits before its execve.
type held struct {
	*exec.Cmd
	release     io.Closer
	out, errOut bytes.Buffer
}

// hold starts a state through the runner with a step that waits, and returns
// when it does.
func hold(t *testing.T, s state, step string) *held {
	t.Helper()
	h := &held{Cmd: command(t, throughRuntime(s, step))}
	h.Stdout, h.Stderr = &h.out, &h.errOut
	readyRead, readyWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	goRead, goWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	h.ExtraFiles = []*os.File{readyWrite, goRead}
	h.release = goWrite
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	readyWrite.Close()
	goRead.Close()
	if _, err := readyRead.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the runner did not wait: %v; %s", err, h.errOut.String())
	}
	readyRead.Close()
	return h
}

func (h *held) finish(t *testing.T) result {
	t.Helper()
	h.release.Close()
	var exit *exec.ExitError
	if err := h.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome(h.Cmd, h.out.String(), h.errOut.String())
}

// duringLaunch are signals of every kind: those that the runtime handles, those
// that its threads unblock, real-time ones and those ignored by default.
var duringLaunch = []syscall.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGUSR1,
	syscall.SIGUSR2, syscall.SIGPIPE, syscall.SIGALRM, syscall.SIGTERM, syscall.SIGSTKFLT, syscall.SIGCHLD, syscall.SIGCONT,
	syscall.SIGURG, syscall.SIGXCPU, syscall.SIGXFSZ, syscall.SIGVTALRM, syscall.SIGPROF, syscall.SIGWINCH, syscall.SIGIO,
	syscall.SIGPWR, syscall.SIGSYS, 32, 33, 34, 35, 40, 64,
	syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE,
}

// faults are those of duringLaunch that the runtime keeps by default.
const faults = 1<<(syscall.SIGSEGV-1) | 1<<(syscall.SIGBUS-1) | 1<<(syscall.SIGFPE-1)

// byDefaultIgnored are those of duringLaunch that do nothing by default.
const byDefaultIgnored = 1<<(syscall.SIGCHLD-1) | 1<<(syscall.SIGCONT-1) | 1<<(syscall.SIGURG-1) | 1<<(syscall.SIGWINCH-1)

func TestSignalDuringLaunch(t *testing.T) {
	t.Parallel()
	status := state{Path: "/bin/cat", Argv: byteSlices("cat", "/proc/self/status")}
	for _, step := range []string{"hold", "threads"} {
		for _, sig := range duringLaunch {
			t.Run(fmt.Sprintf("%s/%d", step, sig), func(t *testing.T) {
				t.Parallel()
				s := status
				h := hold(t, s, step)
				send(t, h, sig)
				got := h.finish(t)
				switch {
				case bit(sig)&faults != 0:
					// The runtime's, as docs/transparency.md says.
					if got.Exit != 2 || got.Stdout != "" {
						t.Errorf("by default: %+v", got)
					}
				case bit(sig)&byDefaultIgnored == 0:
					if got.Signal != sig || got.Stderr != "" || got.Stdout != "" {
						t.Errorf("by default: %+v", got)
					}
				case got.Exit != 0 || pending(t, got.Stdout) != 0:
					t.Errorf("by default: %+v", got)
				}

				s.Ignore = []int{int(sig)}
				h = hold(t, s, step)
				send(t, h, sig)
				got = h.finish(t)
				if got.Exit != 0 || pending(t, got.Stdout) != 0 || signals(t, got.Stdout, "SigIgn") != bit(sig) {
					t.Errorf("ignored: %+v", got)
				}

				s.Ignore, s.Block = nil, []int{int(sig)}
				h = hold(t, s, step)
				send(t, h, sig)
				got = h.finish(t)
				if got.Exit != 0 || pending(t, got.Stdout) != bit(sig) || signals(t, got.Stdout, "SigBlk") != bit(sig) {
					t.Errorf("blocked: %+v", got)
				}
				// For the process, so that any of the program's threads can take it.
				if signals(t, got.Stdout, "ShdPnd") != bit(sig) {
					t.Errorf("blocked: pending for one thread only")
				}

				s.Ignore = s.Block
				h = hold(t, s, step)
				send(t, h, sig)
				got = h.finish(t)
				if got.Exit != 0 || pending(t, got.Stdout) != bit(sig) || signals(t, got.Stdout, "SigIgn") != bit(sig) {
					t.Errorf("ignored and blocked: %+v", got)
				}
			})
		}
	}
}

func send(t *testing.T, h *held, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(h.Process.Pid, sig); err != nil {
		t.Fatal(err)
	}
}

// threadMasks returns the blocked signals of each thread of a process.
func threadMasks(t *testing.T, pid int) map[string]uint64 {
	t.Helper()
	masks := map[string]uint64{}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		masks[filepath.Base(filepath.Dir(file))] = signals(t, string(text), "SigBlk")
	}
	return masks
}

func pending(t *testing.T, status string) uint64 {
	return signals(t, status, "SigPnd") | signals(t, status, "ShdPnd")
}

func TestManySignalsDuringLaunch(t *testing.T) {
	t.Parallel()
	s := state{Path: "/bin/cat", Argv: byteSlices("cat", "/proc/self/status")}
	var want uint64
	for _, sig := range duringLaunch {
		s.Block = append(s.Block, int(sig))
		want |= bit(sig)
	}
	h := hold(t, s, "threads")
	for range 20 {
		for _, sig := range duringLaunch {
			send(t, h, sig)
		}
	}
	got := h.finish(t)
	if got.Exit != 0 || signals(t, got.Stdout, "ShdPnd") != want {
		t.Errorf("pending %x, want %x; %+v", signals(t, got.Stdout, "ShdPnd"), want, got)
	}
}

// The program sees who sent a signal that arrived during the launch.
func TestSignalKeepsItsSender(t *testing.T) {
	// The interpreter itself: a version manager's script has children.
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		unavailable(t, "python3 is needed to read a siginfo")
	}
	python := strings.TrimSpace(string(out))
	t.Parallel()
	const script = `import signal
for s in (signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1):
    i = signal.sigtimedwait([s], 0)
    print(i.si_signo, i.si_code, i.si_pid, i.si_uid)`
	h := hold(t, state{
		Path: python, Argv: byteSlices("python3", "-c", script), Env: byteSlices("PATH="+os.Getenv("PATH"), "HOME="+os.Getenv("HOME")),
		Block: []int{int(syscall.SIGTERM), int(syscall.SIGCHLD), int(syscall.SIGUSR1)},
	}, "threads")
	want := ""
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCHLD, syscall.SIGUSR1} {
		send(t, h, sig)
		want += fmt.Sprintf("%d %d %d %d\n", sig, 0, os.Getpid(), os.Getuid())
	}
	if got := h.finish(t); got.Stdout != want {
		t.Errorf("got %+v, want %q", got, want)
	}
}

func TestLongLaunchCanBeInterrupted(t *testing.T) {
	t.Parallel()
	s := state{
		Path: "/bin/true", Argv: byteSlices("true"),
		Block: []int{int(syscall.SIGUSR2)}, Ignore: []int{int(syscall.SIGALRM)},
	}
	for _, step := range []string{"interruptible", "hung"} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGQUIT, 40} {
			h := hold(t, s, step)
			send(t, h, sig)
			// It ends although nothing lets it go on.
			var exit *exec.ExitError
			if err := h.Wait(); !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got := outcome(h.Cmd, h.out.String(), h.errOut.String()); got.Signal != sig {
				t.Errorf("%s: %v: %+v", step, sig, got)
			}
			h.release.Close()
		}
		for _, sig := range []syscall.Signal{syscall.SIGUSR2, syscall.SIGALRM} {
			h := hold(t, s, step)
			send(t, h, sig)
			if got := h.finish(t); got.Exit != 0 {
				t.Errorf("%s: %v, which the caller blocks or ignores: %+v", step, sig, got)
			}
		}
	}
}

// A signal at any moment of the launch must have the effect that it has on the
// program. The moment is random, and no moment may differ.
func TestSignalAtAnyMoment(t *testing.T) {
	t.Parallel()
	rounds := 60
	if os.Getenv("BOOT_TEST_ROUNDS") != "" {
		if _, err := fmt.Sscan(os.Getenv("BOOT_TEST_ROUNDS"), &rounds); err != nil {
			t.Fatal(err)
		}
	}
	// The program waits for a line, so that the signal precedes its end.
	program := state{Path: "/bin/sh", Argv: byteSlices("sh", "-c", "read x; exec cat /proc/self/status")}
	for _, test := range []struct {
		name          string
		sig           syscall.Signal
		ignore, block bool
	}{
		{"TERM blocked", syscall.SIGTERM, false, true},
		{"QUIT blocked", syscall.SIGQUIT, false, true},
		{"CHLD blocked", syscall.SIGCHLD, false, true},
		{"URG blocked", syscall.SIGURG, false, true},
		{"USR1 blocked", syscall.SIGUSR1, false, true},
		{"TERM ignored", syscall.SIGTERM, true, false},
		{"QUIT ignored", syscall.SIGQUIT, true, false},
		{"TERM", syscall.SIGTERM, false, false},
		{"QUIT", syscall.SIGQUIT, false, false},
		{"PIPE", syscall.SIGPIPE, false, false},
		{"40", 40, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := program
			if test.ignore {
				s.Ignore = []int{int(test.sig)}
			}
			if test.block {
				s.Block = []int{int(test.sig)}
			}
			cmd := command(t, throughRuntime(s, ""))
			random := rand.New(rand.NewPCG(3, 4))
			for range rounds {
				got := signalAfter(t, cmd, test.sig, time.Duration(random.IntN(1500))*time.Microsecond)
				switch {
				case test.block:
					if got.Exit != 0 || pending(t, got.Stdout) != bit(test.sig) {
						t.Fatalf("%+v", got)
					}
				case test.ignore:
					if got.Exit != 0 || pending(t, got.Stdout) != 0 {
						t.Fatalf("%+v", got)
					}
				default:
					if got.Signal != test.sig || got.Stderr != "" {
						t.Fatalf("%+v", got)
					}
				}
			}
		})
	}
}

// signalAfter starts the command's state and sends the signal some time after
// the execve of the runner.
func signalAfter(t *testing.T, cmd *exec.Cmd, sig syscall.Signal, delay time.Duration) result {
	t.Helper()
	c := exec.Command(cmd.Path, cmd.Args[1:]...)
	c.Env = cmd.Env
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// The launcher is not the subject: wait until it has become the runner. A
	// wait for an event that has no notification, not for time to pass.
	for exe := launcher; exe == launcher; {
		if exe, err = os.Readlink(fmt.Sprintf("/proc/%d/exe", c.Process.Pid)); err != nil {
			break
		}
	}
	for end := time.Now().Add(delay); time.Now().Before(end); {
	}
	syscall.Kill(c.Process.Pid, sig)
	io.WriteString(stdin, "\n")
	stdin.Close()
	var exit *exec.ExitError
	if err := c.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome(c, out.String(), errs.String())
}
