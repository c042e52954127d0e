package confine

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
)

// Why there is no Landlock is told apart, and nothing of it is claimed then.
func TestAskKernel(t *testing.T) {
	if k := kernel(t, 1); k.Unavailable != "" || Hint(k) != "" {
		t.Errorf("%+v, %q", k, Hint(k))
	}
	for errno, want := range map[unix.Errno]struct{ why, hint string }{
		unix.ENOSYS:     {"no Landlock", "Linux 5.13"},
		unix.EOPNOTSUPP: {"switched off", "lsm="},
		unix.EPERM:      {"not permitted", "container"},
		unix.EIO:        {unix.EIO.Error(), ""},
	} {
		errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_LANDLOCK_CREATE_RULESET}, errno, func() {
			k := AskKernel()
			if k.ABI != 0 || k.Errata != 0 || !strings.Contains(k.Unavailable, want.why) || !strings.Contains(Hint(k), want.hint) || (Hint(k) == "") != (want.hint == "") {
				t.Errorf("%v: %+v, %q", errno, k, Hint(k))
			}
		})
	}
	errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_SECCOMP}, unix.EPERM, func() {
		if k := AskKernel(); k.NoSeccomp == "" || k.ABI == 0 {
			t.Errorf("no seccomp: %+v", k)
		}
	})
	if Hint(rules.Kernel{Unavailable: "else"}) != "" {
		t.Error("a hint for what is not known")
	}
}

// The capabilities that reach around the domain are named, each.
func TestDangerousCapabilities(t *testing.T) {
	for _, d := range dangerous {
		if keptCapabilities&(1<<d.number) != 0 {
			t.Errorf("%s is dangerous and kept", d.name)
		}
	}
	for _, row := range []struct {
		c    capabilities
		want bool
	}{
		{capabilities{}, false},
		{capabilities{permitted: keptCapabilities, inheritable: keptCapabilities}, false},
		{capabilities{permitted: 1 << unix.CAP_SYS_ADMIN}, true},
		{capabilities{permitted: 1 << unix.CAP_PERFMON}, true},
		{capabilities{inheritable: 1 << unix.CAP_SYS_ADMIN}, true},
		{capabilities{effective: 1 << unix.CAP_SYS_PTRACE}, false},
	} {
		if got := row.c.seeProcesses(); got != row.want {
			t.Errorf("%+v: %v", row.c, got)
		}
	}
}
