package descriptors

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// deepIn makes a directory so deep in another that it has no path, and opens it.
func deepIn(t *testing.T, u launch.User, dir string) *os.File {
	t.Helper()
	const length, depth = 250, 18
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for range depth {
		if err != nil {
			t.Fatal(err)
		}
		name := strings.Repeat("d", length)
		if err = unix.Mkdirat(at, name, 0o755); err == nil {
			err = unix.Fchownat(at, name, u.UID, u.GID, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		var next int
		next, err = unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		unix.Close(at)
		at = next
	}
	f := os.NewFile(uintptr(at), "deep")
	t.Cleanup(func() { f.Close() })
	return f
}

// unsearchable takes all permissions of a directory away.
func unsearchable(t *testing.T, f *os.File) *os.File {
	t.Helper()
	if err := f.Chmod(0); err != nil {
		t.Fatal(err)
	}
	return f
}

// A directory of which it is not known what is above it is closed: by its path,
// where it has one, or because no question has been answered.
func TestUnexaminedDirectoryIsClosed(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot)
	const hidden, unknown = "leads to the hidden path", "cannot be examined"
	const outer = "stands where it cannot be told"
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		dir := place(t, u)
		at := func(name string) string { return filepath.Join(dir, name) }
		shallow := open(t, u.Mkdir(t, at("work/shut"), 0o755), unix.O_RDONLY)
		deep, beside := deepIn(t, u, at("secret")), deepIn(t, u, at("work"))
		shut := unsearchable(t, deepIn(t, u, u.Mkdir(t, at("secret/more"), 0o755)))
		besides := unsearchable(t, open(t, u.Mkdir(t, at("work/none"), 0o755), unix.O_RDONLY))
		asks3 := func(f *os.File, errno syscall.Errno) (why string, open bool) {
			t.Helper()
			report := filepath.Join(u.Dir(t), "report")
			sh := launch.Install(t, u.Dir(t), "sh", launch.Record{Real: "/bin/sh"})
			c := launch.Shell(sh, asks, "3")
			c.User, c.Extra = u, []*os.File{f}
			c.Policy = object{"version": 1, "required": false, "hidden": []string{at("secret")}, "report": report}
			if errno != 0 {
				// The first step up from it.
				c.Setup = &launch.Setup{Errno: []launch.Errno{{Nr: unix.SYS_OPENAT, If: true, Arg0: 3, Errno: errno}}}
			}
			r := c.Run(t)
			if r.Code != 0 {
				t.Fatal(r)
			}
			for _, d := range launch.Report(t, report).Descriptors {
				why = d.Why
			}
			return why, strings.TrimSpace(r.Stdout) == "3"
		}
		type row struct {
			name  string
			f     *os.File
			errno syscall.Errno
			want  string
		}
		rows := []row{
			{"deep", deep, 0, hidden},
			{"deep, beside", beside, 0, ""},
			{"beside", shallow, 0, ""},
			{"beside, shut", besides, 0, ""},
			{"deep, shut", shut, 0, hidden},
			{"deep, no search", deep, unix.EACCES, unknown},
			{"deep, beside, no search", beside, unix.EACCES, unknown},
			{"beside, no search", shallow, unix.EACCES, ""},
		}
		if u != launch.Root {
			rows[4].want = unknown // its path is too long, and it may not be searched
		} else if launch.Mounts.Here() {
			rows[1].want = outer // it cannot be opened anew by its path
		}
		for _, errno := range []syscall.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EIO, unix.ESTALE} {
			rows = append(rows, row{"deep, " + errno.Error(), deep, errno, unknown}, row{"beside, " + errno.Error(), shallow, errno, unknown})
		}
		for _, row := range rows {
			why, open := asks3(row.f, row.errno)
			if open != (row.want == "") || !strings.HasPrefix(why, row.want) || row.want == "" && why != "" {
				t.Errorf("%s: open %v, %q, want %q", row.name, open, why, row.want)
			}
		}
	})
}

// Without /proc, descriptors are found that stand above a limit which was lowered
// after they were opened.
func TestDescriptorsAboveALoweredLimitAreClosed(t *testing.T) {
	const before = 1024
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts, launch.Program("bash"), launch.OpenFiles(before))
	dir := place(t, launch.Root)
	bash := launch.Install(t, launch.Root.Dir(t), "bash", launch.Record{Real: launch.Look(t, "bash")})
	const numbers = "3 60 64 200 511 512 1000"
	for _, policy := range []string{``, `{"version":1,"required":false,"hidden":["` + filepath.Join(dir, "secret") + `"]}`} {
		c := launch.Cmd{
			Path: launch.Look(t, "bash"), Args: []string{
				"bash", "-c", `mount --make-rprivate / && mount -t tmpfs none /proc || exit 9
for n in ` + numbers + `; do eval "exec $n<\"\$3/secret\""; done; exec 70</dev/null
ulimit -n 40; export SANDBOX_EXEC_SHIM_POLICY="$0"
exec "$1" -c "$2" sh ` + numbers + ` 70`, policy, bash, asks, dir,
			},
			Sys:   &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS},
			Setup: &launch.Setup{NoFile: &[2]uint64{before, before}},
		}
		want := "70"
		if policy == "" {
			want = numbers + " 70"
		}
		if r := c.Run(t); strings.TrimSpace(r.Stdout) != want {
			t.Errorf("%s: want %s, have %v", policy, want, r)
		}
	}
}

// endedThread opens the memory of a thread of this process that has ended.
func endedThread(t *testing.T) *os.File {
	t.Helper()
	type thread struct{ id, dir, fd int }
	threads, end := make(chan thread), make(chan struct{})
	defer close(end)
	for {
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends
			id := unix.Gettid()
			dir, err := unix.Open(fmt.Sprintf("/proc/self/task/%d", id), unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Error(err)
			}
			fd, err := unix.Openat(dir, "mem", unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Error(err)
			}
			threads <- thread{id, dir, fd}
			if id == os.Getpid() {
				<-end // the first thread never ends; the next goroutine gets another
				runtime.UnlockOSThread()
			}
		}()
		th := <-threads
		mem := os.NewFile(uintptr(th.fd), "mem")
		if th.id == os.Getpid() {
			unix.Close(th.dir)
			mem.Close()
			continue
		}
		for unix.Tgkill(os.Getpid(), th.id, 0) == nil {
			runtime.Gosched()
		}
		// The kernel finds out when it is asked for the name again.
		if fd, err := unix.Openat(th.dir, "mem", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			unix.Close(fd)
			t.Fatal("the thread has not ended")
		}
		unix.Close(th.dir)
		if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", th.fd)); err != nil || !strings.HasSuffix(name, "/mem (deleted)") {
			t.Fatalf("%q, %v", name, err)
		}
		return mem
	}
}

// The memory of a thread that has ended is still that of its process.
func TestMemoryOfAnEndedThreadIsClosed(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		dir := u.Dir(t)
		shim := launch.Install(t, u.Mkdir(t, filepath.Join(dir, "bin"), 0o755), "sh", launch.Record{Real: "/bin/sh"})
		mem := endedThread(t)
		defer mem.Close()
		c := launch.Shell(shim, asks, "3")
		c.User, c.Extra = u, []*os.File{mem}
		if r := c.Run(t); strings.TrimSpace(r.Stdout) != "3" {
			t.Fatalf("without a policy: %v", r)
		}
		c.Policy = object{"version": 1, "hidden": []string{u.Mkdir(t, filepath.Join(dir, "hidden"), 0o755)}}
		if r := c.Run(t); r.Code != 0 || r.Stdout != "" {
			t.Errorf("with a policy: %v", r)
		}
	})
}
