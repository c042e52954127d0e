package shim

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/output"
)

// patience is how long a launch may plan before it says what it waits for.
const patience = 10 * time.Second

// A watchedStep speaks up for a launch that hangs, in a dead network mount for
// example. Signals are blocked during a launch so that they hit the program;
// from then on they are let through again, and one that the caller did not
// block or ignore ends the launch.
type watchedStep struct {
	now   atomic.Pointer[string]
	timer *time.Timer
}

// is names the step that begins.
func (w *watchedStep) is(what string) { w.now.Store(&what) }

func (w *watchedStep) watch(c *Call, program string) error {
	if err := twoDescriptors(); err != nil {
		return err
	}
	w.is("reading the policy")
	w.timer = time.AfterFunc(patience, func() {
		output.Say(output.Name(program), "still waiting", *w.now.Load())
		// The mask belongs to a thread; this one takes the signals from now on.
		runtime.LockOSThread()
		c.Unblock()
		select {}
	})
	return nil
}

// twoDescriptors asks for what the runtime's first timer takes. Where it does not
// get them it ends the process with a trace.
func twoDescriptors() error {
	for range 2 {
		fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("two more are needed: %w", err)
		}
		defer unix.Close(fd)
	}
	return nil
}

func (w *watchedStep) done() { w.timer.Stop() }
