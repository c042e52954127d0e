package escape

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch/ring"
)

// ownMachine gives the calling test mounts, a network, names and IPC objects of
// its own, which it may spoil. As an ordinary user there is none to be had.
func ownMachine(t *testing.T) {
	t.Helper()
	program(t)
	if os.Geteuid() != 0 {
		return
	}
	launch.Need(t, launch.Mounts)
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS); err != nil {
		t.Fatalf("unshare: %v", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatalf("make / private: %v", err)
	}
	up(t, "lo")
	// Everybody may ping.
	if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 65535"), 0); err != nil {
		t.Log(err)
	}
}

// up sets an interface up.
func up(t *testing.T, name string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		t.Fatal(err)
	}
	ifr.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil {
		t.Fatal(err)
	}
}

// devices makes what needs root: devices, mounts, control groups. What the
// machine lacks stays empty.
func (p *place) devices(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	mount := func(source, point, kind, data string) error {
		err := unix.Mount(source, point, kind, 0, data)
		if err == nil {
			t.Cleanup(func() { _ = unix.Unmount(point, unix.MNT_DETACH) })
		}
		return err
	}
	p.Mount = p.at("mount")
	if err := mount("none", p.Mount, "tmpfs", ""); err != nil {
		t.Fatal(err)
	}
	p.Binfmt = launch.Root.Mkdir(t, p.at("binfmt"), 0o755)
	if err := mount("none", p.Binfmt, "binfmt_misc", ""); err != nil {
		t.Logf("binfmt_misc: %v", err)
		p.Binfmt = ""
	}
	p.Cgroup = p.group(t, "cgroup2", "")
	p.Freezer = p.group(t, "cgroup", "freezer")
	if dir := p.group(t, "cgroup", "memory"); dir != "" {
		p.Memory = dir + "/memory.limit_in_bytes"
	} else if p.Cgroup != "" {
		if _, err := os.Stat(p.Cgroup + "/memory.max"); err == nil {
			p.Memory = p.Cgroup + "/memory.max"
		}
	}
	if dir := groups("cgroup", "name="); dir != "" {
		p.Agent = dir + "/release_agent"
	}
	p.taps(t)
	if _, err := exec.LookPath("losetup"); err != nil {
		t.Log(err)
		return
	}
	image := filepath.Join(launch.Dir(t), "image")
	launch.Root.Write(t, image, p.Secret+strings.Repeat("\x00", 1<<20-len(p.Secret)), 0o600)
	p.Loop = loop(t, image)
	if _, err := exec.LookPath("mkfs.btrfs"); err != nil {
		t.Log(err)
		return
	}
	disk := filepath.Join(launch.Dir(t), "btrfs")
	launch.Root.Write(t, disk, "", 0o600)
	if err := os.Truncate(disk, 120<<20); err != nil {
		t.Fatal(err)
	}
	tool(t, "mkfs.btrfs", "-q", disk)
	p.Btrfs = launch.Root.Mkdir(t, p.at("btrfs"), 0o755)
	if err := mount(loop(t, disk), p.Btrfs, "btrfs", "user_subvol_rm_allowed"); err != nil {
		t.Logf("btrfs: %v", err)
		p.Btrfs = ""
		return
	}
	p.user.Own(t, p.Btrfs)
	for _, dir := range []string{"work", "outside"} {
		p.user.Mkdir(t, p.Btrfs+"/"+dir, 0o755)
	}
}

func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func loop(t *testing.T, image string) string {
	t.Helper()
	node := tool(t, "losetup", "--find", "--show", image)
	t.Cleanup(func() { tool(t, "losetup", "--detach", node) })
	return node
}

// groups returns where a hierarchy of control groups is mounted, or "".
func groups(kind, option string) string {
	data, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) > 3 && f[2] == kind && strings.Contains(f[3], option) {
			return f[1]
		}
	}
	return ""
}

// group makes a control group of the user with a process in it.
func (p *place) group(t *testing.T, kind, option string) string {
	t.Helper()
	above := groups(kind, option)
	if above == "" {
		t.Logf("no %s %s", kind, option)
		return ""
	}
	dir, err := os.MkdirTemp(above, "shim-test-")
	if err != nil {
		t.Logf("%s: %v", kind, err)
		return ""
	}
	sleeper := launch.Cmd{Path: launch.Look(t, "sleep"), Args: []string{"sleep", "600"}, User: p.user}.Start(t)
	t.Cleanup(func() {
		// Thawed, or it would not end.
		for name, thawed := range map[string]string{"cgroup.freeze": "0", "freezer.state": "THAWED"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				_ = os.WriteFile(filepath.Join(dir, name), []byte(thawed), 0)
			}
		}
		_ = unix.Kill(sleeper.PID, unix.SIGKILL)
		sleeper.Wait(t)
		_ = os.Remove(dir + "/new")
		if err := os.Remove(dir); err != nil {
			t.Errorf("remove the control group: %v", err)
		}
	})
	if err := os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(sleeper.PID)), 0); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	p.user.Own(t, dir)
	for _, e := range entries {
		p.user.Own(t, dir+"/"+e.Name())
	}
	return dir
}

// tap makes a network interface that belongs to the user.
func (p *place) taps(t *testing.T) {
	t.Helper()
	// The device is root's on most machines: another node of it in its place.
	node := filepath.Join(launch.Dir(t), "tun")
	if err := unix.Mknod(node, unix.S_IFCHR|0o666, int(unix.Mkdev(10, 200))); err != nil {
		t.Fatal(err)
	}
	p.user.Own(t, node)
	if err := unix.Mount(node, "/dev/net/tun", "", unix.MS_BIND, ""); err != nil {
		t.Logf("/dev/net/tun: %v", err)
		return
	}
	t.Cleanup(func() { _ = unix.Unmount("/dev/net/tun", unix.MNT_DETACH) })
	// It stays when its descriptor is closed.
	const name = "escape0"
	unix.Close(tap(t, name, p.UID))
	p.Tap = name
}

// tap makes an interface of the user and returns the descriptor behind it.
func tap(t *testing.T, name string, uid int) int {
	t.Helper()
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		t.Fatal(err)
	}
	ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		t.Fatal(err)
	}
	for _, set := range []struct {
		request uint
		value   int
	}{{unix.TUNSETOWNER, uid}, {unix.TUNSETPERSIST, 1}} {
		if err := unix.IoctlSetInt(fd, set.request, set.value); err != nil {
			t.Fatal(err)
		}
	}
	up(t, name)
	return fd
}

// firstDescriptor leaves room for what a runtime opens for itself.
const firstDescriptor = 100

// descriptors opens what the launcher leaves open.
func (p *place) descriptors(t *testing.T) {
	t.Helper()
	p.Descriptors = map[string]int{}
	p.extra = make([]*os.File, firstDescriptor-3)
	add := func(name string, fd int, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("descriptor %s: %v", name, err)
		}
		p.Descriptors[name] = len(p.extra) + 3
		f := os.NewFile(uintptr(fd), name)
		t.Cleanup(func() { f.Close() })
		p.extra = append(p.extra, f)
	}
	open := func(name, path string, flags int) {
		t.Helper()
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		add(name, fd, err)
	}
	open("key", p.at("hidden/key"), unix.O_RDONLY)
	open("hidden", p.at("hidden"), unix.O_RDONLY)
	open("hidden-path", p.at("hidden"), unix.O_PATH)
	open("above", p.Dir, unix.O_RDONLY)
	open("outside", p.at("outside/file"), unix.O_WRONLY|unix.O_APPEND)
	open("outside-dir", p.at("outside"), unix.O_RDONLY)
	open("mem", "/proc/"+strconv.Itoa(p.PID)+"/mem", unix.O_RDONLY)
	open("proc", "/proc/"+strconv.Itoa(p.PID), unix.O_RDONLY)
	open("mnt", "/proc/"+strconv.Itoa(p.PID)+"/ns/mnt", unix.O_RDONLY)
	fd, err := unix.PidfdOpen(p.PID, 0)
	add("pidfd", fd, err)
	socket := func(name string, family, kind int, then func(fd int) error) {
		t.Helper()
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = then(fd)
		}
		add(name, fd, err)
	}
	here := func(port int) unix.Sockaddr { return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}} }
	socket("connection", unix.AF_INET, unix.SOCK_STREAM, func(fd int) error { return unix.Connect(fd, here(p.TCP)) })
	socket("udp", unix.AF_INET, unix.SOCK_DGRAM, func(int) error { return nil })
	socket("listener", unix.AF_INET, unix.SOCK_STREAM, func(fd int) error { return unix.Bind(fd, here(0)) })
	socket("unix", unix.AF_UNIX, unix.SOCK_STREAM, func(int) error { return nil })
	if p.Tap != "" {
		add("tap", tap(t, "escape1", p.UID), nil)
	}
	if r, err := ring.New(0); err == nil {
		if err := r.Register(); err != nil {
			t.Fatal(err)
		}
		p.Ring = r.String()
		add("ring", r.FD, nil)
	} else {
		t.Logf("io_uring: %v", err)
	}
	p.terminal(t, add)
}

// terminal makes the launches' controlling terminal.
func (p *place) terminal(t *testing.T, add func(string, int, error)) {
	t.Helper()
	outer, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		t.Logf("/dev/ptmx: %v", err)
		return
	}
	add("master", outer, nil)
	n, err := unix.IoctlGetInt(outer, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(outer, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	name := "/dev/pts/" + strconv.Itoa(n)
	p.user.Own(t, name)
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	add("terminal", fd, err)
	p.Terminal = true
	p.sys = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: p.Descriptors["terminal"]}
}
