package general_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// What supervisors forbid, as systemd's SystemCallFilter and containers do, by killing
// and by an errno.
var (
	keyringCalls  = []uintptr{unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL}
	resourceCalls = []uintptr{unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET, unix.SYS_SCHED_SETAFFINITY}
	networkCalls  = []uintptr{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_BIND, unix.SYS_CONNECT}
)

func forbid(calls []uintptr, e launch.Errno) (list []launch.Errno) {
	for _, nr := range calls {
		e.Nr = nr
		list = append(list, e)
	}
	return list
}

// A launch asks nothing of the kernel that only its filter needs and that a supervisor
// kills for: seccomp(2), and what its own filter is there to refuse.
func TestSupervisorThatKills(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Seccomp, launch.ABIAtLeast(6))
	kills := map[string][]uintptr{
		"seccomp":   {unix.SYS_SECCOMP},
		"keyrings":  keyringCalls,
		"resources": resourceCalls,
		"network":   networkCalls,
		"all":       append(append(append([]uintptr{unix.SYS_SECCOMP}, keyringCalls...), resourceCalls...), networkCalls...),
	}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		p.wantReadable(t)
		for name, calls := range kills {
			for policyName, more := range map[string]object{
				"hidden": {"required": true, "report": p.report},
				"all": {
					"required": true, "report": p.report, "network": "deny",
					"isolate": []string{"signals", "abstract-unix", "unix-sockets", "proc", "tty"},
				},
			} {
				t.Run(name+" "+policyName, func(t *testing.T) {
					os.Remove(p.report)
					// The shell itself reads and says it, without a child.
					c := p.sh(`read x <"$1"; echo "[$x]"`, p.policy(more))
					c.Setup = &launch.Setup{Errno: forbid(calls, launch.Errno{Kill: true})}
					if r := c.Run(t); r.Code != 0 || r.Stdout != "[]\n" {
						t.Errorf("%v", r)
					}
					for _, what := range []string{"hidden", "keyrings", "file-ioctls"} {
						if rep := launch.Report(t, p.report); !launch.Enforced(rep, what) {
							t.Errorf("%s is not enforced: %+v", what, rep)
						}
					}
				})
			}
		}
		// The control: the filter kills.
		c := p.sh(`kill -0 $$`, nil)
		c.Setup = &launch.Setup{Errno: []launch.Errno{{Nr: unix.SYS_KILL, Kill: true}}}
		if r := c.Run(t); r.Signal != syscall.SIGSYS {
			t.Errorf("control: %v", r)
		}
	})
}

// Where no filter can be loaded, what every launch has of it is a limit, and a required
// launch starts; one that asks for more does not.
func TestSupervisorWithoutFilters(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Seccomp, launch.ABIAtLeast(6))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		p.wantReadable(t)
		// 0 is one that answers as if it had loaded what it is given.
		for _, errno := range []unix.Errno{unix.EPERM, unix.EINVAL, unix.ENOSYS, 0} {
			os.Remove(p.report)
			setup := &launch.Setup{Errno: []launch.Errno{{Nr: unix.SYS_PRCTL, If: true, Arg0: unix.PR_SET_SECCOMP, Errno: errno}}}
			c := p.sh(readSecret, p.policy(object{"required": true, "report": p.report}))
			c.Setup = setup
			if r := c.Run(t); r.Code != 0 || r.Stdout != denied || r.Stderr != "" {
				t.Errorf("errno %d: %v", errno, r)
			}
			rep := launch.Report(t, p.report)
			for _, what := range []string{"keyrings", "file-ioctls"} {
				if n := launch.NotEnforced(rep, what); len(n) != 1 || n[0] != "limit" || launch.Enforced(rep, what) {
					t.Errorf("errno %d: %s: %+v", errno, what, rep)
				}
			}
			for what, more := range map[string]object{
				"network":         {"network": "deny"},
				"resource-limits": {"isolate": []string{"signals"}},
				"tty":             {"isolate": []string{"tty"}},
			} {
				more["required"] = true
				c := p.mark(p.policy(more))
				c.Setup = setup
				p.wantNotStarted(t, c, 125, "cannot enforce "+what+": seccomp")
			}
		}
	})
}

// A container answers EPERM for keyrings itself, and lets filters be loaded; a launch in
// a launch stands behind the outer one's filter, and proves its own.
func TestBehindAnotherFilter(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Seccomp, launch.ABIAtLeast(6))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		p.wantReadable(t)
		c := p.sh(readSecret, p.policy(object{"required": true, "report": p.report}))
		c.Setup = &launch.Setup{Errno: forbid(keyringCalls, launch.Errno{Errno: unix.EPERM})}
		if r := c.Run(t); r.Code != 0 || r.Stdout != denied {
			t.Errorf("in a container: %v", r)
		}
		if rep := launch.Report(t, p.report); !launch.Enforced(rep, "keyrings") {
			t.Errorf("report %+v", rep)
		}
		inner := `{"version":1,"required":true,"network":"deny","isolate":["signals","tty"]}`
		c = p.sh(`grep Seccomp_filters /proc/self/status; SANDBOX_EXEC_SHIM_POLICY='`+inner+`' "$3" -c "grep Seccomp_filters /proc/self/status"`, p.policy(object{"required": true}))
		c.Args = append(c.Args, p.shim)
		r := c.Run(t)
		if f := strings.Fields(r.Stdout); r.Code != 0 || len(f) != 4 || f[1] >= f[3] {
			t.Errorf("in a launch: %v", r)
		}
	})
}
