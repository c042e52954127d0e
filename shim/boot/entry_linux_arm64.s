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

	// The runtime finds a start-up frame of ours below the kernel's.
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

// func sections() (data, edata, rodata, erodata unsafe.Pointer)
TEXT ·sections(SB),NOSPLIT,$0-32
	MOVD	$runtime·data(SB), R0
	MOVD	R0, data+0(FP)
	MOVD	$runtime·edata(SB), R0
	MOVD	R0, edata+8(FP)
	MOVD	$runtime·rodata(SB), R0
	MOVD	R0, rodata+16(FP)
	MOVD	$runtime·erodata(SB), R0
	MOVD	R0, erodata+24(FP)
	RET
