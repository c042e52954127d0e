package main

// call32 has no entry here that a 64-bit program could use: ENOSYS.
func call32(nr, a, b, c uintptr) uintptr { return ^uintptr(37) }
