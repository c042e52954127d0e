//go:build linux

// Package errnotest makes system calls fail, for tests of what is done where a
// question gets no answer.
package errnotest

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Call is a system call, or with Some those of it whose argument number Arg is Is.
type Call struct {
	Nr   uintptr
	Some bool
	Arg  int
	Is   uint32
}

// Fstatat is stat(2) and its kin. Where the two architectures have other names for one call (fstatat).
var Fstatat = Call{Nr: map[string]uintptr{"amd64": 262, "arm64": 79}[runtime.GOARCH]}

// Openat is openat(2), which all opening goes through.
var Openat = Call{Nr: unix.SYS_OPENAT}

// Answering runs f on a thread on which a system call fails with errno. With errno
// 0 the call seems to succeed, and does nothing.
func Answering(t *testing.T, c Call, errno unix.Errno, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its filter
		err := Fail(c, errno)
		if err == nil {
			f()
		}
		done <- err
	}()
	Must(t, <-done)
}

// Fail makes a system call fail with errno on the calling thread, for ever.
func Fail(c Call, errno unix.Errno) error {
	const arg0, words = 16, 8 // struct seccomp_data
	load := func(off int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: uint32(off)}
	}
	unless := func(k uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: skip}
	}
	ret := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	filter := []unix.SockFilter{load(0), unless(uint32(c.Nr), 1), ret(unix.SECCOMP_RET_ERRNO | uint32(errno)), ret(unix.SECCOMP_RET_ALLOW)}
	if c.Some {
		filter = slices.Insert(filter, 2, load(arg0+words*c.Arg), unless(c.Is, 1))
		filter[1].Jf = 3
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
}

// Silent are errnos that say nothing about what was asked.
var Silent = []unix.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EIO, unix.ESTALE, unix.ENOTCONN}

// RealDir is a new directory with a path without symlinks.
func RealDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	Must(t, err)
	return dir
}

// Must stops the test after an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// OpenStat opens a file for the length of the test.
func OpenStat(t *testing.T, path string) (int, *unix.Stat_t) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	Must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	var st unix.Stat_t
	Must(t, unix.Fstat(fd, &st))
	return fd, &st
}

// Touch makes an empty file.
func Touch(t *testing.T, path string) {
	t.Helper()
	Must(t, os.WriteFile(path, nil, 0o644))
}
