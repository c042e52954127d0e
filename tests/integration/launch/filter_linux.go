package launch

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The audit architectures that the tests run on (linux/audit.h).
var arch = map[string]uint32{"amd64": 0xc000003e, "arm64": 0xc00000b7}[runtime.GOARCH]

// Offsets in struct seccomp_data (seccomp(2)); the architectures are
// little-endian, so the low half of an argument comes first.
const (
	offNr   = 0
	offArch = 4
	offArg0 = 16
)

func load(off uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off}
}

func equal(k uint32, jt, jf uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: jt, Jf: jf}
}

func ret(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

var onlyHere = []unix.SockFilter{load(offArch), equal(arch, 1, 0), ret(unix.SECCOMP_RET_ALLOW), load(offNr)}

// errnoFilter answers the system calls of the list with an errno, or kills.
func errnoFilter(list []Errno) []unix.SockFilter {
	f := append([]unix.SockFilter(nil), onlyHere...)
	for _, e := range list {
		answer := ret(unix.SECCOMP_RET_ERRNO | uint32(e.Errno))
		if e.Kill {
			answer = ret(unix.SECCOMP_RET_KILL_PROCESS)
		}
		if e.If {
			f = append(f, equal(uint32(e.Nr), 0, 4), load(offArg0), equal(e.Arg0, 0, 1), answer, load(offNr))
		} else {
			f = append(f, equal(uint32(e.Nr), 0, 1), answer)
		}
	}
	return append(f, ret(unix.SECCOMP_RET_ALLOW))
}

// notifyFilter hands the Landlock system calls to the listener.
func notifyFilter() []unix.SockFilter {
	f := append([]unix.SockFilter(nil), onlyHere...)
	for _, nr := range []uint32{unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF} {
		f = append(f, equal(nr, 0, 1), ret(unix.SECCOMP_RET_USER_NOTIF))
	}
	return append(f, ret(unix.SECCOMP_RET_ALLOW))
}

// installFilter puts the calling thread under a filter. The result is the
// listener when the flags ask for one.
func installFilter(filter []unix.SockFilter, flags uintptr) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(filter)
	if e != 0 {
		return -1, e
	}
	return int(fd), nil
}
