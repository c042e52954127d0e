package main

import (
	"syscall"
	"unsafe"
)

var small [64]byte

// waiter writes ".", its parent-death signal and what is pending to descriptor
// 1: the first at once, the last when descriptor 0 ends. It exits with 37.
//
//go:nosplit
func waiter() {
	var deathSig uint32
	raw(syscall.SYS_PRCTL, syscall.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&deathSig)), 0, 0, 0)
	small[0] = '.'
	hex(&small[1], uint64(deathSig))
	raw(syscall.SYS_WRITE, 1, ptr(&small[0]), 17, 0, 0)
	for {
		n := raw(syscall.SYS_READ, 0, ptr(&small[0]), 16, 0, 0)
		if n == 0 || failed(n) {
			break
		}
	}
	var pending uint64
	raw(syscall.SYS_RT_SIGPENDING, uintptr(unsafe.Pointer(&pending)), 8, 0, 0, 0)
	hex(&small[0], pending)
	raw(syscall.SYS_WRITE, 1, ptr(&small[0]), 16, 0, 0)
	exit(37)
}

// opener opens argv[1] and exits with 0 or the errno.
//
//go:nosplit
func opener() {
	r := open(arg(1), syscall.O_RDONLY)
	if failed(r) {
		exit(-r)
	}
	exit(0)
}

// hex writes 16 hexadecimal digits.
//
//go:nosplit
func hex(p *byte, v uint64) {
	for i := 15; i >= 0; i-- {
		d := byte(v & 15)
		if d < 10 {
			d += '0'
		} else {
			d += 'a' - 10
		}
		*(*byte)(unsafe.Add(unsafe.Pointer(p), i)) = d
		v >>= 4
	}
}
