package general_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// unavailable holds the answers of a kernel or a container without Landlock.
var unavailable = []syscall.Errno{unix.ENOSYS, unix.EOPNOTSUPP, unix.EPERM}

// without makes the Landlock system calls fail, by a listener or by a filter
// as a container has it.
func without(errno syscall.Errno) map[string]func(*launch.Cmd) {
	return map[string]func(*launch.Cmd){
		"answered": func(c *launch.Cmd) { c.FakeABI = &launch.ABI{Errno: errno} },
		"filtered": func(c *launch.Cmd) {
			c.Setup = &launch.Setup{}
			for _, nr := range []uintptr{unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF} {
				c.Setup.Errno = append(c.Setup.Errno, launch.Errno{Nr: nr, Errno: errno})
			}
		},
	}
}

func TestCase15_RequiredStopsWithoutLandlock(t *testing.T) {
	launch.Need(t, launch.Seccomp)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		for _, errno := range unavailable {
			for how, with := range without(errno) {
				t.Run(unix.ErrnoName(errno)+" "+how, func(t *testing.T) {
					os.Remove(p.report)
					for _, more := range []object{{"report": p.report}, {"required": true}} {
						c := p.mark(p.policy(more))
						with(&c)
						p.wantNotStarted(t, c, 125, "cannot enforce hidden", "not available", "\nsandbox-exec-shim: hint: ")
					}
					r := launch.Report(t, p.report)
					if r.Outcome != "error" || r.Error == "" || r.Mechanism == "landlock" || !slices.Contains(launch.NotEnforced(r, "hidden"), "failure") || launch.Enforced(r, "hidden") {
						t.Errorf("report %+v", r)
					}
					// Without anything to confine, Landlock is not missed.
					c := p.mark(`{"version":1}`)
					with(&c)
					p.wantStarted(t, c)
				})
			}
		}
		c := p.mark(p.policy(nil))
		p.wantStarted(t, c)
	})
}

func TestCase16_NotRequiredRunsAndSaysSo(t *testing.T) {
	launch.Need(t, launch.Seccomp)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		for _, errno := range unavailable {
			for how, with := range without(errno) {
				t.Run(unix.ErrnoName(errno)+" "+how, func(t *testing.T) {
					os.Remove(p.report)
					made := filepath.Join(p.work, "made "+unix.ErrnoName(errno)+how)
					c := p.sh(readSecret, p.policy(object{"required": false, "report": p.report, "precreate": []string{made}}))
					with(&c)
					r := c.Run(t)
					if r.Code != 0 || r.Stdout != secretText+"\n" || !oneWarning.MatchString(r.Stderr) || !strings.Contains(r.Stderr, "not available") {
						t.Errorf("want one warning and a run: %v", r)
					}
					rep := launch.Report(t, p.report)
					if rep.Outcome != "exec" || rep.Mechanism != "unavailable" || rep.PID != r.PID || rep.Landlock != nil || len(rep.Frozen) != 0 ||
						rep.Warning == "" || launch.Enforced(rep, "hidden") || !slices.Contains(launch.NotEnforced(rep, "hidden"), "failure") {
						t.Errorf("report %+v", rep)
					}
					if fi, err := os.Stat(made); err != nil || fi.Mode().Perm() != 0o700 {
						t.Errorf("precreated: %v %v", fi, err)
					}
				})
			}
		}
	})
}

func TestCase17_NoStepFailsInSilence(t *testing.T) {
	launch.Need(t, launch.IsRoot, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		rows := []struct {
			name string
			fail launch.Errno
			root bool // happens to root only
		}{
			{"landlock_restrict_self EPERM", launch.Errno{Nr: unix.SYS_LANDLOCK_RESTRICT_SELF, Errno: unix.EPERM}, false},
			{"landlock_restrict_self EINVAL", launch.Errno{Nr: unix.SYS_LANDLOCK_RESTRICT_SELF, Errno: unix.EINVAL}, false},
			{"landlock_restrict_self ENOSYS", launch.Errno{Nr: unix.SYS_LANDLOCK_RESTRICT_SELF, Errno: unix.ENOSYS}, false},
			{"landlock_restrict_self E2BIG", launch.Errno{Nr: unix.SYS_LANDLOCK_RESTRICT_SELF, Errno: unix.E2BIG}, false},
			// Filtered so that the call seems to succeed: only the proof can tell.
			{"landlock_restrict_self lies", launch.Errno{Nr: unix.SYS_LANDLOCK_RESTRICT_SELF, Errno: 0}, false},
			{"landlock_add_rule EPERM", launch.Errno{Nr: unix.SYS_LANDLOCK_ADD_RULE, Errno: unix.EPERM}, false},
			{"landlock_add_rule EINVAL", launch.Errno{Nr: unix.SYS_LANDLOCK_ADD_RULE, Errno: unix.EINVAL}, false},
			{"landlock_add_rule EBADFD", launch.Errno{Nr: unix.SYS_LANDLOCK_ADD_RULE, Errno: unix.EBADFD}, false},
			{"no_new_privs", launch.Errno{Nr: unix.SYS_PRCTL, If: true, Arg0: unix.PR_SET_NO_NEW_PRIVS, Errno: unix.EPERM}, false},
			{"bounding set", launch.Errno{Nr: unix.SYS_PRCTL, If: true, Arg0: unix.PR_CAPBSET_DROP, Errno: unix.EPERM}, true},
			{"capset", launch.Errno{Nr: unix.SYS_CAPSET, Errno: unix.EPERM}, true},
			{"capset lies", launch.Errno{Nr: unix.SYS_CAPSET, Errno: 0}, true},
			{"capget", launch.Errno{Nr: unix.SYS_CAPGET, Errno: unix.EPERM}, false},
		}
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				if row.root && u != launch.Root {
					t.Skip("only root has capabilities to lose")
				}
				os.Remove(p.report)
				c := p.mark(p.policy(object{"report": p.report}))
				c.Setup = &launch.Setup{Errno: []launch.Errno{row.fail}}
				p.wantNotStarted(t, c, 125)
				if r := launch.Report(t, p.report); r.Outcome != "error" || r.Mechanism == "landlock" && !strings.Contains(r.Error, "does not hold") {
					t.Errorf("report %+v", r)
				}
				// Without required nothing may be less confined in silence.
				os.Remove(p.report)
				c = p.sh(readSecret, p.policy(object{"report": p.report, "required": false}))
				c.Setup = &launch.Setup{Errno: []launch.Errno{row.fail}}
				r := c.Run(t)
				rep := launch.Report(t, p.report)
				switch {
				case r.Code == 125 && r.Stdout == "" && oneMessage.MatchString(r.Stderr) && rep.Outcome == "error":
				case r.Code == 0 && oneWarning.MatchString(r.Stderr) && rep.Warning != "" && len(rep.NotEnforced) > 0 &&
					(r.Stdout == denied) == (rep.Mechanism == "landlock") && (r.Stdout == denied) == launch.Enforced(rep, "hidden"):
				default:
					t.Errorf("not required: %v\nreport %+v", r, rep)
				}
			})
		}
		// The control: an errno filter on something else changes nothing.
		c := p.mark(p.policy(nil))
		c.Setup = &launch.Setup{Errno: []launch.Errno{{Nr: unix.SYS_PRCTL, If: true, Arg0: unix.PR_SET_NAME, Errno: unix.EPERM}}}
		p.wantStarted(t, c)
	})
}

func TestCase18_EachABIHoldsWhatIsReported(t *testing.T) {
	launch.Need(t, launch.Seccomp, launch.ABIAtLeast(3))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		p.wantReadable(t)
		own := u.Mkdir(t, filepath.Join(p.hidden, "own"), 0o755)
		u.Write(t, filepath.Join(own, "file"), "own", 0o644)
		for abi := 1; abi <= 12; abi++ {
			t.Run(fmt.Sprint(abi), func(t *testing.T) {
				os.Remove(p.report)
				c := p.sh(readSecret+`; cat "${1%/*}/own/file" && echo x >"${1%/*}/own/new" && rm "${1%/*}/own/new" && echo && grep -E "NoNewPrivs|Seccomp:" /proc/self/status`,
					p.policy(object{"report": p.report, "exposed": []string{own}, "required": true}))
				c.FakeABI = &launch.ABI{Version: abi, Errata: 5}
				r := c.Run(t)
				if want := denied + "own\nNoNewPrivs:\t1\nSeccomp:\t2\n"; r.Code != 0 || r.Stdout != want || r.Stderr != "" {
					t.Errorf("want %q: %v", want, r)
				}
				rep := launch.Report(t, p.report)
				errata := 0
				if abi >= 6 {
					errata = 5
				}
				if rep.Landlock.ABI != abi || rep.Landlock.Errata != errata || rep.Landlock.Layers != 1 || rep.Landlock.Rules < 5 || rep.Mechanism != "landlock" || rep.Outcome != "exec" {
					t.Errorf("report %+v %+v", rep, rep.Landlock)
				}
				for what, since := range map[string]int{"hidden": 1, "truncate": 3, "unix-socket": 9} {
					if got := launch.Enforced(rep, what); got != (abi >= since) {
						t.Errorf("enforced %s: %v", what, got)
					}
					var want []string
					if abi < since {
						want = []string{"limit"}
					}
					if got := launch.NotEnforced(rep, what); !slices.Equal(got, want) {
						t.Errorf("not enforced %s: %q, want %q", what, got, want)
					}
				}
			})
		}
		// no_new_privs is the shim's doing: without a policy it is not set.
		if os.Geteuid() == 0 {
			c := p.sh("grep NoNewPrivs /proc/self/status", nil)
			c.FakeABI = &launch.ABI{Version: 1}
			if r := c.Run(t); r.Stdout != "NoNewPrivs:\t0\n" {
				t.Errorf("control: %v", r)
			}
		}
	})
}

// What a right is good for on the real kernel: below ABI 3 truncate(2) of a
// hidden file is not covered, from 3 on it is.
func TestHiddenFileIsNotTruncated(t *testing.T) {
	launch.Need(t, launch.ABIAtLeast(3), launch.Program("python3"))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		const try = `exec python3 -I -c 'import os,sys
try: os.truncate(sys.argv[1], 3); print("done")
except OSError as e: print(e.errno)' "$1"`
		if r := p.sh(try, p.policy(nil)).Run(t); r.Stdout != fmt.Sprintf("%d\n", unix.EACCES) {
			t.Errorf("truncate of a hidden file: %v", r)
		}
		if got, err := os.ReadFile(p.secret); err != nil || string(got) != secretText {
			t.Errorf("the hidden file is %q, %v", got, err)
		}
		if r := p.sh(try, nil).Run(t); r.Stdout != "done\n" {
			t.Errorf("control: %v", r)
		}
	})
}
