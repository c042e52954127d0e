package names

import "golang.org/x/sys/unix"

func stackPointer(pid int) (uintptr, error) {
	var regs unix.PtraceRegs
	err := unix.PtraceGetRegSetArm64(pid, 1, (*unix.PtraceRegsArm64)(&regs)) // NT_PRSTATUS
	return uintptr(regs.Sp), err
}
