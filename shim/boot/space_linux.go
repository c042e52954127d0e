//go:build amd64 || arm64

package boot

import (
	"syscall"
	"unsafe"
)

// The runtime ends a process with a trace and status 2 where it gets too little
// address space, which it reserves and hardly uses, where too little of that may
// be written, and where nothing stands on a standard descriptor. So it is not
// started there: one line, and the status of a shim that could not do its work.
//
// The limits are a little more than a launch was seen to need with Go 1.26, 705
// and 42 MB. With a runtime that needs more, or a launch that plans with very
// many files, the trace is back; a test says so of the first.
const (
	runtimeSpace = 768 << 20 // RLIMIT_AS
	runtimeData  = 64 << 20  // RLIMIT_DATA
)

const (
	noSpace    = "sandbox-exec-shim: refused: with less than 768 MB of address space (ulimit -v) it cannot start\n"
	noData     = "sandbox-exec-shim: refused: with less than 64 MB of data (ulimit -d) it cannot start\n"
	noStandard = "sandbox-exec-shim: refused: with nothing on descriptors 0 to 2, and nothing to put there (ulimit -n), it cannot start\n"

	exitRefused = 125
)

var spaceLimit [2]uint64

// needSpace ends the process where the runtime could not start.
//
//go:nosplit
func needSpace() {
	if lessThan(syscall.RLIMIT_AS, runtimeSpace) {
		refuse(unsafe.StringData(noSpace), uintptr(len(noSpace)))
	}
	if lessThan(syscall.RLIMIT_DATA, runtimeData) {
		refuse(unsafe.StringData(noData), uintptr(len(noData)))
	}
}

//go:nosplit
func lessThan(resource uintptr, need uint64) bool {
	r := raw(syscall.SYS_PRLIMIT64, 0, resource, 0, uintptr(unsafe.Pointer(&spaceLimit)), 0)
	return !failed(r) && spaceLimit[0] < need
}

//go:nosplit
func refuse(text *byte, n uintptr) {
	raw(syscall.SYS_WRITE, 2, uintptr(unsafe.Pointer(text)), n, 0, 0)
	raw(syscall.SYS_EXIT_GROUP, exitRefused, 0, 0, 0, 0)
}
