#include "go_asm.h"
#include "textflag.h"

// The entry point of the binary. The kernel enters with the argument count at
// 0(RSP), and argv, envp and the auxiliary vector above it.
TEXT _sandbox_exec_shim_entry(SB),NOSPLIT|NOFRAME,$0
	MOVD	RSP, R19
	SUB	$48, RSP
	MOVD	R19, 32(RSP)
	MOVD	ZR, g
	// Arguments of an ABI0 function begin above the slot of the link register.
	MOVD	R19, 8(RSP)
	CALL	·start(SB)
	MOVD	32(RSP), R19

	// The runtime asks this function instead of the kernel for rt_sigaction.
	MOVD	$·sigaction(SB), R0
	MOVD	R0, _cgo_sigaction(SB)

	// It finds a start-up frame of ours below the kernel's.
	SUB	$(const_frameWords*8), R19
	MOVD	R19, RSP
	MOVD	$·frame(SB), R0
	MOVD	$const_frameWords, R1
copy:
	MOVD.P	8(R0), R2
	MOVD.P	R2, 8(R19)
	SUBS	$1, R1
	BNE	copy
	MOVD	ZR, R0
	JMP	_rt0_arm64_linux(SB)

// sigaction stands in for rt_sigaction while the runtime starts: it answers
// questions, lets the handlers of SIGSEGV, SIGBUS and SIGFPE through, and
// drops every other change. C calling convention: R0 signal, R1 new, R2 old.
TEXT ·sigaction(SB),NOSPLIT|NOFRAME,$0
	CBZ	R1, pass
	CMPW	$11, R0	// SIGSEGV
	BEQ	pass
	CMPW	$7, R0	// SIGBUS
	BEQ	pass
	CMPW	$8, R0	// SIGFPE
	BEQ	pass
	MOVD	ZR, R0
	RET
pass:
	MOVD	$8, R3
	MOVD	$134, R8	// rt_sigaction
	SVC	$0
	RET

// forward is the handler of a signal that the caller blocks. A thread of the
// runtime took it, because the runtime does not start threads with that signal
// blocked. The thread blocks it from now on and sends it again with its own
// siginfo; when every thread blocks it, it is pending as if none had taken it.
// No register but the link register needs keeping: the kernel restores them
// all. R0 signal, R1 siginfo, R2 ucontext.
TEXT ·forward(SB),NOSPLIT|NOFRAME,$0
	MOVD	R0, R9
	MOVD	R1, R10
	MOVD	·held(SB), R3
	MOVD	40(R2), R4	// uc_sigmask
	ORR	R3, R4
	MOVD	R4, 40(R2)
	MOVD	$178, R8	// gettid: only a thread's own id may carry any si_code
	SVC	$0
	MOVW	R9, R1
	MOVD	R10, R2
	MOVD	$138, R8	// rt_sigqueueinfo
	SVC	$0
	RET

TEXT ·restorer(SB),NOSPLIT|NOFRAME,$0
	MOVD	$139, R8	// rt_sigreturn
	SVC	$0
	BRK

// func raw(trap, a, b, c, d, e uintptr) uintptr
TEXT ·raw(SB),NOSPLIT,$0-56
	MOVD	trap+0(FP), R8
	MOVD	a+8(FP), R0
	MOVD	b+16(FP), R1
	MOVD	c+24(FP), R2
	MOVD	d+32(FP), R3
	MOVD	e+40(FP), R4
	SVC	$0
	MOVD	R0, ret+48(FP)
	RET

// func forwardPC() uintptr
TEXT ·forwardPC(SB),NOSPLIT,$0-8
	MOVD	$·forward(SB), R0
	MOVD	R0, ret+0(FP)
	RET

// func restorerPC() uintptr
TEXT ·restorerPC(SB),NOSPLIT,$0-8
	MOVD	$·restorer(SB), R0
	MOVD	R0, ret+0(FP)
	RET
