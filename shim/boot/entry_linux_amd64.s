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

	// The runtime finds a start-up frame of ours below the kernel's.
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

// func sections() (data, edata, rodata, erodata unsafe.Pointer)
TEXT ·sections(SB),NOSPLIT,$0-32
	MOVQ	$runtime·data(SB), AX
	MOVQ	AX, data+0(FP)
	MOVQ	$runtime·edata(SB), AX
	MOVQ	AX, edata+8(FP)
	MOVQ	$runtime·rodata(SB), AX
	MOVQ	AX, rodata+16(FP)
	MOVQ	$runtime·erodata(SB), AX
	MOVQ	AX, erodata+24(FP)
	RET
