package transparency

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/transparency/bare"
)

// The shim, started from many threads at once and with many of its own, never
// starts an unconfined program.
func TestCase21_NoThreadStartsUnconfined(t *testing.T) {
	launch.Need(t, launch.Landlock)
	const threads = 10
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		s := newStage(t, u)
		opener := bare.Opener.Install(t, filepath.Join(s.dir, "real"), "opener")
		shim := launch.Install(t, filepath.Join(s.dir, "recorded"), "opener", launch.Record{Real: opener})
		var sys syscall.SysProcAttr
		if u.UID != os.Geteuid() {
			sys.Credential = &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}
		}
		policy := policyVariable + "=" + s.policy(t, policyRestricted)
		run := func(path, env string) (syscall.WaitStatus, error) {
			// GOMAXPROCS is not the shim's: it has as many threads as it likes.
			pid, err := syscall.ForkExec(path, []string{"opener", s.hidden}, &syscall.ProcAttr{
				Dir: "/", Env: []string{"GOMAXPROCS=8", env}, Files: []uintptr{0, 1, 2}, Sys: &sys,
			})
			if err != nil {
				return 0, err
			}
			var status syscall.WaitStatus
			for {
				if _, err := syscall.Wait4(pid, &status, 0, nil); !errors.Is(err, syscall.EINTR) {
					return status, err
				}
			}
		}
		for name, path := range map[string]string{"directly": opener, "through the shim without a policy": shim} {
			if status, err := run(path, "A=1"); err != nil || status.ExitStatus() != 0 {
				t.Fatalf("%s, the file cannot be opened: %v, %#x", name, err, int(status))
			}
		}

		var started, denied atomic.Int64
		var wait sync.WaitGroup
		for range threads {
			wait.Go(func() {
				runtime.LockOSThread()
				for started.Add(1) <= launches {
					status, err := run(shim, policy)
					if err != nil {
						t.Error(err)
						return
					}
					if status.Exited() && status.ExitStatus() == int(syscall.EACCES) {
						denied.Add(1)
					} else {
						t.Errorf("a launch ended with status %#x, want EACCES", int(status))
					}
				}
			})
		}
		wait.Wait()
		if n := denied.Load(); n != launches {
			t.Errorf("denied in %d of %d launches", n, launches)
		}
	})
}
