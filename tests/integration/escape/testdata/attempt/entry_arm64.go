package main

const no32 = "the entry for 32-bit programs"

func socket32(*w) error                   { return missing(no32) }
func ioctl32(int, uintptr, uintptr) error { return missing(no32) }
