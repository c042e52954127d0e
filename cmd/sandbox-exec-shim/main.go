// Command sandbox-exec-shim stands in place of a program: it takes a policy
// from the environment, confines itself with Landlock, and becomes the program
// by execve(2).
//
// It never reads a flag: every argument is the program's.
package main

import (
	"os"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim"
)

// version is set by the linker.
var version = "unknown"

func main() { os.Exit(shim.Main(version)) }
