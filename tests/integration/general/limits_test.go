package general_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// Under tight limits a launch is confined as asked, or it is none.
func TestTightLimitsConfineOrStop(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		p.wantReadable(t)
		var limits []launch.Limit
		for n := uint64(0); n <= 40; n++ {
			limits = append(limits, launch.Limit{Resource: unix.RLIMIT_NOFILE, Soft: n, Hard: n})
		}
		for mb := uint64(8); mb <= 2048; mb *= 2 {
			limits = append(limits, launch.Limit{Resource: unix.RLIMIT_AS, Soft: mb << 20, Hard: mb << 20}, launch.Limit{Resource: unix.RLIMIT_DATA, Soft: mb << 20, Hard: mb << 20})
		}
		for _, n := range []uint64{0, 1, 2, 3, 4, 5} {
			limits = append(limits, launch.Limit{Resource: unix.RLIMIT_NPROC, Soft: n, Hard: n})
		}
		limits = append(limits, launch.Limit{Resource: unix.RLIMIT_STACK, Soft: 200 << 10, Hard: 200 << 10}, launch.Limit{Resource: unix.RLIMIT_CORE}, launch.Limit{Resource: unix.RLIMIT_MEMLOCK})
		started := 0
		for _, l := range limits {
			for _, required := range []bool{true, false} {
				// The shell itself reads, without a child.
				c := p.sh(`read x <"$1"; echo "[$x]"`, p.policy(object{"required": required}))
				c.Setup = &launch.Setup{Limits: []launch.Limit{l}}
				r := c.Run(t)
				if r.Code == 99 {
					continue // the stage itself could not start it
				}
				if r.Stdout == "[]\n" {
					started++
					continue
				}
				if r.Stdout != "" || r.Code == 0 {
					t.Errorf("limit %d of %d, required %v: %v", l.Resource, l.Soft, required, r)
				} else {
					line, _, _ := strings.Cut(r.Stderr, "\n")
					t.Logf("limit %d of %d: exit %d %v: %.100s", l.Resource, l.Soft, r.Code, r.Signal, line)
				}
			}
		}
		if started < 20 {
			t.Errorf("only %d launches started", started)
		}
	})
}

// Whatever system call fails, or does nothing and says it did: a launch is
// confined or it is none.
func TestFailingCallsConfineOrStop(t *testing.T) {
	launch.Need(t, launch.IsRoot, launch.Landlock)
	calls := map[string]uintptr{
		"openat": unix.SYS_OPENAT, "getdents64": unix.SYS_GETDENTS64, "fstat": unix.SYS_FSTAT, "faccessat": unix.SYS_FACCESSAT, "faccessat2": unix.SYS_FACCESSAT2,
		"lseek": unix.SYS_LSEEK, "readlinkat": unix.SYS_READLINKAT, "getcwd": unix.SYS_GETCWD, "fcntl": unix.SYS_FCNTL, "pread64": unix.SYS_PREAD64,
		"close": unix.SYS_CLOSE, "seccomp": unix.SYS_SECCOMP, "ppoll": unix.SYS_PPOLL, "rt_sigpending": unix.SYS_RT_SIGPENDING,
		"prlimit64": unix.SYS_PRLIMIT64, "clone3": unix.SYS_CLONE3, "sigaltstack": unix.SYS_SIGALTSTACK, "prctl": unix.SYS_PRCTL, "capget": unix.SYS_CAPGET, "capset": unix.SYS_CAPSET,
		"landlock_create_ruleset": unix.SYS_LANDLOCK_CREATE_RULESET, "landlock_add_rule": unix.SYS_LANDLOCK_ADD_RULE,
		"landlock_restrict_self": unix.SYS_LANDLOCK_RESTRICT_SELF,
	}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		// The shell itself reads and writes, without a child.
		c := p.sh(`read x <"$1"; echo "[$x]"`, nil)
		if r := c.Run(t); r.Stdout != "["+secretText+"]\n" {
			t.Fatalf("control: %v", r)
		}
		c.Policy = p.policy(nil)
		if r := c.Run(t); r.Stdout != "[]\n" {
			t.Fatalf("control: %v", r)
		}
		for name, nr := range calls {
			for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSYS, unix.ENOMEM, 0} {
				if name == "fcntl" && errno != 0 && errno != unix.EPERM {
					continue
				}
				c.Setup = &launch.Setup{Errno: []launch.Errno{{Nr: nr, Errno: errno}}}
				if r := c.Run(t); r.Code == 99 || r.Stdout != "[]\n" && (r.Stdout != "" || r.Code == 0) {
					t.Errorf("%s, errno %d: %v", name, errno, r)
				}
			}
		}
	})
}

// A program in a directory that is gone, and one without arguments.
func TestStartsWithoutDirectoryOrArguments(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		gone := u.Mkdir(t, filepath.Join(p.work, "gone"), 0o755)
		for _, policy := range []any{nil, p.policy(nil)} {
			// The shell removes its own directory and becomes the shim there.
			c := p.sh(`cd "$3" && rmdir "$3" && [ -z "$4" ] || export SANDBOX_EXEC_SHIM_POLICY="$4"; exec "$5" -c 'read x <"$1"; echo "[$x]"' sh "$1"`, nil)
			c.Path = launch.Look(t, "sh")
			text := ""
			want := "[" + secretText + "]\n"
			if policy != nil {
				text, want = fmt.Sprintf(`{"version":1,"hidden":[%q]}`, p.hidden), "[]\n"
			}
			c.Args = append(c.Args, gone, text, p.shim)
			r := c.Run(t)
			if r.Stdout != want {
				t.Errorf("in a removed directory: want %q: %v", want, r)
			}
			if err := os.MkdirAll(gone, 0o755); err != nil {
				t.Fatal(err)
			}
			u.Own(t, gone)

			script := launch.WriteProgram(t, filepath.Join(p.dir, "count"), []byte("#!/bin/sh\ntr '\\0' '|' </proc/$$/cmdline\n"))
			shim := launch.Install(t, p.bin, "count", launch.Record{Real: script})
			direct := launch.Cmd{Path: script, Args: []string{}, User: u}.Run(t)
			r = launch.Cmd{Path: shim, Args: []string{}, User: u, Policy: policy}.Run(t)
			if r.Stdout != direct.Stdout || r.Code != direct.Code {
				t.Errorf("no arguments: %v\ndirectly %v", r, direct)
			}
		}
	})
}

// What the installer wrote into the record counts.
func TestRecordOfTheInstallerCounts(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		report, log := filepath.Join(p.work, "recorded report"), filepath.Join(p.work, "recorded log")
		shim := launch.Install(t, p.bin, "sh", launch.Record{Real: launch.Look(t, "sh"), PolicyEnv: "OTHER_POLICY", Report: report, Log: log})
		mark := func(policy any) launch.Cmd {
			c := p.mark(policy)
			c.Path, c.PolicyEnv = shim, "OTHER_POLICY"
			return c
		}
		p.wantStarted(t, mark(p.policy(nil)))
		if rep := launch.Report(t, report); rep.Mechanism != "landlock" {
			t.Errorf("%+v", rep)
		}
		wantLog(t, log, "launch")
		p.wantStarted(t, mark(p.policy(object{"report": p.report})))
		launch.Report(t, p.report)
		if n := len(launch.Reports(t, report)); n != 1 {
			t.Errorf("%d reports where the policy names another place", n)
		}
		p.wantNotStarted(t, mark("{"), 125, "OTHER_POLICY")
		// The usual variable is another shim's business.
		c := p.sh("cat /proc/$$/environ", "{")
		c.Path, c.Env = shim, []string{"PATH=/usr/bin:/bin"}
		if r := c.Run(t); r.Stdout != "PATH=/usr/bin:/bin\x00SANDBOX_EXEC_SHIM_POLICY={\x00" || r.Code != 0 {
			t.Errorf("%v", r)
		}
		if err := os.Remove(report); err != nil {
			t.Fatal(err)
		}
		u.Mkdir(t, report, 0o755)
		p.wantNotStarted(t, mark(p.policy(nil)), 125, "report")
		p.wantStarted(t, mark(nil))
	})
}

// A shim that wants a policy does not run its program without one.
func TestRefusesToRunWithoutAPolicy(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		launch.Install(t, p.bin, "sh", launch.Record{Real: launch.Look(t, "sh"), OnMissing: record.Refuse})
		for _, policy := range []any{nil, "", " \n"} {
			p.wantNotStarted(t, p.mark(policy), 126, "refused", "SANDBOX_EXEC_SHIM_POLICY")
		}
		p.wantStarted(t, p.mark(p.policy(nil)))
		launch.Install(t, p.bin, "sh", launch.Record{Real: launch.Look(t, "sh"), OnMissing: record.Pass})
		p.wantStarted(t, p.mark(nil))
	})
}

// A bounding set that cannot be reduced is said.
func TestBoundingSetThatStaysIsReported(t *testing.T) {
	launch.Need(t, launch.IsRoot)
	p := newPlace(t, launch.Root)
	c := p.sh("exec cat /proc/self/status", p.policy(object{"report": p.report}))
	c.Setup = &launch.Setup{DropBounding: []int{unix.CAP_SETPCAP}}
	after := capabilities(t, c)
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		if after[set]&^kept != 0 {
			t.Errorf("%s is %#x", set, after[set])
		}
	}
	said := slices.Contains(launch.NotEnforced(launch.Report(t, p.report), "capabilities"), "limit")
	if stays := after["CapBnd"]&^kept != 0; !stays || !said {
		t.Errorf("CapBnd is %#x, said: %v", after["CapBnd"], said)
	}
}
