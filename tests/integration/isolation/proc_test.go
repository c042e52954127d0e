package isolation

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// masks makes a /proc as a container has it, in a mount namespace of its own.
const masks = `mount --make-rprivate / && mount --bind /dev/null /proc/timer_list &&
mount -t tmpfs -o ro,mode=0555 mask /proc/tty && mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys &&
mount -t tmpfs -o mode=0755 nested /proc/sys/fs/binfmt_misc && echo inner >/proc/sys/fs/binfmt_misc/file && mount -o remount,ro,bind /proc/sys/fs/binfmt_misc
`

// state says what of the masks holds.
const state = `wc -c </proc/timer_list
ls /proc/tty | wc -l
cat /proc/sys/fs/binfmt_misc/file
{ echo 0 >/proc/sys/kernel/panic_on_oops; } 2>&1 | sed 's/.*: //'
{ echo >/proc/sys/fs/binfmt_misc/file; } 2>&1 | sed 's/.*: //'
test -e /proc/1/comm && echo one
`

const masked = "0\n0\ninner\nRead-only file system\nRead-only file system\n"

func TestPrivateProcKeepsMasks(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	for _, capabilities := range []string{"restricted", "keep"} {
		t.Run(capabilities, func(t *testing.T) {
			dir := launch.Root.Dir(t)
			sh := launch.Install(t, dir, "sh", launch.Record{Real: "/bin/sh"})
			report := filepath.Join(dir, "report")
			c := launch.Cmd{
				// The launch, and then the outer /proc again.
				Path: "/bin/sh", Args: []string{
					"sh", "-c", masks + state + "echo --\nexport SANDBOX_EXEC_SHIM_POLICY=\"$0\"\n" +
						`"$1" -c "$2"; unset SANDBOX_EXEC_SHIM_POLICY; echo --` + "\n" + state + "grep -c hidepid /proc/self/mounts; :",
					`{"version":1,"isolate":["proc"],"capabilities":"` + capabilities + `","report":"` + report + `"}`, sh, state,
				},
				Sys: &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS},
			}
			r := c.Run(t)
			const want = masked + "one\n--\n" + masked + "--\n" + masked + "one\n0\n"
			if r.Stdout != want || r.Stderr != "" {
				t.Errorf("want %q\n%v", want, r)
			}
			if got := launch.Report(t, report); !launch.Enforced(got, "proc-visibility") || !launch.Enforced(got, "proc") {
				t.Errorf("report: %+v", got)
			}
		})
	}
}

// What cannot be carried over leaves the old /proc, and is said.
func TestMissingPrivateProcIsReported(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	for _, c := range []struct{ name, before, why string }{
		{"many mounts", `for f in $(ls -p /proc/sys/kernel | grep -v / | head -41); do mount --bind /dev/null /proc/sys/kernel/$f; done`, "41 file systems"},
		{"part of proc", `mount --bind /proc/sys /proc`, "/proc"},
		{"another proc", `mkdir -p "$3/p" && mount -t proc proc "$3/p"`, "another proc file system is mounted at"},
		{"no proc", `mount -t tmpfs none /proc`, "/proc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := launch.Root.Dir(t)
			sh := launch.Install(t, dir, "sh", launch.Record{Real: "/bin/sh"})
			run := func(capabilities string) (launch.Result, string) {
				report := filepath.Join(dir, "report-"+capabilities)
				return launch.Cmd{
					Path: "/bin/sh", Args: []string{
						"sh", "-c", "mount --make-rprivate /\n" + c.before + "\nexport SANDBOX_EXEC_SHIM_POLICY=\"$0\"\n" + `exec "$1" -c "$2"`,
						`{"version":1,"isolate":["proc"],"capabilities":"` + capabilities + `","report":"` + report + `"}`, sh, "echo started", dir,
					},
					Sys: &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS},
				}.Run(t), report
			}
			r, report := run("restricted")
			if r.Stdout != "started\n" || r.Stderr != "" {
				t.Fatal(r)
			}
			got := launch.Report(t, report)
			if !launch.Enforced(got, "proc") || launch.Enforced(got, "proc-visibility") {
				t.Errorf("report: %+v", got.Enforced)
			}
			said := false
			for _, g := range got.NotEnforced {
				said = said || g.What == "proc-visibility" && g.Limit && strings.Contains(g.Why, c.why)
			}
			if !said {
				t.Errorf("want %q: %+v", c.why, got.NotEnforced)
			}
			if r, _ := run("keep"); r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, c.why) {
				t.Errorf("capabilities kept: %v", r)
			}
		})
	}
}

// The current directory and inherited descriptors lead around a new /proc.
func TestPrivateProcHasNoBackDoor(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	u := launch.Root
	dir := u.Dir(t)
	path := launch.Install(t, dir, "reach", launch.Record{Real: reacher(t)})
	sh := launch.Install(t, dir, "sh", launch.Record{Real: "/bin/sh"})
	report := filepath.Join(dir, "report")
	o := newOutsider(t, u)
	open := func(name string) *os.File {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	extra := make([]*os.File, 22)
	extra[17] = open("/")
	extra[18] = open("/proc/" + o.pid + "/environ")
	extra[19] = open("/proc/self/ns/mnt")
	extra[20] = open("/proc/cpuinfo")
	extra[21] = open("/etc/passwd")
	policy := object{"version": 1, "isolate": []string{"proc"}, "report": report}
	c := launch.Cmd{Path: path, Args: []string{"reach", "proc-at", o.pid, "0", "-"}, User: u, Extra: extra}
	if r := c.Run(t); r.Stdout != "ok\n" {
		t.Fatalf("without a policy a directory leads there: %v", r)
	}
	c.Policy = policy
	if r := c.Run(t); r.Stdout != "EBADF\n" {
		t.Errorf("by an inherited directory: %v", r)
	}
	got := launch.Report(t, report)
	os.Remove(report)
	var closed []string
	for _, d := range got.Descriptors {
		if d.Closed {
			closed = append(closed, strconv.Itoa(d.FD))
		}
	}
	if s := strings.Join(closed, " "); s != "20 21 22 23" {
		t.Errorf("closed: %s, %+v", s, got.Descriptors)
	}

	c = launch.Shell(sh, `cat ../`+o.pid+`/comm && echo read; pwd`)
	c.User, c.Dir = u, "/proc/sys"
	if r := c.Run(t); r.Stdout != "reach\nread\n/proc/sys\n" {
		t.Fatalf("without a policy: %v", r)
	}
	c.Policy = policy
	if r := c.Run(t); r.Stdout != "/proc/sys\n" || !strings.Contains(r.Stderr, "No such file") {
		t.Errorf("by the current directory: %v", r)
	}
}

// Without a private /proc, what was opened of other processes is closed.
func TestDescriptorsOfOtherProcessesAreClosed(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot)
	u := launch.Nobody
	dir := u.Dir(t)
	sh := launch.Install(t, dir, "sh", launch.Record{Real: "/bin/sh"})
	o := newOutsider(t, u)
	environ, err := os.Open("/proc/" + o.pid + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	defer environ.Close()
	here, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	c := launch.Shell(sh, `wc -c <&3 && ls -d /proc/self/fd/4/`)
	c.User, c.Extra = u, []*os.File{environ, here}
	if r := c.Run(t); r.Code != 0 || r.Stdout == "0\n" {
		t.Fatalf("without a policy: %v", r)
	}
	c.Args[2] = `wc -c <&3; ls -d /proc/self/fd/4/`
	c.Policy = object{"version": 1, "isolate": []string{"proc"}}
	if r := c.Run(t); r.Stdout != "/proc/self/fd/4/\n" || !strings.Contains(strings.ToLower(r.Stderr), "bad f") {
		t.Errorf("confined: %v", r)
	}
}
