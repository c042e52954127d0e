#include "textflag.h"

TEXT bare_entry(SB),NOSPLIT|NOFRAME,$0
	MOVD	RSP, R19
	SUB	$64, RSP
	MOVD	ZR, g
	MOVD	R19, 8(RSP)
	CALL	·start(SB)
	BRK

// func raw(trap, a, b, c, d, e uintptr) uintptr
TEXT ·raw(SB),NOSPLIT,$0-56
	MOVD	trap+0(FP), R8
	MOVD	a+8(FP), R0
	MOVD	b+16(FP), R1
	MOVD	c+24(FP), R2
	MOVD	d+32(FP), R3
	MOVD	e+40(FP), R4
	SVC
	MOVD	R0, ret+48(FP)
	RET
