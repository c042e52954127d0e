//go:build amd64 || arm64

package boot

import (
	"syscall"
	"unsafe"
)

// While it starts, the runtime opens files of /proc and /sys to choose a number
// of processors and to learn the size of huge pages. It has its number from the
// frame, a launch is too short for huge pages, and it goes on without what it
// cannot open. Reading them takes a twentieth of a launch, and no setting of the
// runtime spares it.
//
// So nothing can be opened meanwhile: the soft limit of open files is that of
// the three standard descriptors, which are all open by now. What is open above
// stays open. The initializer of this package lifts the limit again, before that
// of any package that imports it.

// standard is how many descriptors the runtime may have while it starts.
const standard = 3

var startLimit [2]uint64

//go:nosplit
func holdOpens() {
	if limit[0] <= standard {
		return
	}
	startLimit[0], startLimit[1] = standard, limit[1]
	raw(syscall.SYS_PRLIMIT64, 0, syscall.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&startLimit)), 0, 0)
}

// allowOpens gives the shim all that the caller's hard limit allows, nearly as
// package os does. [Exec] puts the caller's own limit back.
func allowOpens() {
	if limit[1] == 0 {
		return // not known
	}
	startLimit[0], startLimit[1] = limit[1], limit[1]
	raw(syscall.SYS_PRLIMIT64, 0, syscall.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&startLimit)), 0, 0)
}
