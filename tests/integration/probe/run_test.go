package probe_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// TestRunHoldsThePolicyOfItsFlags: "install-shim run" with a policy on the command line holds it, and
// where the kernel cannot, --required decides.
func TestRunHoldsThePolicyOfItsFlags(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		launch.Need(t, launch.Landlock)
		_, installer := launch.Binaries(t)
		dir := u.Dir(t)
		u.Mkdir(t, dir+"/runs", 0o755)
		u.Mkdir(t, dir+"/runs/own", 0o755)
		u.Write(t, dir+"/runs/other", "other\n", 0o644)
		u.Write(t, dir+"/runs/own/file", "own\n", 0o644)
		u.Write(t, dir+"/runs/own/closed", "closed\n", 0o000)
		run := func(abi *launch.ABI, args ...string) launch.Result {
			args = append([]string{"install-shim", "run"}, args...)
			return launch.Cmd{
				Path: installer, Args: append(args, "--", "sh", "-c", "cat runs/own/file runs/other; echo [$A]"),
				Dir: dir, User: u, FakeABI: abi,
			}.Run(t)
		}
		flags := []string{"--set", "A=1", "--hide", dir + "/runs", "--expose", dir + "/runs/own"}
		if r := run(nil, "--set", "A=1"); r.Code != 0 || r.Stdout != "own\nother\n[1]\n" || r.Stderr != "" {
			t.Errorf("nothing hidden: %v", r)
		}
		for _, more := range [][]string{nil, {"--required"}} {
			if r := run(nil, append(more, flags...)...); r.Code != 0 || r.Stdout != "own\n[1]\n" || !strings.Contains(r.Stderr, "runs/other: Permission denied") {
				t.Errorf("%q: %v", more, r)
			}
			// An exposure that cannot be read is refused.
			r := run(nil, append(append(more, flags...), "--expose", dir+"/runs/own/closed")...)
			switch {
			case u.UID == 0:
				if r.Code != 0 {
					t.Errorf("%q: unreadable for others: %v", more, r)
				}
			case r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, "own/closed"):
				t.Errorf("%q: unreadable exposure: %v", more, r)
			}
		}
		if launch.Current().UID != 0 {
			return // a faked ABI needs root
		}
		launch.Need(t, launch.Seccomp)
		none := &launch.ABI{Errno: syscall.ENOSYS}
		if r := run(none, append([]string{"--required"}, flags...)...); r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, "Landlock is not available") {
			t.Errorf("required, without Landlock: %v", r)
		}
		if r := run(none, flags...); r.Code != 0 || r.Stdout != "own\nother\n[1]\n" || !strings.Contains(r.Stderr, "warning") {
			t.Errorf("not required, without Landlock: %v", r)
		}
	})
}
