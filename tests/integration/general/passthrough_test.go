package general_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// untouched compares a launch through the shim with a direct one: nothing may
// have been added or taken.
func untouched(t *testing.T, p place, shim string, policy any) {
	t.Helper()
	// The status is read by the shell itself: while it forks, it blocks signals.
	const show = `while IFS= read -r line; do echo "$line"; done </proc/$$/status; ls /proc/$$/fd; cat "$1"`
	direct := p.sh(show, nil)
	direct.Path = launch.Look(t, "sh")
	want := direct.Run(t)
	c := p.sh(show, policy)
	c.Path = shim
	got := c.Run(t)
	if got.Code != 0 || got.Stderr != "" || want.Code != 0 {
		t.Fatalf("got %v\nwant %v", got, want)
	}
	if !strings.HasSuffix(got.Stdout, secretText) {
		t.Errorf("the secret must be readable: %v", got)
	}
	for _, key := range []string{
		"Name", "Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
		"SigBlk", "SigIgn", "SigCgt", "Umask", "Threads", "TracerPid",
	} {
		if g, w := status(t, got.Stdout, key), status(t, want.Stdout, key); g != w {
			t.Errorf("%s is %s, directly %s", key, g, w)
		}
	}
	_, fds, _ := strings.Cut(got.Stdout, "nonvoluntary_ctxt_switches")
	_, wantFDs, _ := strings.Cut(want.Stdout, "nonvoluntary_ctxt_switches")
	_, fds, _ = strings.Cut(fds, "\n")
	_, wantFDs, _ = strings.Cut(wantFDs, "\n")
	if fds != wantFDs {
		t.Errorf("descriptors %q, directly %q", fds, wantFDs)
	}
}

func TestCase01_NoPolicyChangesNothing(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		t.Run("record", func(t *testing.T) { untouched(t, p, p.shim, nil) })
		other := filepath.Join(p.dir, "other")
		if err := os.Mkdir(other, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Run("no record", func(t *testing.T) { untouched(t, p, launch.Copy(t, other, "sh"), nil) })
	})
}

func TestCase02_BlankIsNoPolicy(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		for name, blank := range map[string]string{"empty": "", "space": " ", "all white space": " \t\r\n\v\f "} {
			t.Run(name, func(t *testing.T) {
				untouched(t, p, p.shim, blank)
				c := p.sh("cat /proc/$$/environ", blank)
				c.Env = []string{"PATH=/usr/bin:/bin"}
				if r := c.Run(t); r.Stdout != "PATH=/usr/bin:/bin\x00" || r.Stderr != "" || r.Code != 0 {
					t.Errorf("a blank variable stayed: %v", r)
				}
			})
		}
		// A no-break space is no white space but a policy that cannot be read.
		p.wantNotStarted(t, p.mark("\u00a0"), 125, "SANDBOX_EXEC_SHIM_POLICY")
	})
}

// A shim that gives its file's owner's rights refuses, whatever is asked.
func TestSetIDShimRefuses(t *testing.T) {
	launch.Need(t, launch.IsRoot)
	p := newPlace(t, launch.Nobody)
	for name, mode := range map[string]os.FileMode{"setuid": os.ModeSetuid | 0o755, "setgid": os.ModeSetgid | 0o755} {
		t.Run(name, func(t *testing.T) {
			if err := os.Chmod(p.shim, mode); err != nil {
				t.Fatal(err)
			}
			p.wantNotStarted(t, p.mark(nil), 125, "refused")
			p.wantNotStarted(t, p.mark(" "), 125, "refused")
			p.wantNotStarted(t, p.mark(p.policy(nil)), 125, "refused")
			if err := os.Chmod(p.shim, 0o755); err != nil {
				t.Fatal(err)
			}
			p.wantStarted(t, p.mark(nil))
		})
	}
}

func TestCase13_NestedShimNeedsNoPolicy(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		p.wantReadable(t)
		const nested = `"$0" -c 'LC_ALL=C cat "$1" 2>&1 | sed "s/^.*: //"; echo' sh "$1"`
		for name, shim := range map[string]string{"record": p.shim, "no record": launch.Copy(t, p.work, "sh")} {
			t.Run(name, func(t *testing.T) {
				c := launch.Cmd{Path: p.shim, Args: []string{"sh", "-c", nested, shim, p.secret}, User: u, Dir: p.work}
				if r := c.Run(t); r.Stdout != secretText+"\n" || r.Stderr != "" {
					t.Errorf("without a policy: %v", r)
				}
				c.Policy = p.policy(nil)
				if r := c.Run(t); r.Stdout != denied || r.Stderr != "" || r.Code != 0 {
					t.Errorf("nested: %v", r)
				}
			})
		}
	})
}
