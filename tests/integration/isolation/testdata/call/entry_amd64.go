package main

// call32 makes a system call by the entry for 32-bit programs.
func call32(nr, a, b, c uintptr) uintptr
