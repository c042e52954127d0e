package general_test

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// kept is what "restricted" may leave.
const kept = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID | 1<<unix.CAP_KILL | 1<<unix.CAP_SETGID |
	1<<unix.CAP_SETUID | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_NET_BIND_SERVICE | 1<<unix.CAP_AUDIT_WRITE | 1<<unix.CAP_SETFCAP

var sets = []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}

func capabilities(t *testing.T, c launch.Cmd) map[string]uint64 {
	t.Helper()
	r := c.Run(t)
	if r.Code != 0 || r.Stderr != "" {
		t.Fatal(r)
	}
	out := map[string]uint64{}
	for _, set := range sets {
		n, err := strconv.ParseUint(status(t, r.Stdout, set), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		out[set] = n
	}
	return out
}

func TestCapabilitiesAreAsAsked(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		const show = "exec cat /proc/self/status"
		before := capabilities(t, p.sh(show, nil))
		for name, policy := range map[string]object{"by default": p.policy(object{"report": p.report}), "restricted": {"version": 1, "capabilities": "restricted", "report": p.report}} {
			t.Run(name, func(t *testing.T) {
				os.Remove(p.report)
				after := capabilities(t, p.sh(show, policy))
				for _, set := range sets {
					want := before[set]
					if u.UID == 0 {
						want &= kept
					}
					if after[set] != want {
						t.Errorf("%s is %#x, want %#x (before %#x)", set, after[set], want, before[set])
					}
				}
				if u.UID == 0 && !launch.Enforced(launch.Report(t, p.report), "capabilities") {
					t.Error("the report does not say so")
				}
			})
		}
		t.Run("keep", func(t *testing.T) {
			os.Remove(p.report)
			after := capabilities(t, p.sh(show, p.policy(object{"report": p.report, "capabilities": "keep"})))
			for _, set := range sets {
				if after[set] != before[set] {
					t.Errorf("%s is %#x, want %#x", set, after[set], before[set])
				}
			}
			rep := launch.Report(t, p.report)
			var want []string
			if before["CapPrm"]&(1<<unix.CAP_SYS_ADMIN) != 0 {
				want = []string{"limit"}
			}
			if got := launch.NotEnforced(rep, "capabilities"); !slices.Equal(got, want) || launch.Enforced(rep, "capabilities") {
				t.Errorf("not enforced %q, want %q: %+v", got, want, rep)
			}
		})
		t.Run("nothing confined", func(t *testing.T) {
			after := capabilities(t, p.sh(show, object{"version": 1}))
			for _, set := range sets {
				if after[set] != before[set] {
					t.Errorf("%s is %#x, want %#x", set, after[set], before[set])
				}
			}
		})
	})
}

// An ordinary user may have capabilities too, in the ambient set.
func TestAmbientCapabilitiesAreRestricted(t *testing.T) {
	launch.Need(t, launch.IsRoot)
	p := newPlace(t, launch.Nobody)
	const show = "exec cat /proc/self/status"
	const held = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SYS_PTRACE | 1<<unix.CAP_NET_BIND_SERVICE | 1<<unix.CAP_SETPCAP
	for _, withSetpcap := range []bool{true, false} {
		setup := &launch.Setup{KeepCapabilities: []int{unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_NET_BIND_SERVICE}}
		want := uint64(held &^ (1 << unix.CAP_SETPCAP))
		if withSetpcap {
			setup.KeepCapabilities = append(setup.KeepCapabilities, unix.CAP_SETPCAP)
			want = held
		}
		c := p.sh(show, nil)
		c.Setup = setup
		before := capabilities(t, c)
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
			if before[set] != want {
				t.Fatalf("control: %s is %#x, want %#x", set, before[set], want)
			}
		}
		c = p.sh(show, p.policy(nil))
		c.Setup = setup
		after := capabilities(t, c)
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
			if after[set] != want&kept {
				t.Errorf("SETPCAP %v: %s is %#x, want %#x", withSetpcap, set, after[set], want&kept)
			}
		}
		if withSetpcap && after["CapBnd"] != before["CapBnd"]&kept {
			t.Errorf("CapBnd is %#x", after["CapBnd"])
		}
	}
}
