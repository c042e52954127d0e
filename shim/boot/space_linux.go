//go:build amd64 || arm64

package boot

import (
	"syscall"
	"unsafe"
)

// The runtime reserves address space, not memory, and where a limit leaves it
// too little it ends the process with a trace and status 2. So it is not started
// there: one line, and the status of a shim that could not do its work.
//
// runtimeSpace is a little more than a launch was seen to need with Go 1.26,
// 705 MB. With a runtime that needs more the trace is back, and a test says so.
const runtimeSpace = 768 << 20

const (
	noSpace     = "sandbox-exec-shim: refused: with less than 768 MB of address space (ulimit -v) it cannot start\n"
	exitNoSpace = 125
)

var spaceLimit [2]uint64

// needSpace ends the process where the runtime could not start. Descriptor 2
// must be open.
//
//go:nosplit
func needSpace() {
	r := raw(syscall.SYS_PRLIMIT64, 0, syscall.RLIMIT_AS, 0, uintptr(unsafe.Pointer(&spaceLimit)), 0)
	if failed(r) || spaceLimit[0] >= runtimeSpace {
		return
	}
	raw(syscall.SYS_WRITE, 2, uintptr(unsafe.Pointer(unsafe.StringData(noSpace))), uintptr(len(noSpace)), 0, 0)
	raw(syscall.SYS_EXIT_GROUP, exitNoSpace, 0, 0, 0, 0)
}
