// Command program is a handful of small programs that use no Go runtime at all: the
// entry point works on the stack that the kernel made, with system calls only.
// So what it sees is what the kernel handed over, and what it sets up is what
// the next program gets.
//
// Which program it is, is set by the linker: -E bare_entry -X main.role=NAME.
//
//	caller   puts itself into the state in the file argv[1] and becomes a program
//	witness  writes all that can be known about itself to the file argv[1]
//	waiter   says that it runs, waits for the end of input, and says what is pending
//	opener   opens argv[1] and exits with the errno
//	real     exits with 42
package main

import "os"

// main is only reached when bare_entry is not the entry point.
func main() { os.Exit(99) }
