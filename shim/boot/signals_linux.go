//go:build amd64 || arm64

package boot

import (
	"syscall"
	"unsafe"
)

const (
	signals = 64

	sigDfl = 0
	sigIgn = 1

	sigSetmask = 2

	everySignal = ^uint64(0)
)

// faults are the signals by which a bug of the shim becomes a panic.
const faults uint64 = 1<<(syscall.SIGSEGV-1) | 1<<(syscall.SIGBUS-1) | 1<<(syscall.SIGFPE-1)

// handled are the faults that the runtime handles while the shim runs. They are
// not blocked: a fault whose signal is blocked kills. Those that the caller
// blocks or ignores are left alone like every other signal, since one may be
// pending, or come from another process, that the program is to get.
var handled uint64

// sigaction is the kernel's struct sigaction on both architectures.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

var (
	actionBuffer sigaction
	maskBuffer   uint64
)

// noteSignals notes the dispositions and the mask, and blocks every signal. One
// that arrives from now on waits for the execve.
//
//go:nosplit
func noteSignals() {
	maskBuffer = everySignal
	raw(syscall.SYS_RT_SIGPROCMASK, sigSetmask, uintptr(unsafe.Pointer(&maskBuffer)), uintptr(unsafe.Pointer(&blocked)), 8, 0)
	handled = faults &^ blocked
	for s := uintptr(1); s <= signals; s++ {
		r := raw(syscall.SYS_RT_SIGACTION, s, 0, uintptr(unsafe.Pointer(&actionBuffer)), 8, 0)
		ignored[s] = !failed(r) && actionBuffer.handler == sigIgn
		if ignored[s] {
			handled &^= uint64(1) << (s - 1)
		}
	}
}

// setMask sets the mask of the calling thread.
func setMask(mask uint64) {
	raw(syscall.SYS_RT_SIGPROCMASK, sigSetmask, uintptr(unsafe.Pointer(&mask)), 0, 8, 0)
}

// restoreDispositions gives back the caller's dispositions: the program gets
// what is ignored as ignored, and the rest as SIG_DFL.
//
// The faults that the runtime handles stay with it: execve makes them SIG_DFL,
// and a shim whose execve failed still needs them.
//
// A kernel has all others right already. An emulator (qemu-user) may show
// SIG_IGN and have a handler underneath, so SIG_IGN is set again. That discards
// a pending signal, which is right unless the caller blocks it as well.
func restoreDispositions() {
	for s := uintptr(1); s <= signals; s++ {
		bit := uint64(1) << (s - 1)
		if handled&bit != 0 {
			continue
		}
		want := uintptr(sigDfl)
		if ignored[s] {
			want = sigIgn
		}
		var now sigaction
		raw(syscall.SYS_RT_SIGACTION, s, 0, uintptr(unsafe.Pointer(&now)), 8, 0)
		if now.handler != want || ignored[s] && blocked&bit == 0 {
			raw(syscall.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&sigaction{handler: want})), 0, 8, 0)
		}
	}
}

// UnblockSignals gives the calling thread the caller's signal mask, for a
// launch that takes long: what waits for the process, and what arrives from now
// on, does what the caller's dispositions say. The thread need not be the main
// one, which may hang in a system call: another, locked to its goroutine, takes
// the signals of the process as well. Without the entry point it does nothing.
func UnblockSignals() {
	if entered {
		setMask(blocked)
	}
}

// BlockSignals undoes [UnblockSignals] on the calling thread.
func BlockSignals() {
	if entered {
		setMask(everySignal &^ handled)
	}
}
