//go:build amd64 || arm64

package boot

import "unsafe"

// Entered reports whether the entry point ran. If not, the binary was linked
// without the flags in ldflags.mk, the caller's state is lost, and a shim must
// refuse to work.
func Entered() bool { return entered }

// Argv returns the arguments as the kernel handed them over, byte for byte. The
// strings are views of the process's stack; [Exec] passes them on by address.
// Without the entry point it is nil.
func Argv() []string {
	if !entered {
		return nil
	}
	return views(argv)
}

// Envp returns the environment as the kernel handed it over: every entry, in
// order, with duplicates, entries without "=" and empty ones. The strings are
// views like those of [Argv].
func Envp() []string {
	if !entered {
		return nil
	}
	return views(envp)
}

// Auxv returns an entry of the auxiliary vector, getauxval(3).
func Auxv(tag uintptr) (uintptr, bool) {
	if !entered {
		return 0, false
	}
	return aux(tag)
}

// ExecFn returns the path that was given to execve (AT_EXECFN), or "". It may
// be relative, and under /dev/fd when execveat was used.
func ExecFn() string {
	if !entered {
		return ""
	}
	for p := auxv; *(*uintptr)(p) != atNull; p = unsafe.Add(p, 2*word) {
		if *(*uintptr)(p) == atExecFn {
			return view(*(**byte)(unsafe.Add(p, word)))
		}
	}
	return ""
}

// ClosedAtStart tells which of the descriptors 0, 1 and 2 the caller had
// closed. Something harmless stands there until [Exec] succeeds.
func ClosedAtStart() [3]bool { return closed }

func views(vector unsafe.Pointer) []string {
	n := 0
	for p := vector; *(**byte)(p) != nil; p = unsafe.Add(p, word) {
		n++
	}
	list := make([]string, n)
	for i := range list {
		list[i] = view(*(**byte)(unsafe.Add(vector, i*word)))
	}
	return list
}

// view returns the string at p without copying it.
func view(p *byte) string {
	if p == nil {
		return ""
	}
	n := uintptr(0)
	for at(p, n) != 0 {
		n++
	}
	return unsafe.String(p, n)
}
