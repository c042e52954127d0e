//go:build amd64 || arm64

package boot

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"
)

var (
	// ErrNotEntered is returned by [Exec] when [Entered] is false.
	ErrNotEntered = errors.New("the entry point did not run (linked without its flags)")

	// ErrThread is returned by [Exec] when it is not called on the main
	// thread. Exec from another thread would lose PR_SET_PDEATHSIG.
	ErrThread = errors.New("execve from another than the main thread")
)

// This runs before the initializers of all packages that import this one.
func init() {
	if !entered {
		return
	}
	allowOpens()
	// PR_SET_PDEATHSIG survives only an execve by the main thread.
	runtime.LockOSThread()
	BlockSignals()
	// Nothing to restore, unless the runtime's table was not found.
	restoreDispositions()
}

// Exec becomes the program at path, an absolute path or one relative to the
// working directory, with these vectors. Before that it gives back what the
// caller had: dispositions, closed descriptors 0 to 2, the limit of open files
// and, last, the signal mask.
//
// Strings of [Argv] and [Envp] are passed by address, others are copied. A NUL
// in any of them is syscall.EINVAL.
//
// Exec returns only on failure, with the errno of execve(2) (to be tested with
// errors.Is), [ErrNotEntered] or [ErrThread]. Signals are blocked again then,
// and Exec can be called once more.
func Exec(path string, argv, envp []string) error {
	if !entered {
		return ErrNotEntered
	}
	if syscall.Gettid() != syscall.Getpid() {
		return ErrThread
	}
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	av, err := vector(argv)
	if err != nil {
		return err
	}
	ev, err := vector(envp)
	if err != nil {
		return err
	}

	// No thread may be in the middle of starting another.
	beforeExec()
	restoreDispositions()
	restoreLimit()
	setMask(blocked)
	r := raw(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(&av[0])), uintptr(unsafe.Pointer(&ev[0])), 0, 0)
	BlockSignals()
	afterExec()

	runtime.KeepAlive(p)
	runtime.KeepAlive(av)
	runtime.KeepAlive(ev)
	return syscall.Errno(-r)
}

// vector makes what execve wants of a list of strings.
func vector(list []string) ([]*byte, error) {
	v := make([]*byte, len(list)+1)
	for i, s := range list {
		if onStack(s) {
			v[i] = unsafe.StringData(s)
			continue
		}
		p, err := syscall.BytePtrFromString(s)
		if err != nil {
			return nil, err
		}
		v[i] = p
	}
	return v, nil
}

// onStack reports whether s is a view of the kernel's strings, up to their NUL.
func onStack(s string) bool {
	p := uintptr(unsafe.Pointer(unsafe.StringData(s)))
	return p >= uintptr(auxv) && p < stringsEnd() && at(unsafe.StringData(s), uintptr(len(s))) == 0
}

// stringsEnd is the end of the name of the executed file, above which there
// are no strings.
func stringsEnd() uintptr {
	name := ExecFn()
	return uintptr(unsafe.Pointer(unsafe.StringData(name))) + uintptr(len(name)) + 1
}

// restoreLimit undoes what [allowOpens] and the runtime do to RLIMIT_NOFILE.
func restoreLimit() {
	var now [2]uint64
	r := raw(syscall.SYS_PRLIMIT64, 0, syscall.RLIMIT_NOFILE, 0, uintptr(unsafe.Pointer(&now)), 0)
	if !failed(r) && now != limit {
		raw(syscall.SYS_PRLIMIT64, 0, syscall.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&limit)), 0, 0)
	}
}

//go:linkname beforeExec syscall.runtime_BeforeExec
func beforeExec()

//go:linkname afterExec syscall.runtime_AfterExec
func afterExec()
