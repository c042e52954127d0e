//go:build amd64 || arm64

package boot

import (
	"syscall"
	"unsafe"
)

// The runtime has a table that says, for each signal, whether it installs a
// handler and whether its threads may leave the signal blocked. Where the table
// says nothing, the signal is left alone: no handler, and every thread inherits
// the mask that the entry set. That is what a launch needs, and the runtime has
// no setting for it. So the entry clears the table before the runtime reads it.
//
// The table cannot be named from outside the runtime. It is found in the data
// of the binary by what it holds. If a later runtime has another table, none is
// found: then the shim still works, but see [SignalsHeld].

// tableEntry is runtime.sigTabT.
type tableEntry struct {
	flags int32
	name  *byte // a string
	len   uintptr
}

// Flags of an entry that the search relies on.
const (
	tableKill    = 1 << 1 // _SigKill: the signal ends the program
	tablePanic   = 1 << 3 // _SigPanic: the signal becomes a panic
	tableUnblock = 1 << 7 // _SigUnblock: threads unblock the signal
)

// tableFound says that the runtime's table was found and cleared.
var tableFound bool

// SignalsHeld reports whether all signals but SIGSEGV, SIGBUS and SIGFPE (these
// only if the caller blocks or ignores them) are blocked in every thread from the entry until [Exec]. It is false without the
// entry point, and with a runtime that this package does not know: a signal
// that arrives during the launch then does at once what its disposition says,
// if it is one that the runtime unblocks, even if the caller blocks it.
func SignalsHeld() bool { return entered && tableFound }

// sections returns the bounds of the pointer-holding and of the read-only data.
//
//go:noescape
func sections() (data, edata, rodata, erodata unsafe.Pointer)

// clearTable finds the table and clears all entries but those of handled.
//
//go:nosplit
func clearTable() {
	data, edata, rodata, erodata := sections()
	const size = (signals + 1) * unsafe.Sizeof(tableEntry{})
	for p := data; uintptr(p)+size <= uintptr(edata); p = unsafe.Add(p, word) {
		// Without a call for nearly all of them: the first entry, of no signal,
		// has no flags.
		if *(*uintptr)(p) != 0 || *(*uintptr)(unsafe.Add(p, word)) < uintptr(rodata) {
			continue
		}
		if !isTable(p, uintptr(rodata), uintptr(erodata)) {
			continue
		}
		for s := uintptr(1); s <= signals; s++ {
			if handled&(uint64(1)<<(s-1)) == 0 {
				tableAt(p, s).flags = 0
			}
		}
		tableFound = true
		return
	}
}

//go:nosplit
func tableAt(table unsafe.Pointer, s uintptr) *tableEntry {
	return (*tableEntry)(unsafe.Add(table, s*unsafe.Sizeof(tableEntry{})))
}

// isTable reports whether the table stands at p: 65 entries of which each has a
// name in the read-only data that begins with "SIG" or "signal ", and some have
// the flags that they must have.
//
//go:nosplit
func isTable(p unsafe.Pointer, rodata, erodata uintptr) bool {
	for s := uintptr(0); s <= signals; s++ {
		e := tableAt(p, s)
		name := uintptr(unsafe.Pointer(e.name))
		if e.flags < 0 || e.flags >= 1<<10 || name < rodata || name >= erodata || e.len < 8 || e.len > 64 {
			return false
		}
		if v := le32(e.name, 0) & 0xffffff; v != 'S'|'I'<<8|'G'<<16 && v != 's'|'i'<<8|'g'<<16 {
			return false
		}
	}
	return tableAt(p, 0).flags == 0 &&
		tableAt(p, uintptr(syscall.SIGKILL)).flags == 0 &&
		tableAt(p, uintptr(syscall.SIGTERM)).flags&tableKill != 0 &&
		tableAt(p, uintptr(syscall.SIGSEGV)).flags == tablePanic|tableUnblock
}
