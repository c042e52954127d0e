//go:build amd64 || arm64

package boot

import (
	"syscall"
	"unsafe"
)

const (
	signals = 64
	sigDfl  = 0
	sigIgn  = 1

	saSiginfo  = 0x4
	saRestorer = 0x04000000
	saOnStack  = 0x08000000
	saRestart  = 0x10000000

	everySignal = ^uint64(0)
)

// faults are the signals whose handlers the runtime keeps while the shim runs,
// so that a bug becomes a panic. They are never blocked by us: a fault whose
// signal is blocked kills.
const faults = 1<<(syscall.SIGSEGV-1) | 1<<(syscall.SIGBUS-1) | 1<<(syscall.SIGFPE-1)

// unblockedByRuntime are the signals that each thread of the runtime unblocks
// (sigtable and blockableSig in the runtime's source), without those of faults
// and the real-time ones.
const unblockedByRuntime = 1<<(syscall.SIGHUP-1) | 1<<(syscall.SIGINT-1) | 1<<(syscall.SIGQUIT-1) |
	1<<(syscall.SIGILL-1) | 1<<(syscall.SIGTRAP-1) | 1<<(syscall.SIGABRT-1) | 1<<(syscall.SIGTERM-1) |
	1<<(syscall.SIGSTKFLT-1) | 1<<(syscall.SIGCHLD-1) | 1<<(syscall.SIGPROF-1) | 1<<(syscall.SIGSYS-1)

// sigactiont is the kernel's struct sigaction on both architectures.
type sigactiont struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// siginfo is as large as the kernel's.
type siginfo [128]byte

var (
	oldAction sigactiont
	newAction sigactiont
)

func forwardPC() uintptr
func restorerPC() uintptr

// noteSignals notes the mask and the dispositions, and blocks every signal.
//
// The runtime inherits that mask for all of its threads but clears some signals
// from it. That matters for what the caller blocked: a thread of the runtime
// would take it, and by its disposition die of it or drop it, where it should
// wait for the program. Such a signal gets the handler forward.
//
// What the caller did not block needs nothing. A thread of the runtime that
// takes it does what the disposition says, as the program itself would just
// after its start; else it waits for the execve.
//
//go:nosplit
func noteSignals() {
	all := everySignal
	raw(syscall.SYS_RT_SIGPROCMASK, sigSetmask, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&blocked)), 8, 0)
	newAction = sigactiont{handler: forwardPC(), flags: saSiginfo | saRestorer | saOnStack | saRestart, restorer: restorerPC(), mask: everySignal}
	for s := uintptr(1); s <= signals; s++ {
		r := raw(syscall.SYS_RT_SIGACTION, s, 0, uintptr(unsafe.Pointer(&oldAction)), 8, 0)
		ignored[s] = !failed(r) && oldAction.handler == sigIgn
		bit := uint64(1) << (s - 1)
		if blocked&bit == 0 || faults&bit != 0 || s == uintptr(syscall.SIGKILL) || s == uintptr(syscall.SIGSTOP) {
			continue
		}
		// One that is ignored and that no thread unblocks stays pending by itself.
		if ignored[s] && unblockedByRuntime&bit == 0 {
			continue
		}
		held |= bit
		raw(syscall.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&newAction)), 0, 8, 0)
	}
}

const sigSetmask = 2

func setMask(mask uint64) {
	raw(syscall.SYS_RT_SIGPROCMASK, sigSetmask, uintptr(unsafe.Pointer(&mask)), 0, 8, 0)
}

// UnblockSignals gives the main thread the caller's signal mask, for a launch
// that takes long: what was blocked only by the shim is then delivered, and
// does what the caller's dispositions say. It must be called on the main
// goroutine. Without the entry point it does nothing.
func UnblockSignals() {
	if entered {
		setMask(blocked)
	}
}

// BlockSignals undoes UnblockSignals.
func BlockSignals() {
	if entered {
		setMask(everySignal &^ faults)
	}
}

// restoreDispositions makes every disposition such that the program gets the
// caller's. Handlers, the runtime's and forward, are left to execve, which
// makes them SIG_DFL: to set SIG_DFL here would discard a pending signal whose
// default is to be ignored.
func restoreDispositions() {
	for s := uintptr(1); s <= signals; s++ {
		var cur sigactiont
		if failed(raw(syscall.SYS_RT_SIGACTION, s, 0, uintptr(unsafe.Pointer(&cur)), 8, 0)) {
			continue
		}
		switch {
		case ignored[s] && cur.handler != sigIgn:
			ignore(s)
		case !ignored[s] && cur.handler == sigIgn:
			raw(syscall.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&sigactiont{handler: sigDfl})), 0, 8, 0)
		}
	}
}

// ignore sets SIG_IGN, which discards what is pending, and makes the signal
// pending again if it was: one that is blocked as well as ignored stays pending.
func ignore(s uintptr) {
	var info siginfo
	var now [2]int64
	set := uint64(1) << (s - 1)
	got := raw(syscall.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&set)), uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&now)), 8, 0)
	raw(syscall.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&sigactiont{handler: sigIgn})), 0, 8, 0)
	if got == s && blocked&set != 0 {
		// To this thread, so that no other takes it and ignores it.
		pid := raw(syscall.SYS_GETPID, 0, 0, 0, 0, 0)
		raw(syscall.SYS_RT_TGSIGQUEUEINFO, pid, pid, s, uintptr(unsafe.Pointer(&info)), 0)
	}
}
