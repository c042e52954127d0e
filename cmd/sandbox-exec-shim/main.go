// Command sandbox-exec-shim stands in place of a program: it takes a policy
// from the environment, confines itself with Landlock, and becomes the program
// by execve(2).
//
// It never reads a flag: every argument is the program's.
package main

import (
	"os"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim"
)

// version is set by the linker to "sandbox-exec-shim-version=1.0.0;". In that
// form install-shim finds it in the file of a shim that is installed.
var version = "=unknown;"

func main() {
	_, v, _ := strings.Cut(version, "=")
	os.Exit(shim.Main(strings.TrimSuffix(v, ";")))
}
