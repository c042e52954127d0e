#include "textflag.h"

// func call32(nr, a, b, c uintptr) uintptr
TEXT ·call32(SB), NOSPLIT, $0-40
	MOVQ nr+0(FP), AX
	MOVQ a+8(FP), BX
	MOVQ b+16(FP), CX
	MOVQ c+24(FP), DX
	BYTE $0xcd; BYTE $0x80 // INT $0x80
	MOVLQSX AX, AX
	MOVQ AX, ret+32(FP)
	RET
