package general_test

import (
	"path/filepath"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// No success case writes to standard output.
func TestCase22_SilentOnStdout(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		own := u.Mkdir(t, filepath.Join(p.hidden, "own"), 0o755)
		for name, policy := range map[string]any{
			"none": nil, "blank": " ", "empty": object{"version": 1}, "hidden": p.policy(nil),
			"everything": p.policy(object{
				"exposed": []string{own}, "precreate": []string{p.work + "/made/deep"}, "report": p.report,
				"log":          object{"level": "trace", "to": p.work + "/log"},
				"env":          object{"set": object{"A": "b"}, "unset": []string{"HOME"}},
				"capabilities": "keep", "frozen": "allow",
			}),
			"log on stderr": p.policy(object{"log": object{"level": "error", "to": "fd:2"}}),
			"unrestricted":  object{"version": 1, "scope": "unrestricted"},
		} {
			t.Run(name, func(t *testing.T) { p.wantStarted(t, p.mark(policy)) })
		}
		// Not required and impossible: a warning, and still nothing on stdout.
		c := p.mark(p.policy(object{"required": false}))
		c.FakeABI = &launch.ABI{Errno: 38}
		p.unmark(t)
		if r := c.Run(t); r.Code != 0 || r.Stdout != "" || !p.started() || !oneWarning.MatchString(r.Stderr) {
			t.Errorf("not required: %v", r)
		}
		// The control: what the program writes arrives.
		if r := p.sh("echo out", p.policy(nil)).Run(t); r.Stdout != "out\n" {
			t.Error(r)
		}
	})
}
