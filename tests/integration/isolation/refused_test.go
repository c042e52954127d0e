package isolation

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// caller builds the program that makes system calls, once, beside the shim.
func caller(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(filepath.Dir(launch.Shim(tb)), "call")
	buildCaller.Do(func() {
		cmd := exec.Command("go", "build", "-o", path, "./testdata/call")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			errCaller = fmt.Errorf("build: %w\n%s", err, out)
		}
	})
	if errCaller != nil {
		tb.Fatal(errCaller)
	}
	return path
}

var (
	buildCaller sync.Once
	errCaller   error
)

// answers makes the calls in one launch, and returns what each said.
func answers(t *testing.T, c launch.Cmd, calls []string) []string {
	t.Helper()
	c.Args = append([]string{"call"}, calls...)
	r := c.Run(t)
	list := strings.Fields(r.Stdout)
	if r.Code != 0 || r.Stderr != "" || len(list) != len(calls) {
		t.Fatalf("%d calls: %v", len(calls), r)
	}
	return list
}

// ioctl asks of no descriptor, so that nothing can happen: the kernel says EBADF
// before it looks at the number, and the filter before the kernel.
func ioctl(number uint32) string { return fmt.Sprintf("%d,-1,%#x,mem", unix.SYS_IOCTL, number) }

// Each ioctl of the lists, as each policy has it.
func TestIoctls(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Seccomp)
	lists := [][]command{fileCommands, networkCommands, otherCommands}
	policies := []struct {
		name   string
		policy any
		denied [3]bool // which lists
	}{
		{"none", nil, [3]bool{}},
		{"hidden", object{"version": 1, "hidden": []string{"/nonexistent/hidden"}}, [3]bool{true, false, false}},
		{"workspace", object{"version": 1, "scope": "workspace", "toolchainDirs": false}, [3]bool{true, false, false}},
		{"isolate proc", object{"version": 1, "isolate": []string{"proc"}}, [3]bool{true, false, false}},
		{"no network", object{"version": 1, "network": "deny"}, [3]bool{false, true, false}},
		{"ports", object{"version": 1, "network": object{"connectTCP": []int{443}, "udp": "allow"}}, [3]bool{false, true, false}},
		{"both", object{"version": 1, "network": "deny", "hidden": []string{"/nonexistent/hidden"}}, [3]bool{true, true, false}},
		{"signals", object{"version": 1, "isolate": []string{"signals"}}, [3]bool{}},
	}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		dir := u.Dir(t)
		c := launch.Cmd{Path: launch.Install(t, dir, "call", launch.Record{Real: caller(t)}), User: u, Dir: u.Mkdir(t, filepath.Join(dir, "work"), 0o755)}
		for _, p := range policies {
			t.Run(p.name, func(t *testing.T) {
				c.Policy = p.policy
				for i, list := range lists {
					var calls []string
					for _, x := range list {
						calls = append(calls, ioctl(x.number))
					}
					want := "EBADF"
					if p.denied[i] {
						want = "EPERM"
					}
					for j, got := range answers(t, c, calls) {
						if got != want {
							t.Errorf("%s: got %s, want %s", list[j].name, got, want)
						}
					}
				}
			})
		}
	})
}

// On a real directory, opened for reading as Landlock grants it everywhere: what makes
// a tree there without the filter is refused, and what concerns the directory works.
func TestIoctlsOfADirectory(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Seccomp)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		dir := u.Dir(t)
		c := launch.Cmd{Path: launch.Install(t, dir, "call", launch.Record{Real: caller(t)}), User: u, Dir: u.Mkdir(t, filepath.Join(dir, "work"), 0o755)}
		calls := []string{fmt.Sprintf("%d,dir,0x5000940e,mem", unix.SYS_IOCTL), fmt.Sprintf("%d,dir,0x80086601,mem", unix.SYS_IOCTL)}
		control := answers(t, c, calls)
		if control[0] == "EPERM" || control[1] != "ok" && control[1] != "ENOTTY" {
			t.Fatalf("without a policy: %q", control)
		}
		c.Policy = object{"version": 1, "hidden": []string{"/nonexistent/hidden"}}
		if got := answers(t, c, calls); got[0] != "EPERM" || got[1] != control[1] {
			t.Errorf("got %q, without a policy %q", got, control)
		}
	})
}

// The keyrings, in every launch that confines anything.
func TestKeyrings(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Seccomp)
	nr32 := [3]int{286, 287, 288}
	calls := []string{
		// The session keyring's number; a key of no type; one that nobody has.
		fmt.Sprintf("%d,%d,-3,0", unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID),
		fmt.Sprintf("%d,mem,mem,0,0,-3", unix.SYS_ADD_KEY),
		fmt.Sprintf("%d,mem,mem,0,0", unix.SYS_REQUEST_KEY),
		fmt.Sprintf("32/%d,%d,-3,0", nr32[2], unix.KEYCTL_GET_KEYRING_ID),
		fmt.Sprintf("32/%d,-1", nr32[0]),
		fmt.Sprintf("32/%d,-1", nr32[1]),
	}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		dir := u.Dir(t)
		report := filepath.Join(dir, "report")
		c := launch.Cmd{Path: launch.Install(t, dir, "call", launch.Record{Real: caller(t)}), User: u, Dir: u.Mkdir(t, filepath.Join(dir, "work"), 0o755)}
		control := answers(t, c, calls)
		if control[0] != "ok" || control[1] == "EPERM" || control[2] == "EPERM" {
			t.Fatalf("without a policy: %q", control)
		}
		has32 := control[3] != "ENOSYS"
		for _, row := range []struct {
			policy object
			no32   bool
		}{
			{object{"hidden": []string{"/nonexistent/hidden"}}, false},
			{object{"scope": "workspace", "toolchainDirs": false}, false},
			{object{"isolate": []string{"signals"}}, false},
			{object{"isolate": []string{"tty"}}, false},
			{object{"isolate": []string{"unix-sockets"}}, true},
			{object{"network": "deny"}, true},
			{object{"capabilities": "restricted"}, false},
			{object{"descriptors": "close"}, false},
			{object{"hidden": []string{"/nonexistent/hidden"}, "capabilities": "keep"}, false},
		} {
			row.policy["version"], row.policy["report"] = 1, report
			c.Policy = row.policy
			got := answers(t, c, calls)
			want := []string{"EPERM", "EPERM", "EPERM", "EPERM", "EPERM", "EPERM"}
			if row.no32 || !has32 {
				copy(want[3:], []string{"ENOSYS", "ENOSYS", "ENOSYS"})
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%v: got %q, want %q", row.policy, got, want)
			}
			if r := launch.Report(t, report); !launch.Enforced(r, "keyrings") {
				t.Errorf("%v: report %+v", row.policy, r)
			}
			os.Remove(report)
		}
		c.Policy = object{"version": 1}
		if got := answers(t, c, calls[:1]); got[0] != "ok" {
			t.Errorf("a policy that confines nothing: %q", got)
		}
	})
}

// Limits and priorities: those of others by number, group and user, and its own.
func TestLimitsOfOthers(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Seccomp, launch.ABIAtLeast(6))
	const ioprioSet = unix.SYS_IOPRIO_SET
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		dir := u.Dir(t)
		c := launch.Cmd{Path: launch.Install(t, dir, "call", launch.Record{Real: caller(t)}), User: u, Dir: u.Mkdir(t, filepath.Join(dir, "work"), 0o755)}
		o := newOutsider(t, u)
		rows := []struct {
			name, call, without, want string
		}{
			{"a limit of another process", fmt.Sprintf("%d,%s,%d,mem,0", unix.SYS_PRLIMIT64, o.pid, unix.RLIMIT_CORE), "ok", "EPERM"},
			{"a limit of a process that is not", fmt.Sprintf("%d,0x3fffffff,%d,mem,0", unix.SYS_PRLIMIT64, unix.RLIMIT_CORE), "ESRCH", "EPERM"},
			{"the question for one", fmt.Sprintf("%d,%s,%d,0,mem", unix.SYS_PRLIMIT64, o.pid, unix.RLIMIT_CORE), "ok", "ok"},
			{"a limit of its own", fmt.Sprintf("%d,0,%d,mem,0", unix.SYS_PRLIMIT64, unix.RLIMIT_CORE), "ok", "ok"},
			{"the priority of a group", fmt.Sprintf("%d,%d,0x3fffffff,19", unix.SYS_SETPRIORITY, unix.PRIO_PGRP), "ESRCH", "EPERM"},
			{"the priority of a user", fmt.Sprintf("%d,%d,0x3fffffff,19", unix.SYS_SETPRIORITY, unix.PRIO_USER), "ESRCH", "EPERM"},
			{"the priority of a process", fmt.Sprintf("%d,%d,0,19", unix.SYS_SETPRIORITY, unix.PRIO_PROCESS), "ok", "ok"},
			{"the I/O priority of a group", fmt.Sprintf("%d,2,0x3fffffff,0x4004", ioprioSet), "ESRCH", "EPERM"},
			{"the I/O priority of a user", fmt.Sprintf("%d,3,0x3fffffff,0x4004", ioprioSet), "ESRCH", "EPERM"},
			{"the I/O priority of a process", fmt.Sprintf("%d,1,0,0x4004", ioprioSet), "ok", "ok"},
		}
		var calls []string
		for _, row := range rows {
			calls = append(calls, row.call)
		}
		without := answers(t, c, calls)
		c.Policy = object{"version": 1, "hidden": []string{"/nonexistent/hidden"}}
		hidden := answers(t, c, calls)
		c.Policy = object{"version": 1, "isolate": []string{"signals"}}
		got := answers(t, c, calls)
		for i, row := range rows {
			if without[i] != row.without || hidden[i] != row.without {
				t.Errorf("%s: %s without a policy and %s with hidden only, want %s", row.name, without[i], hidden[i], row.without)
			}
			if got[i] != row.want {
				t.Errorf("%s: got %s, want %s", row.name, got[i], row.want)
			}
		}
	})
}
