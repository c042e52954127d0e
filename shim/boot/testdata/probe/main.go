// Command probe prints what only a process itself can ask the kernel.
package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

func init() { runtime.LockOSThread() }

func main() {
	var deathSig int32
	const prGetPdeathsig = 2
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prGetPdeathsig, uintptr(unsafe.Pointer(&deathSig)), 0); errno != 0 {
		fmt.Fprintln(os.Stderr, "probe:", errno)
		os.Exit(120)
	}
	const prGetTimerslack = 30
	slack, _, _ := syscall.RawSyscall(syscall.SYS_PRCTL, prGetTimerslack, 0, 0)
	fmt.Printf("deathsig=%d timerslack=%d main=%v\n", deathSig, slack, syscall.Gettid() == syscall.Getpid())
}
