package names

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A traced launch counts its execs: the first one is that of the shim.
type traced struct {
	path      string
	argv, env []string
	dir       string
	user      launch.User
	stderr    *os.File
	// atExec is called after each execve, before the first instruction.
	atExec func(pid int) error
}

// maxExecs ends a launch that does not end by itself.
const maxExecs = 300

// run returns the number of successful execve calls and how the launch ended.
func (c traced) run(t *testing.T) (execs int, status syscall.WaitStatus) {
	t.Helper()
	// All of ptrace(2) must come from the thread that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	sys := &syscall.SysProcAttr{Ptrace: true}
	if c.user.UID != os.Geteuid() {
		sys.Credential = &syscall.Credential{Uid: uint32(c.user.UID), Gid: uint32(c.user.GID)}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	pid, err := syscall.ForkExec(c.path, c.argv, &syscall.ProcAttr{
		Dir: c.dir, Env: c.env, Files: []uintptr{null.Fd(), null.Fd(), c.stderr.Fd()}, Sys: sys,
	})
	if err != nil {
		t.Fatalf("start %q: %v", c.path, err)
	}
	wait := func() {
		t.Helper()
		for {
			if _, err := syscall.Wait4(pid, &status, unix.WALL, nil); err == nil {
				return
			} else if !errors.Is(err, syscall.EINTR) {
				t.Fatal(err)
			}
		}
	}
	wait()
	if !status.Stopped() {
		t.Fatalf("%q did not stop at its first exec: %#x", c.path, int(status))
	}
	if err := syscall.PtraceSetOptions(pid, unix.PTRACE_O_TRACEEXEC|unix.PTRACE_O_EXITKILL); err != nil {
		t.Fatal(err)
	}
	for signal := 0; ; {
		if signal == 0 {
			if execs++; c.atExec != nil {
				if err := c.atExec(pid); err != nil {
					t.Fatal(err)
				}
			}
		}
		if execs > maxExecs {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			for !status.Signaled() && !status.Exited() {
				wait()
			}
			return execs, status
		}
		for {
			if signal == int(syscall.SIGTRAP) {
				signal = 0
			}
			if err := syscall.PtraceCont(pid, signal); err != nil {
				t.Fatal(fmt.Errorf("continue: %w", err))
			}
			wait()
			if !status.Stopped() {
				return execs, status
			}
			if status.TrapCause() == unix.PTRACE_EVENT_EXEC {
				signal = 0
				break
			}
			signal = int(status.StopSignal())
		}
	}
}
