package confine

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/planner"
)

// hiding is a plan that hides a directory.
func hiding(t *testing.T, dir string) *plan.Plan {
	t.Helper()
	table, err := planner.MountTable(nil)
	errnotest.Must(t, err)
	pl, err := plan.Make(&rules.Policy{Hidden: []rules.Entry{{Key: "hidden", Path: dir}}}, plan.Launch{EUID: 1, Mounts: table}, pathcheck.OS{})
	errnotest.Must(t, err)
	return pl
}

// workspaceOf is a plan and policy of scope workspace.
func workspaceOf(t *testing.T, dir string) (*rules.Policy, *plan.Plan) {
	t.Helper()
	p := &rules.Policy{Version: 1, Scope: rules.ScopeWorkspace, Workspace: dir, Toolchain: rules.ToolchainDirs{Mode: rules.ToolchainNone}}
	pl, err := plan.Make(p, plan.Launch{EUID: 1, Cwd: "/"}, pathcheck.OS{})
	errnotest.Must(t, err)
	return p, pl
}

// A directory of which it cannot be told what is above it leads to what is hidden.
func TestLeadsToHiddenUnanswered(t *testing.T) {
	dir := errnotest.RealDir(t)
	errnotest.Must(t, os.MkdirAll(dir+"/secret/in/deep", 0o755))
	errnotest.Must(t, os.MkdirAll(dir+"/free/in", 0o755))
	pl := hiding(t, dir+"/secret")
	in, inSt := errnotest.OpenStat(t, dir+"/secret/in/deep")
	out, outSt := errnotest.OpenStat(t, dir+"/free/in")

	const hidden, unknown = "leads to the hidden path", "cannot be examined"
	ask := func(what string, fd int, st *unix.Stat_t, text, want string) {
		t.Helper()
		if why := leadsToHidden(fd, st, text, pl); !strings.HasPrefix(why, want) || (why == "") != (want == "") {
			t.Errorf("%s: %q, want %q", what, why, want)
		}
	}
	ask("in it", in, inSt, "", hidden)
	ask("in it, by its path", in, inSt, dir+"/secret/in/deep", hidden)
	ask("beside it", out, outSt, "", "")
	for _, errno := range append(errnotest.Silent, unix.EACCES) {
		errnotest.Answering(t, errnotest.Openat, errno, func() {
			ask(errno.Error()+", in it", in, inSt, "", unknown)
			ask(errno.Error()+", beside it", out, outSt, "", unknown)
			want := unknown
			if errno == unix.EACCES {
				want = "" // its path has told
			}
			ask(errno.Error()+", beside it, by its path", out, outSt, dir+"/free/in", want)
		})
	}
	errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_FSTAT}, unix.ENOMEM, func() { ask("fstat", in, inSt, "", unknown) })
	// Where nothing is hidden, nothing is asked.
	_, pl = workspaceOf(t, dir+"/free")
	errnotest.Answering(t, errnotest.Openat, unix.EMFILE, func() { ask("nothing hidden", out, outSt, "", "") })
}

// Only a kernel that cannot tell the mount leaves it at the name.
func TestPlacedUnanswered(t *testing.T) {
	dir := errnotest.RealDir(t)
	errnotest.Must(t, os.Mkdir(dir+"/secret", 0o755))
	errnotest.Must(t, os.WriteFile(dir+"/f", nil, 0o644))
	pl := hiding(t, dir+"/secret")
	fd, st := errnotest.OpenStat(t, dir+"/f")
	elsewhere := dir + "/name/elsewhere"
	if !placed(fd, st, elsewhere, pl) {
		t.Fatal("not in a mount of this process")
	}
	for errno, want := range map[unix.Errno]bool{
		unix.ENOSYS: true, unix.EPERM: true, unix.EACCES: false, unix.ENOMEM: false, unix.EIO: false, unix.ESTALE: false, unix.ENOTCONN: false,
	} {
		errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_STATX}, errno, func() {
			if got := placed(fd, st, elsewhere, pl); got != want {
				t.Errorf("%v: %v, want %v", errno, got, want)
			}
			if !placed(fd, st, dir+"/f", pl) {
				t.Errorf("%v: the name leads there, and is not taken", errno)
			}
		})
	}
}

// Descriptors of which a question cannot be answered are closed.
func TestReasonToCloseUnanswered(t *testing.T) {
	dir := errnotest.RealDir(t)
	errnotest.Must(t, os.Mkdir(dir+"/secret", 0o755))
	errnotest.Must(t, os.WriteFile(dir+"/f", nil, 0o644))
	pl := hiding(t, dir+"/secret")
	file, _ := errnotest.OpenStat(t, dir+"/f")
	status, _ := errnotest.OpenStat(t, "/proc/self/status")
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	errnotest.Must(t, err)
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	isolate := func(what rules.Isolation) *rules.Policy { return &rules.Policy{Isolate: what} }
	for _, row := range []struct {
		name string
		fd   int
		p    *rules.Policy
		pl   *plan.Plan
		call errnotest.Call
		text bool // the errno is that of readlink, which only leaves the name out
	}{
		{name: "file, proc", fd: file, p: isolate(rules.IsolateProc), pl: pl, call: errnotest.Call{Nr: unix.SYS_FSTATFS}},
		{name: "proc file", fd: status, p: isolate(rules.IsolateProc), call: errnotest.Call{Nr: unix.SYS_READLINKAT}, text: true},
		{name: "memory", fd: status, p: isolate(0), pl: pl, call: errnotest.Call{Nr: unix.SYS_READLINKAT}, text: true},
		{name: "socket", fd: pair[0], p: isolate(rules.IsolateUnixSockets), call: errnotest.Call{Nr: unix.SYS_GETSOCKOPT}},
		{name: "socket, network", fd: pair[0], p: &rules.Policy{Network: rules.Network{Mode: rules.NetworkDeny}}, call: errnotest.Call{Nr: unix.SYS_GETSOCKOPT}},
		{name: "anything", fd: file, p: isolate(0), call: errnotest.Call{Nr: unix.SYS_FSTAT}},
	} {
		if why, _ := reasonToClose(row.fd, row.p, row.pl, rules.Kernel{}); why != "" {
			t.Errorf("%s: answered: %q", row.name, why)
		}
		for _, errno := range errnotest.Silent {
			errnotest.Answering(t, row.call, errno, func() {
				why, _ := reasonToClose(row.fd, row.p, row.pl, rules.Kernel{})
				if row.text && why == "" || !row.text && !strings.HasPrefix(why, "cannot be examined: ") {
					t.Errorf("%s: %v: %q", row.name, errno, why)
				}
			})
		}
	}
}

// All numbers are found without /proc, also far above the others.
func TestProbedDescriptors(t *testing.T) {
	errnotest.Must(t, unix.Dup3(0, 700, unix.O_CLOEXEC))
	defer unix.Close(700)
	want, err := openDescriptors()
	errnotest.Must(t, err)
	got, err := probedDescriptors()
	errnotest.Must(t, err)
	if !slices.Equal(got, want) || !slices.Contains(got, 700) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, nr := range []uintptr{unix.SYS_PSELECT6, unix.SYS_FCNTL} {
		errnotest.Answering(t, errnotest.Call{Nr: nr}, unix.ENOMEM, func() {
			if fds, err := probedDescriptors(); !errors.Is(err, unix.ENOMEM) {
				t.Errorf("system call %d: %v, %v", nr, fds, err)
			}
		})
	}
}

// A proof that got no answer is none.
func TestProofsUnanswered(t *testing.T) {
	readableLauncher(t)
	dir := errnotest.RealDir(t)
	errnotest.Must(t, os.Mkdir(dir+"/ws", 0o755))
	_, pl := workspaceOf(t, dir+"/ws")
	const there, gone = "/proc/self/status", "/proc/self/gone"
	tmpfile := errnotest.Call{Nr: unix.SYS_OPENAT, Some: true, Arg: 2, Is: uint32(unix.O_TMPFILE | unix.O_WRONLY | unix.O_CLOEXEC | unix.O_LARGEFILE)}
	for _, row := range []struct {
		name string
		do   func() error
		call errnotest.Call
		// holds are the errnos that prove something. Without an errno, every
		// proof finds the contrary.
		holds []unix.Errno
		// lenient is set where only scarcity is a failure.
		lenient bool
	}{
		{
			"closed", func() error { return mustStayClosed(there) }, errnotest.Openat,
			[]unix.Errno{unix.EACCES, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG},
			false,
		},
		{"hidden", func() error { return mustNotOpen(unix.AT_FDCWD, there, pathcheck.Regular) }, errnotest.Openat, []unix.Errno{unix.EACCES}, false},
		{"launcher", launcherClosed, errnotest.Openat, []unix.Errno{unix.EACCES, unix.EPERM, unix.ENOENT}, false},
		{"visible", launcherHidden, errnotest.Fstatat, []unix.Errno{unix.EACCES, unix.EPERM, unix.ENOENT}, false},
		{"read-only, looked up", func() error { return proveReadOnly(pl) }, errnotest.Openat, nil, true},
		{"read-only, tried", func() error { return proveReadOnly(pl) }, tmpfile, []unix.Errno{unix.EACCES}, true},
	} {
		if err := row.do(); err == nil || pathcheck.Exhausted(err) {
			t.Errorf("%s: the contrary is not found: %v", row.name, err)
		} else if what := Doubt(err); what != "the confinement does not hold" {
			t.Errorf("%s: %s: %v", row.name, what, err)
		}
		for _, errno := range row.holds {
			errnotest.Answering(t, row.call, errno, func() {
				if err := row.do(); err != nil {
					t.Errorf("%s: %v: %v", row.name, errno, err)
				}
			})
		}
		for _, errno := range append(errnotest.Silent, unix.ENXIO, unix.EBUSY) {
			if row.lenient && !pathcheck.Exhausted(errno) {
				continue
			}
			errnotest.Answering(t, row.call, errno, func() {
				err := row.do()
				if !errors.Is(err, errno) || (Doubt(err) == "the confinement cannot be proved") != pathcheck.Exhausted(errno) {
					t.Errorf("%s: %v: %v", row.name, errno, err)
				}
			})
		}
	}
	if err := mustStayClosed(gone); err != nil {
		t.Error(err)
	}
	// A socket has appeared: nothing denies it, and who can connect needs no open.
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	errnotest.Must(t, err)
	defer unix.Close(socket)
	errnotest.Must(t, unix.Bind(socket, &unix.SockaddrUnix{Name: dir + "/socket"}))
	if err := mustStayClosed(dir + "/socket"); !errors.Is(err, unix.ENXIO) {
		t.Errorf("a socket: %v", err)
	}
}

// What is not known of the capabilities is said.
func TestCapabilitiesUnanswered(t *testing.T) {
	errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_CAPGET}, unix.ENOMEM, func() {
		if names := dangerousHeld(); !strings.Contains(names, unix.ENOMEM.Error()) {
			t.Errorf("held: %q", names)
		}
	})
	bounding := errnotest.Call{Nr: unix.SYS_PRCTL, Some: true, Arg: 0, Is: unix.PR_CAPBSET_READ}
	for errno, want := range map[unix.Errno]bool{unix.EINVAL: false, unix.ENOMEM: true} {
		errnotest.Answering(t, bounding, errno, func() {
			// Without CAP_SETPCAP it is asked for.
			hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			var data [2]unix.CapUserData
			if err := unix.Capset(&hdr, &data[0]); err != nil {
				t.Errorf("capset: %v", err)
			}
			if got := boundingExceeds(); got != want {
				t.Errorf("%v: %v, want %v", errno, got, want)
			}
		})
	}
}
