#include "go_asm.h"
#include "textflag.h"

// The entry point of the binary. The kernel enters with the argument count at
// 0(SP), and argv, envp and the auxiliary vector above it.
TEXT _sandbox_exec_shim_entry(SB),NOSPLIT|NOFRAME,$0
	MOVQ	SP, BX
	SUBQ	$32, SP
	ANDQ	$~15, SP
	MOVQ	BX, 16(SP)

	// The wrapper of a Go function loads g through FS, which is zero here.
	// The runtime points FS elsewhere later.
	MOVL	$158, AX	// arch_prctl
	MOVL	$0x1002, DI	// ARCH_SET_FS
	LEAQ	·tls+64(SB), SI
	SYSCALL

	MOVQ	BX, 0(SP)
	CALL	·start(SB)
	MOVQ	16(SP), SP

	// The runtime asks this function instead of the kernel for rt_sigaction.
	MOVQ	$·sigaction(SB), AX
	MOVQ	AX, _cgo_sigaction(SB)

	// It finds a start-up frame of ours below the kernel's.
	SUBQ	$(const_frameWords*8), SP
	ANDQ	$~15, SP
	CLD
	LEAQ	·frame(SB), SI
	MOVQ	SP, DI
	MOVL	$const_frameWords, CX
	REP
	MOVSQ
	XORL	DX, DX
	JMP	_rt0_amd64_linux(SB)

// sigaction stands in for rt_sigaction while the runtime starts: it answers
// questions, lets the handlers of SIGSEGV, SIGBUS and SIGFPE through, and
// drops every other change. C calling convention: DI signal, SI new, DX old.
TEXT ·sigaction(SB),NOSPLIT|NOFRAME,$0
	TESTQ	SI, SI
	JEQ	pass
	CMPL	DI, $11	// SIGSEGV
	JEQ	pass
	CMPL	DI, $7	// SIGBUS
	JEQ	pass
	CMPL	DI, $8	// SIGFPE
	JEQ	pass
	XORL	AX, AX
	RET
pass:
	MOVL	$8, R10
	MOVL	$13, AX	// rt_sigaction
	SYSCALL
	RET

// forward is the handler of a signal that the caller blocks. A thread of the
// runtime took it, because the runtime does not start threads with that signal
// blocked. The thread blocks it from now on and sends it again with its own
// siginfo; when every thread blocks it, it is pending as if none had taken it.
// No register needs keeping: the kernel restores them all. DI signal, SI
// siginfo, DX ucontext.
TEXT ·forward(SB),NOSPLIT|NOFRAME,$0
	MOVQ	DI, R12
	MOVQ	SI, R13
	MOVQ	·held(SB), AX
	ORQ	AX, 296(DX)	// uc_sigmask
	MOVL	$186, AX	// gettid: only a thread's own id may carry any si_code
	SYSCALL
	MOVL	AX, DI
	MOVL	R12, SI
	MOVQ	R13, DX
	MOVL	$129, AX	// rt_sigqueueinfo
	SYSCALL
	RET

TEXT ·restorer(SB),NOSPLIT|NOFRAME,$0
	MOVL	$15, AX	// rt_sigreturn
	SYSCALL
	INT	$3

// func raw(trap, a, b, c, d, e uintptr) uintptr
TEXT ·raw(SB),NOSPLIT,$0-56
	MOVQ	trap+0(FP), AX
	MOVQ	a+8(FP), DI
	MOVQ	b+16(FP), SI
	MOVQ	c+24(FP), DX
	MOVQ	d+32(FP), R10
	MOVQ	e+40(FP), R8
	SYSCALL
	MOVQ	AX, ret+48(FP)
	RET

// func forwardPC() uintptr
TEXT ·forwardPC(SB),NOSPLIT,$0-8
	MOVQ	$·forward(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

// func restorerPC() uintptr
TEXT ·restorerPC(SB),NOSPLIT,$0-8
	MOVQ	$·restorer(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
