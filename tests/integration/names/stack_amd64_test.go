package names

import "syscall"

func stackPointer(pid int) (uintptr, error) {
	var regs syscall.PtraceRegs
	err := syscall.PtraceGetRegs(pid, &regs)
	return uintptr(regs.Rsp), err
}
