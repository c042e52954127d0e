package main

import "golang.org/x/sys/unix"

// There is no other entry that a 64-bit program could use.
func int80() error { return unix.ENOSYS }
func x32() error   { return unix.ENOSYS }
