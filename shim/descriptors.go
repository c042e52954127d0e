package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// A Descriptor is one inherited descriptor in the report.
type Descriptor struct {
	FD int `json:"fd"`
	// LeadsTo is what /proc/self/fd says of it.
	LeadsTo string `json:"leads_to"`
	Why     string `json:"why"`
	Closed  bool   `json:"closed"`
}

// inherited lists the descriptors that the launcher left open, which is all
// that are open before the shim opens its first, but for the stand-ins of
// closed ones.
func inherited(closed [3]bool) ([]int, error) {
	fds, err := openDescriptors()
	return slices.DeleteFunc(fds, func(fd int) bool { return fd < len(closed) && closed[fd] }), err
}

func openDescriptors() ([]int, error) {
	dir, err := unix.Open("/proc/self/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return probedDescriptors()
	}
	if err != nil {
		return nil, fmt.Errorf("open /proc/self/fd: %w", err)
	}
	defer unix.Close(dir)
	var names []string
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.ReadDirent(dir, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list /proc/self/fd: %w", err)
		}
		if n == 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	var out []int
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd != dir {
			place, _ := slices.BinarySearch(out, fd)
			out = slices.Insert(out, place, fd)
		}
	}
	return out, nil
}

// probedDescriptors asks for every number that can be open, for when /proc is
// not mounted.
func probedDescriptors() ([]int, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil, fmt.Errorf("getrlimit: %w", err)
	}
	var out []int
	for fd := range int(min(limit.Max, 1<<20)) {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			out = append(out, fd)
		}
	}
	return out, nil
}

// closeDescriptors closes the inherited descriptors above 2 that the policy
// does not leave open or that lead around it, and lists them; those on 0 to 2
// that do stay open and are listed too.
func closeDescriptors(fds []int, p *rules.Policy, pl *rules.Plan, k rules.Kernel) ([]Descriptor, error) {
	var out []Descriptor
	for _, fd := range fds {
		why, text := reasonToClose(fd, p, pl, k)
		d := Descriptor{FD: fd, LeadsTo: text, Why: why, Closed: fd > 2}
		if why == "" {
			if d.Closed = false; fd <= 2 || !writesOutside(fd, text, p, pl) {
				continue
			}
			d.Why = "is open for writing outside of what scope workspace leaves writable"
		}
		if d.Closed {
			if err := unix.Close(fd); err != nil && !errors.Is(err, unix.EINTR) {
				return out, fmt.Errorf("close descriptor %d: %w", fd, err)
			}
		}
		out = append(out, d)
	}
	return out, nil
}

func reasonToClose(fd int, p *rules.Policy, pl *rules.Plan, k rules.Kernel) (why, text string) {
	text, _ = readlink("/proc/self/fd/" + strconv.Itoa(fd))
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "cannot be examined: " + err.Error(), text
	}
	kind := st.Mode & unix.S_IFMT
	switch {
	case kind == 0 && isRing(fd, text):
		return "an io_uring made outside the confinement works around it", text
	case kind == unix.S_IFSOCK && p.ConfinesNetwork() && !isUnixSocket(fd):
		return "a socket that can reach a network", text
	case kind == unix.S_IFSOCK && p.Isolate.Has(rules.IsolateUnixSockets) && isUnixSocket(fd) && !isBound(fd):
		return "a unix socket that can reach any other", text
	}
	if p.Isolate.Has(rules.IsolateProc) {
		if why := showsProcesses(fd, kind, &st, text, k); why != "" {
			return why, text
		}
	}
	if pl != nil {
		if hidden, ok := leadsToHidden(fd, &st, text, pl); ok {
			return "leads to the hidden path " + quoted(hidden), text
		}
		if hidden, ok := onHiddenDevice(fd, &st, text, pl); ok {
			return "stands where it cannot be told, on the file system of the hidden path " + quoted(hidden), text
		}
		if isProcessMemory(fd, text) {
			return "the memory of a process, which may not be confined", text
		}
		if len(p.Hidden) > 0 && rules.ReachesDisk(text, deviceOf(&st)) {
			return "a device that reaches memory or a disk", text
		}
	}
	if fd <= 2 {
		return "", text
	}
	switch p.Descriptors.Mode {
	case rules.DescriptorsClose:
		return "the policy closes inherited descriptors", text
	case rules.DescriptorsList:
		if !slices.Contains(p.Descriptors.Keep, fd) {
			return "not in the policy's list of descriptors to keep", text
		}
	}
	return "", text
}

// isProcessMemory reports whether a descriptor is a /proc/PID/mem: what is
// written there the process runs, and no access right is asked for again.
func isProcessMemory(fd int, text string) bool {
	var fs unix.Statfs_t
	return (base(text) == "mem" || text == "") && unix.Fstatfs(fd, &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC
}

// writesOutside reports whether a descriptor was opened to write a file that
// scope workspace does not leave writable. The kernel does not ask again, and
// the launcher that left it open may have meant it, so it is only reported. A
// file without a name is nobody else's.
func writesOutside(fd int, text string, p *rules.Policy, pl *rules.Plan) bool {
	var st unix.Stat_t
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if p.Scope != rules.ScopeWorkspace || pl == nil || err != nil || unix.Fstat(fd, &st) != nil {
		return false
	}
	kind := st.Mode & unix.S_IFMT
	if flags&unix.O_ACCMODE == unix.O_RDONLY || flags&unix.O_PATH != 0 || kind != unix.S_IFREG && kind != unix.S_IFBLK || st.Nlink == 0 {
		return false
	}
	loc, err := pathcheck.Resolve(pathcheck.OS{}, text)
	_, in := pl.WritableRoot(loc)
	return err != nil || !in
}

func isUnixSocket(fd int) bool {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	return err == nil && domain == unix.AF_UNIX
}

// isBound reports whether a unix socket serves one peer or waits for some: it
// can be connected to nothing else (unix(7)). One for datagrams always can.
func isBound(fd int) bool {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind == unix.SOCK_DGRAM {
		return false
	}
	if listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err == nil && listens == 1 {
		return true
	}
	_, err = unix.Getpeername(fd)
	return err == nil
}

// isRing reports whether the descriptor of an anonymous inode is an io_uring.
// Where there is no /proc to tell, the ring itself is asked for something that
// needs an argument; everything else answers EOPNOTSUPP.
func isRing(fd int, text string) bool {
	if text != "" {
		return strings.HasPrefix(text, "anon_inode:[io_uring]")
	}
	const registerProbe = 8
	_, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_REGISTER, uintptr(fd), registerProbe, 0, 0, 0, 0)
	return errno != unix.EOPNOTSUPP
}

// showsProcesses says by which way around /proc a descriptor leads to processes
// outside, or "".
func showsProcesses(fd int, kind uint32, st *unix.Stat_t, text string, k rules.Kernel) string {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err == nil && fs.Type == unix.PROC_SUPER_MAGIC {
		var proc unix.Stat_t
		if err := unix.Stat("/proc", &proc); err != nil || proc.Dev != st.Dev {
			return "leads to another instance of /proc"
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(text, "/proc/"), "/")
		if pid, err := strconv.Atoi(name); err == nil && pid != unix.Getpid() {
			return "leads to another process in /proc"
		}
	}
	switch {
	case !k.PrivateProc:
	case kind == unix.S_IFDIR:
		// Its ".." and what is mounted beneath are those of the namespace in
		// which it was opened.
		return "a directory from which the outer /proc can be reached"
	case strings.HasPrefix(text, "mnt:["):
		return "the outer mount namespace"
	}
	return ""
}

// leadsToHidden reports whether a descriptor stands at a hidden location or
// beneath one: by its identity, by its path, and for a directory by what
// stands above it, whatever its path is called now.
func leadsToHidden(fd int, st *unix.Stat_t, text string, pl *rules.Plan) (string, bool) {
	if path, ok := pl.HidesID(idOf(st)); ok {
		return path, true
	}
	if path := strings.TrimSuffix(text, " (deleted)"); strings.HasPrefix(path, "/") && (pl.Hides(path) || pl.Hides(text)) {
		return path, true
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || pl.ExposesID(idOf(st)) {
		return "", false
	}
	return hiddenAbove(fd, pl)
}

// onHiddenDevice reports whether a descriptor of which it is not known where it
// stands could stand at a hidden location, by its file system.
func onHiddenDevice(fd int, st *unix.Stat_t, text string, pl *rules.Plan) (string, bool) {
	if placed(fd, st, text, pl) {
		return "", false
	}
	dev := uint64(st.Dev)
	return pl.HidesOn(dev, fmt.Sprintf("%d:%d", unix.Major(dev), unix.Minor(dev)))
}

// placed reports whether [leadsToHidden] knew where a descriptor stands: by its
// name, or a directory by what is above it, in a mount that this process has. A
// name is missing without /proc and when it is longer than a path can be; that
// in a mount of another namespace, or of none, is a name only there.
func placed(fd int, st *unix.Stat_t, text string, pl *rules.Plan) bool {
	if st.Mode&unix.S_IFMT != unix.S_IFDIR && !strings.HasPrefix(text, "/") {
		return false
	}
	var at, root unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &at); err != nil || at.Mask&unix.STATX_MNT_ID == 0 {
		return true // nothing better is to be had
	}
	if pl.HasMount(at.Mnt_id) {
		return true
	}
	if err := unix.Statx(unix.AT_FDCWD, "/", 0, unix.STATX_MNT_ID, &root); err == nil && root.Mnt_id == at.Mnt_id {
		return true // after chroot(2), the table does not show it
	}
	// In a mount namespace that was copied, the name still leads there.
	var named unix.Stat_t
	return unix.Lstat(text, &named) == nil && idOf(&named) == idOf(st)
}

// maxAbove bounds the climb from a directory to the root.
const maxAbove = 4096

func hiddenAbove(fd int, pl *rules.Plan) (string, bool) {
	var last unix.Stat_t
	if err := unix.Fstat(fd, &last); err != nil {
		return "a directory that cannot be examined", true
	}
	at, own := fd, false
	defer func() {
		if own {
			unix.Close(at)
		}
	}()
	for range maxAbove {
		up, err := unix.Openat(at, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return "", false // no search permission: the path has been asked
		}
		if own {
			unix.Close(at)
		}
		at, own = up, true
		var st unix.Stat_t
		if err := unix.Fstat(at, &st); err != nil || idOf(&st) == idOf(&last) {
			return "", false
		}
		if pl.ExposesID(idOf(&st)) {
			return "", false
		}
		if path, ok := pl.HidesID(idOf(&st)); ok {
			return path, true
		}
		last = st
	}
	return "", false
}

func deviceOf(st *unix.Stat_t) pathcheck.Info {
	info := pathcheck.Info{Major: unix.Major(uint64(st.Rdev)), Minor: unix.Minor(uint64(st.Rdev))}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFBLK:
		info.Kind = pathcheck.BlockDevice
	case unix.S_IFCHR:
		info.Kind = pathcheck.CharDevice
	}
	return info
}

func idOf(st *unix.Stat_t) pathcheck.ID {
	return pathcheck.ID{Dev: uint64(st.Dev), Ino: st.Ino}
}
