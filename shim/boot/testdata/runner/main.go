// Command runner is a shim reduced to package boot, for its tests. It becomes
// the program in the variable BOOT_TEST_TARGET. BOOT_TEST_STEP says what to do
// before. Both are taken out of the environment.
package main

import (
	"os"
	"strings"
	"syscall"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/boot"
)

func main() {
	if !boot.Entered() {
		fail("not entered")
	}
	var target, step string
	env := make([]string, 0, len(boot.Envp()))
	for _, e := range boot.Envp() {
		if v, ok := strings.CutPrefix(e, "BOOT_TEST_TARGET="); ok {
			target = v
		} else if v, ok := strings.CutPrefix(e, "BOOT_TEST_STEP="); ok {
			step = v
		} else {
			env = append(env, e)
		}
	}
	if f, ok := steps[step]; ok {
		f()
	} else if step != "" {
		fail("unknown step " + step)
	}
	err := boot.Exec(target, boot.Argv(), env)
	fail("exec " + target + ": " + err.Error())
}

func fail(text string) {
	syscall.Write(2, []byte("runner: "+text+"\n"))
	os.Exit(125)
}
