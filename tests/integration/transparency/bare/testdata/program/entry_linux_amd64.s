#include "textflag.h"

TEXT bare_entry(SB),NOSPLIT|NOFRAME,$0
	MOVQ	SP, BX
	SUBQ	$32, SP
	ANDQ	$~15, SP
	// The wrapper of a Go function loads g through FS, which is zero here.
	MOVL	$158, AX	// arch_prctl
	MOVL	$0x1002, DI	// ARCH_SET_FS
	LEAQ	·tls+64(SB), SI
	SYSCALL
	MOVQ	BX, 0(SP)
	CALL	·start(SB)
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
