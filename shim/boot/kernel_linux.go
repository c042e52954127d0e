//go:build amd64 || arm64

package boot

import "syscall"

const (
	word = 8

	atFDCWD = ^uintptr(99) // -100
	oPath   = 0x200000

	// Tags of the auxiliary vector, getauxval(3).
	atNull   = 0
	atUID    = 11
	atEUID   = 12
	atGID    = 13
	atEGID   = 14
	atSecure = 23
	atExecFn = 31
)

// raw makes a system call without telling the scheduler. It returns what the
// kernel returns: an errno is a small negative number.
//
//go:noescape
func raw(trap, a, b, c, d, e uintptr) (ret uintptr)

// failed reports whether a result of raw is an errno.
//
//go:nosplit
func failed(r uintptr) bool { return r > ^uintptr(4095) }

// errno is what raw returns for an errno.
//
//go:nosplit
func errno(e syscall.Errno) uintptr { return -uintptr(e) }
