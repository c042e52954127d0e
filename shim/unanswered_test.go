package shim

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// A call is a system call, or those of it whose argument number arg is is.
type call struct {
	nr   uintptr
	some bool
	arg  int
	is   uint32
}

// Where the two architectures have other names for one call (fstatat).
var fstatat = call{nr: map[string]uintptr{"amd64": 262, "arm64": 79}[runtime.GOARCH]}

var openat = call{nr: unix.SYS_OPENAT}

// answering runs f on a thread on which a system call fails with errno.
func answering(t *testing.T, c call, errno unix.Errno, f func()) {
	t.Helper()
	const arg0, words = 16, 8 // struct seccomp_data
	load := func(off int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: uint32(off)}
	}
	unless := func(k uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: skip}
	}
	ret := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	filter := []unix.SockFilter{load(0), unless(uint32(c.nr), 1), ret(unix.SECCOMP_RET_ERRNO | uint32(errno)), ret(unix.SECCOMP_RET_ALLOW)}
	if c.some {
		filter = slices.Insert(filter, 2, load(arg0+words*c.arg), unless(c.is, 1))
		filter[1].Jf = 3
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its filter
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
			err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
		}
		if err == nil {
			f()
		}
		done <- err
	}()
	must(t, <-done)
}

// silent are errnos that say nothing about what was asked.
var silent = []unix.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EIO, unix.ESTALE, unix.ENOTCONN}

// hiding is a plan that hides a directory.
func hiding(t *testing.T, dir string) *plan.Plan {
	t.Helper()
	table, err := mountTable()
	must(t, err)
	pl, err := plan.Make(&rules.Policy{Hidden: []rules.Entry{{Key: "hidden", Path: dir}}}, plan.Launch{EUID: 1, Mounts: table}, pathcheck.OS{})
	must(t, err)
	return pl
}

// workspaceOf is a plan and policy of scope workspace.
func workspaceOf(t *testing.T, dir string) (*rules.Policy, *plan.Plan) {
	t.Helper()
	p := &rules.Policy{Version: 1, Scope: rules.ScopeWorkspace, Workspace: dir, Toolchain: rules.ToolchainDirs{Mode: rules.ToolchainNone}}
	pl, err := plan.Make(p, plan.Launch{EUID: 1, Cwd: "/"}, pathcheck.OS{})
	must(t, err)
	return p, pl
}

func openStat(t *testing.T, path string) (int, *unix.Stat_t) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	var st unix.Stat_t
	must(t, unix.Fstat(fd, &st))
	return fd, &st
}

// A directory of which it cannot be told what is above it leads to what is hidden.
func TestLeadsToHiddenUnanswered(t *testing.T) {
	dir := realDir(t)
	must(t, os.MkdirAll(dir+"/secret/in/deep", 0o755))
	must(t, os.MkdirAll(dir+"/free/in", 0o755))
	pl := hiding(t, dir+"/secret")
	in, inSt := openStat(t, dir+"/secret/in/deep")
	out, outSt := openStat(t, dir+"/free/in")

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
	for _, errno := range append(silent, unix.EACCES) {
		answering(t, openat, errno, func() {
			ask(errno.Error()+", in it", in, inSt, "", unknown)
			ask(errno.Error()+", beside it", out, outSt, "", unknown)
			want := unknown
			if errno == unix.EACCES {
				want = "" // its path has told
			}
			ask(errno.Error()+", beside it, by its path", out, outSt, dir+"/free/in", want)
		})
	}
	answering(t, call{nr: unix.SYS_FSTAT}, unix.ENOMEM, func() { ask("fstat", in, inSt, "", unknown) })
	// Where nothing is hidden, nothing is asked.
	_, pl = workspaceOf(t, dir+"/free")
	answering(t, openat, unix.EMFILE, func() { ask("nothing hidden", out, outSt, "", "") })
}

// Only a kernel that cannot tell the mount leaves it at the name.
func TestPlacedUnanswered(t *testing.T) {
	dir := realDir(t)
	must(t, os.Mkdir(dir+"/secret", 0o755))
	must(t, os.WriteFile(dir+"/f", nil, 0o644))
	pl := hiding(t, dir+"/secret")
	fd, st := openStat(t, dir+"/f")
	elsewhere := dir + "/name/elsewhere"
	if !placed(fd, st, elsewhere, pl) {
		t.Fatal("not in a mount of this process")
	}
	for errno, want := range map[unix.Errno]bool{
		unix.ENOSYS: true, unix.EPERM: true, unix.EACCES: false, unix.ENOMEM: false, unix.EIO: false, unix.ESTALE: false, unix.ENOTCONN: false,
	} {
		answering(t, call{nr: unix.SYS_STATX}, errno, func() {
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
	dir := realDir(t)
	must(t, os.Mkdir(dir+"/secret", 0o755))
	must(t, os.WriteFile(dir+"/f", nil, 0o644))
	pl := hiding(t, dir+"/secret")
	file, _ := openStat(t, dir+"/f")
	status, _ := openStat(t, "/proc/self/status")
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	isolate := func(what rules.Isolation) *rules.Policy { return &rules.Policy{Isolate: what} }
	for _, row := range []struct {
		name string
		fd   int
		p    *rules.Policy
		pl   *plan.Plan
		call call
		text bool // the errno is that of readlink, which only leaves the name out
	}{
		{name: "file, proc", fd: file, p: isolate(rules.IsolateProc), pl: pl, call: call{nr: unix.SYS_FSTATFS}},
		{name: "proc file", fd: status, p: isolate(rules.IsolateProc), call: call{nr: unix.SYS_READLINKAT}, text: true},
		{name: "memory", fd: status, p: isolate(0), pl: pl, call: call{nr: unix.SYS_READLINKAT}, text: true},
		{name: "socket", fd: pair[0], p: isolate(rules.IsolateUnixSockets), call: call{nr: unix.SYS_GETSOCKOPT}},
		{name: "socket, network", fd: pair[0], p: &rules.Policy{Network: rules.Network{Mode: rules.NetworkDeny}}, call: call{nr: unix.SYS_GETSOCKOPT}},
		{name: "anything", fd: file, p: isolate(0), call: call{nr: unix.SYS_FSTAT}},
	} {
		if why, _ := reasonToClose(row.fd, row.p, row.pl, rules.Kernel{}); why != "" {
			t.Errorf("%s: answered: %q", row.name, why)
		}
		for _, errno := range silent {
			answering(t, row.call, errno, func() {
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
	must(t, unix.Dup3(0, 700, unix.O_CLOEXEC))
	defer unix.Close(700)
	want, err := openDescriptors()
	must(t, err)
	got, err := probedDescriptors()
	must(t, err)
	if !slices.Equal(got, want) || !slices.Contains(got, 700) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, nr := range []uintptr{unix.SYS_PSELECT6, unix.SYS_FCNTL} {
		answering(t, call{nr: nr}, unix.ENOMEM, func() {
			if fds, err := probedDescriptors(); !errors.Is(err, unix.ENOMEM) {
				t.Errorf("system call %d: %v, %v", nr, fds, err)
			}
		})
	}
}

// unreadable is a tree in which a name cannot be opened, for a reason.
type unreadable struct {
	pathcheck.Tree
	name string
	err  error
}

type unreadableNode struct {
	pathcheck.Node
	tree unreadable
}

func (u unreadable) Root() (pathcheck.Node, error) {
	n, err := u.Tree.Root()
	return unreadableNode{n, u}, err
}

func (n unreadableNode) Open(name string) (pathcheck.Node, error) {
	if name == n.tree.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: n.tree.err}
	}
	next, err := n.Node.Open(name)
	return unreadableNode{next, n.tree}, err
}

// What of the next launch is at stake is not known where it cannot be looked up.
func TestStakesUnanswered(t *testing.T) {
	dir := realDir(t)
	must(t, os.Mkdir(dir+"/ws", 0o755))
	must(t, os.WriteFile(dir+"/ws/policy", nil, 0o644))
	p, pl := workspaceOf(t, dir+"/ws")
	l := &launch{policy: p, source: load.Source{File: dir + "/ws/policy"}, target: target{path: "/"}}
	look := func(tree pathcheck.Tree) (gaps int, refused, unclear error) {
		g := &guard{launch: l, pl: pl, tree: tree}
		stakes := g.stakes()
		refused = g.protect(stakes)
		return len(g.gaps(stakes)), refused, g.err
	}
	for _, errno := range append(silent, unix.ELOOP) {
		if _, refused, unclear := look(unreadable{pathcheck.OS{}, "policy", errno}); refused != nil || !errors.Is(unclear, errno) {
			t.Errorf("%v: refused %v, unclear %v", errno, refused, unclear)
		}
	}
	if gaps, refused, unclear := look(unreadable{pathcheck.OS{}, "policy", unix.ENOENT}); gaps != 0 || refused != nil || unclear != nil {
		t.Errorf("absent: %d gaps, refused %v, unclear %v", gaps, refused, unclear)
	}
	// It is there, and in the workspace.
	if gaps, refused, unclear := look(pathcheck.OS{}); gaps == 0 || refused == nil || unclear != nil {
		t.Errorf("%d gaps, refused %v, unclear %v", gaps, refused, unclear)
	}
}

func TestCouldWriteUnanswered(t *testing.T) {
	path := realDir(t) + "/f"
	must(t, os.WriteFile(path, nil, 0o644))
	loc := &pathcheck.Location{Path: path, Info: pathcheck.Info{UID: uint32(os.Geteuid() + 1)}}
	ask := func() (bool, error) {
		var g guard
		return g.couldWrite(loc), g.err
	}
	if ok, err := ask(); !ok || err != nil {
		t.Errorf("writable: %v, %v", ok, err)
	}
	for _, errno := range []unix.Errno{unix.EACCES, unix.EROFS} {
		answering(t, call{nr: unix.SYS_FACCESSAT2}, errno, func() {
			if ok, err := ask(); ok || err != nil {
				t.Errorf("%v: %v, %v", errno, ok, err)
			}
		})
	}
	for _, errno := range silent {
		answering(t, call{nr: unix.SYS_FACCESSAT2}, errno, func() {
			if _, err := ask(); !errors.Is(err, errno) {
				t.Errorf("%v: %v", errno, err)
			}
		})
	}
	// What was there a moment ago is no place that cannot be written.
	loc.Path += "-gone"
	if _, err := ask(); !errors.Is(err, pathcheck.ErrChanged) {
		t.Errorf("gone: %v", err)
	}
	// Nor is one whose path is too long to ask about.
	loc.Path = "/" + strings.Repeat("d/", unix.PathMax/2)
	if _, err := ask(); !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("too long: %v", err)
	}
}

func TestReplaceableUnanswered(t *testing.T) {
	dir := realDir(t)
	must(t, os.Mkdir(dir+"/ws", 0o755))
	must(t, os.WriteFile(dir+"/ws/f", nil, 0o644))
	p, pl := workspaceOf(t, dir+"/ws")
	ask := func(path string) (string, error) {
		g := guard{launch: &launch{policy: p}, pl: pl, tree: pathcheck.OS{}}
		return g.replaceable(path), g.err
	}
	if root, err := ask(dir + "/ws/f"); root == "" || err != nil {
		t.Errorf("%q, %v", root, err)
	}
	if root, err := ask(dir + "/else"); root != "" || !errors.Is(err, pathcheck.ErrChanged) {
		t.Errorf("gone: %q, %v", root, err)
	}
	for _, errno := range silent {
		answering(t, fstatat, errno, func() {
			if root, err := ask(dir + "/ws/f"); root != "" || !errors.Is(err, errno) {
				t.Errorf("%v: %q, %v", errno, root, err)
			}
		})
	}
}

// A proof that got no answer is none.
func TestProofsUnanswered(t *testing.T) {
	dir := realDir(t)
	must(t, os.Mkdir(dir+"/ws", 0o755))
	_, pl := workspaceOf(t, dir+"/ws")
	launcher := []rules.Enforcement{{What: "proc"}}
	visible := []rules.Enforcement{{What: "proc-visibility"}}
	const there, gone = "/proc/self/status", "/proc/self/gone"
	tmpfile := call{nr: unix.SYS_OPENAT, some: true, arg: 2, is: uint32(unix.O_TMPFILE | unix.O_WRONLY | unix.O_CLOEXEC | unix.O_LARGEFILE)}
	for _, row := range []struct {
		name string
		do   func() error
		call call
		// holds are the errnos that prove something. Without an errno, every
		// proof finds the contrary.
		holds []unix.Errno
		// lenient is set where only scarcity is a failure.
		lenient bool
	}{
		{
			"closed", func() error { return mustStayClosed(there) }, openat,
			[]unix.Errno{unix.EACCES, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG},
			false,
		},
		{"hidden", func() error { return mustNotOpen(unix.AT_FDCWD, there, pathcheck.Regular) }, openat, []unix.Errno{unix.EACCES}, false},
		{"launcher", func() error { return proveProc(launcher) }, openat, []unix.Errno{unix.EACCES, unix.EPERM, unix.ENOENT}, false},
		{"visible", func() error { return proveProc(visible) }, fstatat, []unix.Errno{unix.EACCES, unix.EPERM, unix.ENOENT}, false},
		{"read-only, looked up", func() error { return proveReadOnly(pl) }, openat, nil, true},
		{"read-only, tried", func() error { return proveReadOnly(pl) }, tmpfile, []unix.Errno{unix.EACCES}, true},
	} {
		if err := row.do(); err == nil || pathcheck.Exhausted(err) {
			t.Errorf("%s: the contrary is not found: %v", row.name, err)
		} else if what := doubt(err); what != "the confinement does not hold" {
			t.Errorf("%s: %s: %v", row.name, what, err)
		}
		for _, errno := range row.holds {
			answering(t, row.call, errno, func() {
				if err := row.do(); err != nil {
					t.Errorf("%s: %v: %v", row.name, errno, err)
				}
			})
		}
		for _, errno := range append(silent, unix.ENXIO, unix.EBUSY) {
			if row.lenient && !pathcheck.Exhausted(errno) {
				continue
			}
			answering(t, row.call, errno, func() {
				err := row.do()
				if !errors.Is(err, errno) || (doubt(err) == "the confinement cannot be proved") != pathcheck.Exhausted(errno) {
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
	must(t, err)
	defer unix.Close(socket)
	must(t, unix.Bind(socket, &unix.SockaddrUnix{Name: dir + "/socket"}))
	if err := mustStayClosed(dir + "/socket"); !errors.Is(err, unix.ENXIO) {
		t.Errorf("a socket: %v", err)
	}
}

// A file that cannot be looked at is neither a program nor missing.
func TestTargetUnanswered(t *testing.T) {
	dir := realDir(t)
	must(t, os.Mkdir(dir+"/bin", 0o755))
	path := dir + "/bin/prog"
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	env := []string{"PATH=" + dir + "/none:" + dir + "/bin"}
	search := func() error { _, _, err := searchPath("prog", chain{env: env}); return err }
	check := func() error { _, err := checkFile(path, self{}); return err }
	for _, err := range []error{search(), check()} {
		must(t, err)
	}
	for _, row := range []struct {
		call  call
		errno unix.Errno
		want  error
	}{
		{openat, unix.EACCES, nil}, // it can be started all the same
		{openat, unix.ENOENT, errNotFound},
		{call{nr: unix.SYS_FACCESSAT2}, unix.EACCES, errNotExecutable},
		{fstatat, unix.ENOENT, errNotFound},
		{fstatat, unix.ENOTDIR, errNotFound},
	} {
		answering(t, row.call, row.errno, func() {
			for name, do := range map[string]func() error{"check": check, "search": search} {
				if err := do(); !errors.Is(err, row.want) {
					t.Errorf("%s: system call %d: %v: %v, want %v", name, row.call.nr, row.errno, err, row.want)
				}
			}
		})
	}
	for _, c := range []call{openat, {nr: unix.SYS_FACCESSAT2}, fstatat} {
		for _, errno := range silent[1:] { // EMFILE is no obstacle for readHead
			answering(t, c, errno, func() {
				for name, do := range map[string]func() error{"check": check, "search": search} {
					if err := do(); !errors.Is(err, errno) || errors.Is(err, errNotFound) {
						t.Errorf("%s: system call %d: %v: %v", name, c.nr, errno, err)
					}
				}
			})
		}
	}
}

// A shim that could not look at itself follows neither its record nor PATH.
func TestSelfUnanswered(t *testing.T) {
	s := &Start{ExecFn: "/proc/self/exe"}
	if me := findSelf(s); !me.known || !me.readable || me.err != nil {
		t.Fatalf("%+v", me)
	}
	for _, c := range []call{{nr: unix.SYS_FACCESSAT2}, fstatat, {nr: unix.SYS_READLINKAT}} {
		var me self
		answering(t, c, unix.ENOMEM, func() { me = findSelf(s) })
		if _, err := findTarget(s, me, "/bin/true", nil); !errors.Is(err, unix.ENOMEM) {
			t.Errorf("system call %d: %+v, %v", c.nr, me, err)
		}
	}
	answering(t, call{nr: unix.SYS_FACCESSAT2}, unix.EACCES, func() {
		if me := findSelf(s); !me.known || me.readable || me.err != nil {
			t.Errorf("unreadable: %+v", me)
		}
	})
}

// What is not known of the capabilities is said.
func TestCapabilitiesUnanswered(t *testing.T) {
	answering(t, call{nr: unix.SYS_CAPGET}, unix.ENOMEM, func() {
		if names := dangerousHeld(); !strings.Contains(names, unix.ENOMEM.Error()) {
			t.Errorf("held: %q", names)
		}
	})
	bounding := call{nr: unix.SYS_PRCTL, some: true, arg: 0, is: unix.PR_CAPBSET_READ}
	for errno, want := range map[unix.Errno]bool{unix.EINVAL: false, unix.ENOMEM: true} {
		answering(t, bounding, errno, func() {
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
