package transparency

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/transparency/bare"
)

// launches is how often each signal is sent, and how often the other counted
// tests launch.
const launches = 1000

// duringLaunch are the signals sent at a random moment of a launch.
var duringLaunch = []syscall.Signal{
	syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGALRM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGCHLD,
	40, // SIGRTMIN+6
}

// A treatment is what the caller does about the signal.
type treatment string

const (
	byDefault treatment = "default"
	ignored   treatment = "ignored"
	blocked   treatment = "blocked"
)

// A waiting is a launch of a program that waits for the end of its input.
type waiting struct {
	pid    int
	in     *os.File // closing it ends the program
	out    *os.File // what the program says
	status syscall.WaitStatus
}

// start starts a program with pipes for its input and output, and more files
// behind them.
func start(path string, argv, env []string, sys *syscall.SysProcAttr, more ...*os.File) (*waiting, error) {
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer inRead.Close()
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer outWrite.Close()
	fds := []uintptr{inRead.Fd(), outWrite.Fd(), 2}
	for _, f := range more {
		fds = append(fds, f.Fd())
	}
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Dir: "/", Env: env, Files: fds, Sys: sys})
	if err != nil {
		return nil, err
	}
	return &waiting{pid: pid, in: inWrite, out: outRead}, nil
}

// startState starts a state and returns when the caller has called execve.
func startState(path string, argv []string) (*waiting, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	// The caller's copy is descriptor 3, and the execve closes it.
	p, err := start(path, argv, []string{}, nil, w)
	w.Close()
	if err != nil {
		return nil, err
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, fmt.Errorf("wait for execve: %w", err)
	}
	return p, nil
}

// finish lets the program end and returns what it said.
func (w *waiting) finish() (string, error) {
	w.in.Close()
	said, err := io.ReadAll(w.out)
	w.out.Close()
	if err != nil {
		return "", err
	}
	for {
		if _, err = syscall.Wait4(w.pid, &w.status, 0, nil); !errors.Is(err, syscall.EINTR) {
			return string(said), err
		}
	}
}

// A signal that arrives at any moment of a launch does what it does to a program
// that was started directly: it ends it, or nothing if it is ignored, or waits
// if it is blocked.
func TestSignalDuringLaunchArrives(t *testing.T) {
	launch.Need(t, launch.Landlock)
	s := newStage(t, launch.Current())
	waiter := bare.Waiter.Install(t, filepath.Join(s.dir, "real"), "waiter")
	shim := launch.Install(t, filepath.Join(s.dir, "recorded"), "waiter", launch.Record{Real: waiter})
	for _, w := range []struct {
		name, path string
		env        []string
		count      int
	}{
		{"direct", waiter, nil, launches / 10},
		{"pass-through", shim, nil, launches},
		{"policy", shim, []string{policyVariable + "=" + s.policy(t, policyRestricted)}, launches},
	} {
		t.Run(w.name, func(t *testing.T) {
			for _, sig := range duringLaunch {
				t.Run(fmt.Sprint(int(sig)), func(t *testing.T) {
					t.Parallel()
					state := bare.NewState(w.path, "waiter")
					state.Env, state.CloseOnExec = w.env, 3
					early := signalLaunches(t, state, sig, w.count)
					t.Logf("%d of %d signals came before the program ran", early, w.count)
					if w.path == shim && early < w.count/50 {
						t.Errorf("only %d of %d signals came during the launch: this is no test", early, w.count)
					}
				})
			}
		})
	}
}

// signalLaunches makes launches, half of them with the signal's default, and
// sends each the signal. It returns how many were still launches then.
func signalLaunches(t *testing.T, state bare.State, sig syscall.Signal, count int) (early int) {
	t.Helper()
	r := random(t)
	caller := bare.NewCaller(t, launch.Dir(t))
	// The moments are spread evenly over a span that half of the launches
	// need, whatever else this machine does.
	const longest = float64(30 * time.Millisecond)
	span := float64(time.Millisecond)
	for done := 0; done < count; {
		how := []treatment{byDefault, ignored, byDefault, blocked}[done*4/count]
		state.Ignore, state.Block = 0, 0
		switch how {
		case ignored:
			state.Ignore = bare.Set(sig)
		case blocked:
			state.Block = bare.Set(sig)
		}
		path, argv := caller.Command(t, state)
		for range count / 4 {
			done++
			w, err := startState(path, argv)
			if err != nil {
				t.Fatal(err)
			}
			// A random moment, not a synchronisation.
			moment := unix.NsecToTimespec(int64(r.Float64() * span))
			unix.Nanosleep(&moment, nil)
			step := 1.02
			if isRunning(w) {
				step = 0.98
			} else {
				early++
			}
			span = min(span*step, longest)
			if err := syscall.Kill(w.pid, sig); err != nil {
				t.Fatal(err)
			}
			said, err := w.finish()
			if err != nil {
				t.Fatal(err)
			}
			if err := judge(w.status, said, sig, how); err != nil {
				t.Errorf("%s: %v", how, err)
			}
		}
	}
	return early
}

// isRunning reports whether the program has said that it runs.
func isRunning(w *waiting) bool {
	n, err := unix.IoctlGetInt(int(w.out.Fd()), unix.TIOCINQ)
	return err == nil && n > 0
}

// judge says what a direct start could not have ended like.
func judge(status syscall.WaitStatus, said string, sig syscall.Signal, how treatment) error {
	kills := how == byDefault && sig != syscall.SIGCHLD
	if kills {
		if !status.Signaled() || status.Signal() != sig {
			return fmt.Errorf("status %#x, said %q: the signal must kill", int(status), said)
		}
		return nil
	}
	if !status.Exited() || status.ExitStatus() != bare.WaiterCode {
		return fmt.Errorf("status %#x, said %q: the signal must not kill", int(status), said)
	}
	want := uint64(0)
	if how == blocked {
		want = uint64(bare.Set(sig))
	}
	if !strings.HasSuffix(said, fmt.Sprintf("%016x", want)) {
		return fmt.Errorf("said %q: pending should be %#x", said, want)
	}
	return nil
}

// PR_SET_PDEATHSIG of the parent reaches the program in every launch.
func TestDeathSignalIsKept(t *testing.T) {
	launch.Need(t, launch.Landlock)
	s := newStage(t, launch.Current())
	waiter := bare.Waiter.Install(t, filepath.Join(s.dir, "real"), "waiter")
	shim := launch.Install(t, filepath.Join(s.dir, "recorded"), "waiter", launch.Record{Real: waiter})
	// The signal is sent when the thread ends that forked.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, w := range []struct {
		name, path string
		env        []string
		set        syscall.Signal
		count      int
	}{
		{"direct, none", waiter, []string{}, 0, 3},
		{"direct", waiter, []string{}, syscall.SIGUSR2, 3},
		{"pass-through", shim, []string{}, syscall.SIGUSR2, launches},
		{"runtime", shim, []string{policyVariable + "="}, syscall.SIGUSR2, launches},
		{"policy", shim, []string{policyVariable + "=" + s.policy(t, policyRestricted)}, syscall.SIGUSR2, launches},
	} {
		kept := 0
		for range w.count {
			p, err := start(w.path, []string{"waiter"}, w.env, &syscall.SysProcAttr{Pdeathsig: w.set})
			if err != nil {
				t.Fatal(err)
			}
			said, err := p.finish()
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(said, fmt.Sprintf(".%016x", int(w.set))) && p.status.ExitStatus() == bare.WaiterCode {
				kept++
			}
		}
		if kept != w.count {
			t.Errorf("%s: kept in %d of %d launches", w.name, kept, w.count)
		}
	}
}
