// Command install-shim puts sandbox-exec-shim in front of programs, or in
// their place, takes it away again, and says where it stands.
//
// Nothing here confines anything: it moves files. What it promises is that at
// every moment, also after a crash between any two system calls, the name leads
// to a program that works, and that a file which is not a shim is never lost.
package main
