// Command launcher starts a program in a state that a Go program cannot hand
// over otherwise: with dispositions, a mask, closed descriptors, limits and
// exact vectors. It is no user of package boot, so it can test it. The state
// comes as JSON from the file named by its argument.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// State is what the program starts with. Strings of argv and env are bytes, so
// that they need not be UTF-8.
type State struct {
	Path      string
	Argv, Env [][]byte
	Ignore    []int
	Block     []int
	Close     []int
	Limits    map[int][2]uint64 // by RLIMIT number: soft, hard
	DeathSig  int
	UID       int
}

func main() {
	runtime.LockOSThread()
	text, err := os.ReadFile(os.Args[1])
	check(err)
	var s State
	check(json.Unmarshal(text, &s))

	path, err := syscall.BytePtrFromString(s.Path)
	check(err)
	argv, env := vector(s.Argv), vector(s.Env)
	ignore, mask := set(s.Ignore), set(s.Block)

	if s.UID != 0 {
		check(syscall.Setgroups(nil))
		check(syscall.Setresgid(s.UID, s.UID, s.UID))
		check(syscall.Setresuid(s.UID, s.UID, s.UID))
	}
	if s.DeathSig != 0 {
		call(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(s.DeathSig), 0, 0)
	}
	for _, fd := range s.Close {
		syscall.Close(fd)
	}
	// The runtime's threads must not take what is to stay pending, so all is
	// set at the very end.
	for sig := uintptr(1); sig <= 64; sig++ {
		action := struct {
			handler, flags, restorer uintptr
			mask                     uint64
		}{}
		if ignore&(1<<(sig-1)) != 0 {
			action.handler = 1
		}
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	}
	call(syscall.SYS_RT_SIGPROCMASK, 2, uintptr(unsafe.Pointer(&mask)), 0, 8)
	for resource, limit := range s.Limits {
		call(syscall.SYS_PRLIMIT64, 0, uintptr(resource), uintptr(unsafe.Pointer(&limit)), 0)
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
	check(errno)
}

func call(trap, a, b, c, d uintptr) {
	if _, _, errno := syscall.RawSyscall6(trap, a, b, c, d, 0, 0); errno != 0 {
		check(errno)
	}
}

func set(signals []int) uint64 {
	var mask uint64
	for _, s := range signals {
		mask |= 1 << (s - 1)
	}
	return mask
}

func vector(list [][]byte) []*byte {
	v := make([]*byte, 0, len(list)+1)
	for _, s := range list {
		v = append(v, &append(s[:len(s):len(s)], 0)[0])
	}
	return append(v, nil)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "launcher:", err)
		os.Exit(120)
	}
}
