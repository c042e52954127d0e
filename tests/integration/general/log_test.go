package general_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// The logger, and what comes with it, asks nothing about terminals, whether or not
// something is logged: the answer would be the caller's terminal's.
func TestLogAsksForNoTerminal(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Program("strace"))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		for name, policy := range map[string]object{
			"no log": p.policy(object{}),
			"log":    p.policy(object{"log": object{"level": "trace", "to": filepath.Join(p.work, "log")}}),
		} {
			trace := filepath.Join(p.work, "trace")
			c := p.sh("exit 0", policy)
			c.Path, c.Args = launch.Look(t, "strace"), append([]string{"strace", "-qq", "-f", "-o", trace, "-e", "trace=ioctl,execve", c.Path}, c.Args[1:]...)
			if r := c.Run(t); r.Code != 0 {
				t.Fatalf("%s: %v", name, r)
			}
			text, err := os.ReadFile(trace)
			if err != nil {
				t.Fatal(err)
			}
			// The first execve is the shim's, the last the program's.
			first, last := strings.Index(string(text), "execve("), strings.LastIndex(string(text), "execve(")
			if first < 0 || first == last {
				t.Fatalf("%s: the trace shows no launch:\n%s", name, text)
			}
			before := string(text[:last])
			if strings.Contains(before, "ioctl(") {
				t.Errorf("%s: before the program starts:\n%s", name, before)
			}
		}
	})
}
