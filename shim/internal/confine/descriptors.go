package confine

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// A Descriptor is one inherited descriptor that leads around the policy.
type Descriptor struct {
	FD int
	// LeadsTo is what /proc/self/fd says of it.
	LeadsTo string
	Why     string
	Closed  bool
}

// CloseDescriptors closes the inherited descriptors above 2 that the policy
// does not leave open or that lead around it, and lists them; those on 0 to 2
// that do stay open and are listed too.
//
// A directory that was opened outside the namespace of this launch is opened anew.
func CloseDescriptors(fds []int, p *rules.Policy, pl *plan.Plan, n *Namespace) ([]Descriptor, error) {
	var out []Descriptor
	for _, fd := range fds {
		around := n.leadsOut(fd)
		why, text := reasonToClose(fd, p, pl, n.Kernel)
		if why == "" {
			why = around
		}
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

func reasonToClose(fd int, p *rules.Policy, pl *plan.Plan, k rules.Kernel) (why, text string) {
	// Without it, the text tells nothing, and the descriptor itself must.
	text, _ = os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return unexamined(err), text
	}
	kind := st.Mode & unix.S_IFMT
	if kind == 0 && isRing(fd, text) {
		return "an io_uring made outside the confinement works around it", text
	}
	if kind == unix.S_IFSOCK {
		if why := reaches(fd, p); why != "" {
			return why, text
		}
	}
	isolated := p.Isolate.Has(rules.IsolateProc)
	memory := pl != nil && (text == "" || path.Base(strings.TrimSuffix(text, deleted)) == "mem")
	if isolated || memory {
		inside, err := inProc(fd, text)
		if err != nil {
			return unexamined(err), text
		}
		if inside && memory {
			return "the memory of a process, which may not be confined", text
		}
		if isolated {
			if why := showsProcesses(inside, kind, &st, text, k); why != "" {
				return why, text
			}
		}
	}
	if pl != nil {
		if why := leadsToHidden(fd, &st, text, pl); why != "" {
			return why, text
		}
		if hidden, ok := onHiddenDevice(fd, &st, text, pl); ok {
			return "stands where it cannot be told, on the file system of the hidden path " + strconv.Quote(hidden), text
		}
		if len(p.Hidden) > 0 && plan.ReachesDisk(text, deviceOf(&st)) {
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

// unexamined is the reason to close what could lead anywhere.
func unexamined(err error) string { return "cannot be examined: " + err.Error() }

// reaches says what a socket can reach around the policy, or "".
func reaches(fd int, p *rules.Policy) string {
	network, isolated := p.ConfinesNetwork(), p.Isolate.Has(rules.IsolateUnixSockets)
	if !network && !isolated {
		return ""
	}
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	switch {
	case err != nil:
		return unexamined(err)
	case network && domain != unix.AF_UNIX:
		return "a socket that can reach a network"
	case isolated && domain == unix.AF_UNIX && !isBound(fd):
		return "a unix socket that can reach any other"
	}
	return ""
}

// deleted is what /proc/self/fd says behind the path of what is gone. The memory
// of a thread that has ended is still that of the others.
const deleted = " (deleted)"

// inProc reports whether a descriptor leads to a file of a proc file system.
// What is written to a /proc/PID/mem the process runs, and no access right is
// asked for again.
func inProc(fd int, text string) (bool, error) {
	if text != "" && text[0] != '/' {
		return false, nil // a pipe, a socket and the like
	}
	var fs unix.Statfs_t
	err := unix.Fstatfs(fd, &fs)
	return fs.Type == unix.PROC_SUPER_MAGIC, err
}

// writesOutside reports whether a descriptor was opened to write a file that
// scope workspace does not leave writable. The kernel does not ask again, and
// the launcher that left it open may have meant it, so it is only reported. A
// file without a name is nobody else's.
func writesOutside(fd int, text string, p *rules.Policy, pl *plan.Plan) bool {
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
func showsProcesses(inProc bool, kind uint32, st *unix.Stat_t, text string, k rules.Kernel) string {
	if inProc {
		var proc unix.Stat_t
		if err := unix.Stat("/proc", &proc); err != nil || proc.Dev != st.Dev {
			return "leads to another instance of /proc"
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(text, "/proc/"), "/")
		if pid, err := strconv.Atoi(name); text == "" || err == nil && pid != unix.Getpid() {
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

// leadsToHidden says at which hidden location a descriptor stands, or beneath
// which, or "": by its identity, by its path, and for a directory by what stands
// above it, whatever its path is called now.
func leadsToHidden(fd int, st *unix.Stat_t, text string, pl *plan.Plan) string {
	hidden, ok := pl.HidesID(idOf(st))
	if path := strings.TrimSuffix(text, deleted); !ok && strings.HasPrefix(path, "/") && (pl.Hides(path) || pl.Hides(text)) {
		hidden, ok = path, true
	}
	if !ok && len(pl.Hidden) > 0 && st.Mode&unix.S_IFMT == unix.S_IFDIR && !pl.ExposesID(idOf(st)) {
		var err error
		if hidden, err = hiddenAbove(fd, idOf(st), text, pl); err != nil {
			return unexamined(err)
		}
		ok = hidden != ""
	}
	if !ok {
		return ""
	}
	return "leads to the hidden path " + strconv.Quote(hidden)
}

// onHiddenDevice reports whether a descriptor of which it is not known where it
// stands could stand at a hidden location, by its file system.
func onHiddenDevice(fd int, st *unix.Stat_t, text string, pl *plan.Plan) (string, bool) {
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
func placed(fd int, st *unix.Stat_t, text string, pl *plan.Plan) bool {
	if st.Mode&unix.S_IFMT != unix.S_IFDIR && !strings.HasPrefix(text, "/") {
		return false
	}
	var at, root unix.Statx_t
	switch err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &at); {
	case err == unix.ENOSYS || err == unix.EPERM || err == nil && at.Mask&unix.STATX_MNT_ID == 0:
		return true // nothing better is to be had here
	case err != nil:
	case pl.HasMount(at.Mnt_id):
		return true
	case unix.Statx(unix.AT_FDCWD, "/", 0, unix.STATX_MNT_ID, &root) == nil && root.Mnt_id == at.Mnt_id:
		return true // after chroot(2), the table does not show it
	}
	// In a mount namespace that was copied, the name still leads there.
	var named unix.Stat_t
	return unix.Lstat(text, &named) == nil && idOf(&named) == idOf(st)
}

// maxAbove bounds the climb from a directory to the root.
const maxAbove = 4096

// hiddenAbove returns the hidden location above a directory that is none itself,
// or "". One that may not be searched does not tell: then its path has to do.
func hiddenAbove(fd int, last pathcheck.ID, text string, pl *plan.Plan) (string, error) {
	at := fd
	defer func() {
		if at != fd {
			unix.Close(at)
		}
	}()
	for range maxAbove {
		up, err := unix.Openat(at, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == unix.EACCES && text != "" {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if at != fd {
			unix.Close(at)
		}
		at = up
		var st unix.Stat_t
		if err := unix.Fstat(at, &st); err != nil {
			return "", err
		}
		id := idOf(&st)
		if id == last || pl.ExposesID(id) {
			return "", nil
		}
		if path, ok := pl.HidesID(id); ok {
			return path, nil
		}
		last = id
	}
	return "", unix.ENAMETOOLONG
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
