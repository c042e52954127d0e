package confine

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/child"
)

// open opens a file for a test that closes it itself, perhaps.
func open(t *testing.T, path string, flags int) int {
	t.Helper()
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	errnotest.Must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func socket(t *testing.T, family, kind int) int {
	t.Helper()
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	errnotest.Must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// pairOf returns one end of a connected pair.
func pairOf(t *testing.T, kind int) int {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	errnotest.Must(t, err)
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	return fds[0]
}

// ringFD makes an io_uring, or ends the test.
func ringFD(t *testing.T) int {
	t.Helper()
	var params [120]byte // struct io_uring_params
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	if errno != 0 {
		t.Logf("no io_uring here: %v", errno)
		return -1
	}
	t.Cleanup(func() { unix.Close(int(fd)) })
	return int(fd)
}

// What leads around the policy has a reason to be closed, and nothing else has.
func TestDescriptorsThatLeadAround(t *testing.T) {
	dir := stage(t)
	errnotest.Must(t, os.MkdirAll(dir+"/secret/in/deep", 0o755))
	deep := open(t, dir+"/secret/in/deep", unix.O_PATH|unix.O_DIRECTORY)
	file := open(t, dir+"/secret/f", unix.O_RDONLY)
	shown := open(t, dir+"/secret/shown", unix.O_PATH)
	free := open(t, dir+"/beside/f", unix.O_RDWR)
	hidden := hiding(t, dir+"/secret")
	exposing := planOf(t, &rules.Policy{Version: 1, Hidden: hide(dir + "/secret"), Exposed: hide(dir + "/secret/shown")}).Files
	status, memory := open(t, "/proc/self/status", unix.O_RDONLY), open(t, "/proc/self/mem", unix.O_RDONLY)
	launcher := open(t, "/proc/1/status", unix.O_RDONLY)
	listener := socket(t, unix.AF_UNIX, unix.SOCK_STREAM)
	errnotest.Must(t, unix.Bind(listener, &unix.SockaddrUnix{Name: abstractName(os.Getpid())}))
	errnotest.Must(t, unix.Listen(listener, 1))
	null, err := os.Open("/dev/null")
	errnotest.Must(t, err)
	defer null.Close()

	deny := &rules.Policy{Network: rules.Network{Mode: rules.NetworkDeny}}
	sockets := &rules.Policy{Isolate: rules.IsolateUnixSockets}
	proc, hides := &rules.Policy{Isolate: rules.IsolateProc}, &rules.Policy{Hidden: hide(dir + "/secret")}
	listed := &rules.Policy{Descriptors: rules.DescriptorPolicy{Mode: rules.DescriptorsList, Keep: []int{free}}}
	none := &rules.Policy{}
	private := rules.Kernel{PrivateProc: true}
	for _, row := range []struct {
		name string
		fd   int
		p    *rules.Policy
		pl   *plan.Plan
		k    rules.Kernel
		want string
	}{
		{"anything, nothing asked", free, none, nil, rules.Kernel{}, ""},
		{"hidden file", file, hides, hidden, rules.Kernel{}, "leads to the hidden path"},
		{"directory beneath", deep, hides, hidden, rules.Kernel{}, "leads to the hidden path"},
		{"exposed directory", shown, hides, exposing, rules.Kernel{}, ""},
		{"beside", free, hides, hidden, rules.Kernel{}, ""},
		{"a TCP socket", socket(t, unix.AF_INET, unix.SOCK_STREAM), deny, nil, rules.Kernel{}, "can reach a network"},
		{"a unix socket, network denied", pairOf(t, unix.SOCK_STREAM), deny, nil, rules.Kernel{}, ""},
		{"a TCP socket, network allowed", socket(t, unix.AF_INET, unix.SOCK_STREAM), sockets, nil, rules.Kernel{}, ""},
		{"a loose unix socket", socket(t, unix.AF_UNIX, unix.SOCK_STREAM), sockets, nil, rules.Kernel{}, "can reach any other"},
		{"a loose unix socket, nothing asked", socket(t, unix.AF_UNIX, unix.SOCK_STREAM), none, nil, rules.Kernel{}, ""},
		{"a connected one", pairOf(t, unix.SOCK_STREAM), sockets, nil, rules.Kernel{}, ""},
		{"a listening one", listener, sockets, nil, rules.Kernel{}, ""},
		{"one for datagrams, though connected", pairOf(t, unix.SOCK_DGRAM), sockets, nil, rules.Kernel{}, "can reach any other"},
		{"a process outside", launcher, proc, nil, rules.Kernel{}, "another process in /proc"},
		{"this process", status, proc, nil, rules.Kernel{}, ""},
		{"a process outside, not isolated", launcher, none, nil, rules.Kernel{}, ""},
		{"memory", memory, none, hidden, rules.Kernel{}, "the memory of a process"},
		{"memory, files not confined", memory, none, nil, rules.Kernel{}, ""},
		{"a directory, /proc replaced", shown, proc, nil, private, "the outer /proc"},
		{"a directory, /proc as it was", shown, proc, nil, rules.Kernel{}, ""},
		{"a file, /proc replaced", free, proc, nil, private, ""},
		{"mounts, /proc replaced", open(t, "/proc/self/ns/mnt", unix.O_RDONLY), proc, nil, private, "the outer mount namespace"},
		{"in the list", free, listed, nil, rules.Kernel{}, ""},
		{"not in the list", file, listed, nil, rules.Kernel{}, "not in the policy's list"},
		{"all are closed", free, &rules.Policy{Descriptors: rules.DescriptorPolicy{Mode: rules.DescriptorsClose}}, nil, rules.Kernel{}, "closes inherited"},
		{"standard output is not", 1, &rules.Policy{Descriptors: rules.DescriptorPolicy{Mode: rules.DescriptorsClose}}, nil, rules.Kernel{}, ""},
		{"kept by its mode", free, &rules.Policy{Descriptors: rules.DescriptorPolicy{Mode: rules.DescriptorsKeep}}, nil, rules.Kernel{}, ""},
		{"a ring", ringFD(t), none, nil, rules.Kernel{}, "io_uring"},
		{"a harmless device", int(null.Fd()), hides, hidden, rules.Kernel{}, ""},
	} {
		if row.fd < 0 {
			continue
		}
		why, _ := reasonToClose(row.fd, row.p, row.pl, row.k)
		if !strings.Contains(why, row.want) || (why == "") != (row.want == "") {
			t.Errorf("%s: %q, want %q", row.name, why, row.want)
		}
	}
	// Moved away and renamed, it is the same inode.
	errnotest.Must(t, os.Rename(dir+"/secret", dir+"/other"))
	for name, fd := range map[string]int{"directory beneath": deep, "the hidden one": open(t, dir+"/other", unix.O_PATH)} {
		if why, _ := reasonToClose(fd, hides, hidden, rules.Kernel{}); !strings.Contains(why, "leads to the hidden path") {
			t.Errorf("%s, moved: %q", name, why)
		}
	}
}

// A disk reads every file on it, whatever its node is called and wherever it stands.
func TestDescriptorsOfDisks(t *testing.T) {
	child.Root(t)
	dir := stage(t)
	errnotest.Must(t, unix.Mknod(dir+"/disk", unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0))))
	errnotest.Must(t, unix.Mknod(dir+"/null", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
	hidden, hides := hiding(t, dir+"/secret"), &rules.Policy{Hidden: hide(dir + "/secret")}
	for name, want := range map[string]string{"disk": "memory or a disk", "null": ""} {
		fd := open(t, dir+"/"+name, unix.O_PATH)
		if why, _ := reasonToClose(fd, hides, hidden, rules.Kernel{}); !strings.Contains(why, want) || (why == "") != (want == "") {
			t.Errorf("%s: %q", name, why)
		}
		// Where nothing is hidden, there is nothing to reach.
		if why, _ := reasonToClose(fd, &rules.Policy{}, hidden, rules.Kernel{}); why != "" {
			t.Errorf("%s, nothing hidden: %q", name, why)
		}
	}
}

// A descriptor of a mount that this process does not have stands nobody knows where.
func TestDescriptorsOfOtherMounts(t *testing.T) {
	child.Root(t)
	dir := stage(t)
	hidden := hiding(t, dir+"/secret")
	hides := &rules.Policy{Hidden: hide(dir + "/secret")}
	tree, err := unix.OpenTree(unix.AT_FDCWD, dir+"/secret", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	errnotest.Must(t, err)
	defer unix.Close(tree)
	fd, err := unix.Openat(tree, "f", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	errnotest.Must(t, err)
	defer unix.Close(fd)
	if why, text := reasonToClose(fd, hides, hidden, rules.Kernel{}); !strings.Contains(why, "where it cannot be told") {
		t.Errorf("%q: %q", text, why)
	}
}

// Those above 2 are closed, those on 0 to 2 only listed, and what may write outside
// of the roots is listed and stays.
func TestCloseDescriptors(t *testing.T) {
	dir := stage(t)
	p, pl := workspaceOf(t, dir+"/ws")
	p.Descriptors = rules.DescriptorPolicy{Mode: rules.DescriptorsKeep}
	outside, inside := open(t, dir+"/beside/f", unix.O_WRONLY), open(t, dir+"/ws/f", unix.O_WRONLY)
	reading := open(t, dir+"/beside/f", unix.O_RDONLY)
	gone := open(t, dir+"/secret/f", unix.O_WRONLY)
	errnotest.Must(t, os.Remove(dir+"/secret/f"))
	list, err := CloseDescriptors([]int{outside, inside, reading, gone}, p, pl, &Namespace{})
	errnotest.Must(t, err)
	if len(list) != 1 || list[0].FD != outside || list[0].Closed || list[0].LeadsTo != dir+"/beside/f" || !strings.Contains(list[0].Why, "open for writing") {
		t.Errorf("%+v", list)
	}
	if list, err := CloseDescriptors([]int{outside}, &rules.Policy{}, pl, &Namespace{}); err != nil || list != nil {
		t.Errorf("without a scope: %+v, %v", list, err)
	}

	p.Descriptors.Mode = rules.DescriptorsClose
	doomed, err := unix.Dup(reading)
	errnotest.Must(t, err)
	list, err = CloseDescriptors([]int{0, doomed}, p, pl, &Namespace{})
	if err != nil || len(list) != 1 || !list[0].Closed || list[0].FD != doomed {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := unix.FcntlInt(uintptr(doomed), unix.F_GETFD, 0); err != unix.EBADF {
		t.Errorf("%d is still open: %v", doomed, err)
	}
	// A standard descriptor that leads around stays, and is said.
	errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_FSTAT}, unix.EIO, func() {
		list, err := CloseDescriptors([]int{0}, p, pl, &Namespace{})
		if err != nil || len(list) != 1 || list[0].Closed || list[0].Why == "" {
			t.Errorf("%+v, %v", list, err)
		}
	})
	if _, err := unix.FcntlInt(0, unix.F_GETFD, 0); err != nil {
		t.Errorf("standard input was closed: %v", err)
	}
	errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_CLOSE}, unix.EIO, func() {
		if _, err := CloseDescriptors([]int{reading}, p, pl, &Namespace{}); !errors.Is(err, unix.EIO) {
			t.Errorf("one that cannot be closed: %v", err)
		}
	})
	errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_CLOSE}, unix.EINTR, func() {
		if _, err := CloseDescriptors([]int{reading}, p, pl, &Namespace{}); err != nil {
			t.Errorf("close(2) that was interrupted: %v", err)
		}
	})
}

// What stands in for a closed descriptor was not inherited, nor what the list itself
// is read from.
func TestInherited(t *testing.T) {
	here := open(t, "/", unix.O_PATH)
	all, err := Inherited([3]bool{})
	errnotest.Must(t, err)
	less, err := Inherited([3]bool{1: true})
	errnotest.Must(t, err)
	if !slices.Contains(all, 1) || !slices.Contains(all, here) || slices.Contains(less, 1) || len(less) != len(all)-1 || !slices.IsSorted(all) {
		t.Errorf("%v, without 1: %v", all, less)
	}
	for _, fd := range all {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			t.Errorf("%d: %v", fd, err)
		}
	}
	for _, errno := range []unix.Errno{unix.EMFILE, unix.EACCES} {
		errnotest.Answering(t, errnotest.Openat, errno, func() {
			if fds, err := Inherited([3]bool{}); !errors.Is(err, errno) {
				t.Errorf("%v: %v, %v", errno, fds, err)
			}
		})
	}
	errnotest.Answering(t, errnotest.Openat, unix.ENOENT, func() {
		if fds, err := Inherited([3]bool{}); err != nil || !slices.Equal(fds, all) {
			t.Errorf("without /proc: %v, %v, want %v", fds, err, all)
		}
	})
	errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_GETDENTS64}, unix.EIO, func() {
		if fds, err := Inherited([3]bool{}); !errors.Is(err, unix.EIO) {
			t.Errorf("%v, %v", fds, err)
		}
	})
}
