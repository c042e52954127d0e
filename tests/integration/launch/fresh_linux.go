package launch

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Fresh gives this test process the state that its tests expect of their own
// children: no signal is ignored or blocked, whatever nohup(1) or the launcher
// of a CI job left, what was inherited above descriptor 2 is closed on exec, and
// the umask lets other users read what the tests make. The signal mask of a Go
// process belongs to its threads, so a process that inherited anything of it
// starts itself again.
func Fresh() {
	ownDescriptors()
	unix.Umask(0o022)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	again, err := defaultSignals()
	if err == nil && again {
		err = unix.Exec("/proc/self/exe", os.Args, os.Environ())
	}
	if err != nil {
		panic(fmt.Errorf("a fresh state for the tests: %w", err))
	}
}

// sigaction is the kernel's struct sigaction, on both architectures. The
// runtime's own calls do not reach all signals, or install handlers.
type sigaction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

const sigIgn = 1

func (a *sigaction) set(signal uintptr) error {
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, signal, uintptr(unsafe.Pointer(a)), 0, 8, 0, 0); e != 0 {
		return fmt.Errorf("rt_sigaction %d: %w", signal, e)
	}
	return nil
}

// defaultSignals makes each ignored signal SIG_DFL and unblocks all in the
// calling thread. It returns whether it changed any.
func defaultSignals() (changed bool, err error) {
	for n := uintptr(1); n <= 64; n++ {
		var act sigaction
		if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, n, 0, uintptr(unsafe.Pointer(&act)), 8, 0, 0); e != 0 {
			return false, fmt.Errorf("rt_sigaction %d: %w", n, e)
		}
		if act.handler != sigIgn {
			continue
		}
		if err := (&sigaction{}).set(n); err != nil {
			return false, err
		}
		changed = true
	}
	const setmask = 2 // SIG_SETMASK
	var none, was uint64
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, setmask, uintptr(unsafe.Pointer(&none)), uintptr(unsafe.Pointer(&was)), 8, 0, 0); e != 0 {
		return false, fmt.Errorf("rt_sigprocmask: %w", e)
	}
	return changed || was != 0, nil
}

// ownDescriptors keeps what this process inherited above 2 from the launches.
func ownDescriptors() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
