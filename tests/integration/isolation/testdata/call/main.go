// Command call makes system calls, and says "ok" or the errno of each on a line.
//
//	call [ENTRY/]NUMBER[,ARGUMENT]... ...
//
// An argument is a number, "dir" for a descriptor of the current directory, opened for
// reading, or "mem" for the address of zeros. ENTRY is "32" for that of 32-bit programs.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

var zeros [4096]byte

func main() {
	dir, err := unix.Open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		fmt.Println("open:", err)
		os.Exit(1)
	}
	for _, arg := range os.Args[1:] {
		entry, rest, ok := strings.Cut(arg, "/")
		if !ok {
			entry, rest = "", arg
		}
		var a [7]uintptr
		for i, word := range strings.Split(rest, ",") {
			switch word {
			case "dir":
				a[i] = uintptr(dir)
			case "mem":
				a[i] = uintptr(unsafe.Pointer(&zeros[0]))
			default:
				n, err := strconv.ParseInt(word, 0, 64)
				if err != nil {
					fmt.Println(err)
					os.Exit(2)
				}
				a[i] = uintptr(n)
			}
		}
		var errno unix.Errno
		if entry == "32" {
			if r := int32(call32(a[0], a[1], a[2], a[3])); r < 0 {
				errno = unix.Errno(-r)
			}
		} else {
			_, _, errno = unix.RawSyscall6(a[0], a[1], a[2], a[3], a[4], a[5], a[6])
		}
		if errno != 0 {
			fmt.Println(unix.ErrnoName(errno))
			continue
		}
		fmt.Println("ok")
	}
}
