//go:build amd64 || arm64

package boot

import (
	"syscall"
	"unsafe"
)

// page holds the first page of the recorded program while it is looked at.
var page [HeaderSize]byte

// passThrough becomes the recorded program if there is nothing else to do. It
// returns in every other case, with everything as it was: the runtime then
// finds the program, or says what is wrong.
//
// Signals need no care here. Nothing has changed yet, so one that arrives does
// what it would do to any process.
//
//go:nosplit
func passThrough() {
	b := &block[0]
	if checkRecord(b) != recordValid || at(b, RecordOffMissing) != RecordMissingPass {
		return
	}
	off, n := field(b, RecordFieldReal)
	if n == 0 || hasPolicy(b) || secure() {
		return
	}
	target := (*byte)(unsafe.Add(unsafe.Pointer(b), off))
	if !isForeignELF(target) {
		return
	}
	// An empty argv, which kernels before 5.18 allow, has no slot for a name.
	rename := at(b, RecordOffArgv0) == RecordArgv0Real && argc > 0
	name := *(*uintptr)(argv)
	if rename {
		*(*uintptr)(argv) = uintptr(unsafe.Pointer(target))
	}
	raw(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(target)), uintptr(argv), uintptr(envp), 0, 0)
	if rename {
		*(*uintptr)(argv) = name
	}
}

// hasPolicy reports whether the environment has the policy variable, blank or
// not.
//
//go:nosplit
func hasPolicy(b *byte) bool {
	off, n := field(b, RecordFieldPolicyEnv)
	if n == 0 {
		return hasVariable(&defaultPolicyEnv[0], uintptr(len(defaultPolicyEnv)))
	}
	return hasVariable((*byte)(unsafe.Add(unsafe.Pointer(b), off)), n)
}

var defaultPolicyEnv = [...]byte{
	'S', 'A', 'N', 'D', 'B', 'O', 'X', '_', 'E', 'X', 'E', 'C', '_',
	'S', 'H', 'I', 'M', '_', 'P', 'O', 'L', 'I', 'C', 'Y',
}

//go:nosplit
func hasVariable(name *byte, n uintptr) bool {
	for p := envp; ; p = unsafe.Add(p, word) {
		entry := *(**byte)(p)
		if entry == nil {
			return false
		}
		i := uintptr(0)
		for i < n && at(entry, i) == at(name, i) {
			i++
		}
		if i == n && at(entry, n) == '=' {
			return true
		}
	}
}

// secure reports whether the ids of the process are not plain, or the kernel
// says that the execve gave it more than its caller had.
//
//go:nosplit
func secure() bool {
	uid, _ := aux(atUID)
	euid, _ := aux(atEUID)
	gid, _ := aux(atGID)
	egid, _ := aux(atEGID)
	flag, _ := aux(atSecure)
	return uid != euid || gid != egid || flag != 0
}

//go:nosplit
func aux(tag uintptr) (uintptr, bool) {
	for p := auxv; *(*uintptr)(p) != atNull; p = unsafe.Add(p, 2*word) {
		if *(*uintptr)(p) == tag {
			return *(*uintptr)(unsafe.Add(p, word)), true
		}
	}
	return 0, false
}

// isForeignELF reports whether path is an ELF file that can be read and is no
// shim. A script is none of our business here: its interpreter may be a shim.
//
//go:nosplit
func isForeignELF(path *byte) bool {
	const flags = syscall.O_RDONLY | syscall.O_CLOEXEC | syscall.O_NOCTTY | syscall.O_NONBLOCK
	fd := raw(syscall.SYS_OPENAT, atFDCWD, uintptr(unsafe.Pointer(path)), flags, 0, 0)
	if failed(fd) {
		return false
	}
	n := raw(syscall.SYS_PREAD64, fd, uintptr(unsafe.Pointer(&page)), HeaderSize, 0, 0)
	// Closed at once: when 0, 1 or 2 was closed, this is one of them.
	raw(syscall.SYS_CLOSE, fd, 0, 0, 0, 0)
	p := &page[0]
	return !failed(n) && n >= 4 && le32(p, 0) == elfMagic && !hasMarker(p, n)
}

const elfMagic = 'F'<<24 | 'L'<<16 | 'E'<<8 | 0x7f

// hasMarker looks for the marker in the first n bytes of a file, at every
// multiple of four: the notes of an ELF file are aligned so.
//
//go:nosplit
func hasMarker(p *byte, n uintptr) bool {
	for i := uintptr(0); i+16 <= n; i += 4 {
		if le64(p, i) == MarkerLow && le64(p, i+8) == MarkerHigh {
			return true
		}
	}
	return false
}

//go:nosplit
func le64(b *byte, off uintptr) uint64 { return uint64(le32(b, off)) | uint64(le32(b, off+4))<<32 }
