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
func closeDescriptors(fds []int, p *rules.Policy, pl *rules.Plan) ([]Descriptor, error) {
	var out []Descriptor
	for _, fd := range fds {
		why, text := reasonToClose(fd, p, pl)
		if why == "" {
			continue
		}
		d := Descriptor{FD: fd, LeadsTo: text, Why: why, Closed: fd > 2}
		if d.Closed {
			if err := unix.Close(fd); err != nil && !errors.Is(err, unix.EINTR) {
				return out, fmt.Errorf("close descriptor %d: %w", fd, err)
			}
		}
		out = append(out, d)
	}
	return out, nil
}

func reasonToClose(fd int, p *rules.Policy, pl *rules.Plan) (why, text string) {
	text, _ = readlink("/proc/self/fd/" + strconv.Itoa(fd))
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "cannot be examined: " + err.Error(), text
	}
	switch {
	case strings.HasPrefix(text, "anon_inode:[io_uring]"):
		return "an io_uring made outside the confinement works around it", text
	case st.Mode&unix.S_IFMT == unix.S_IFSOCK && p.ConfinesNetwork() && !isUnixSocket(fd):
		return "a socket that can reach a network", text
	}
	if pl != nil {
		if hidden, ok := leadsToHidden(fd, &st, text, pl); ok {
			return "leads to the hidden path " + quoted(hidden), text
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

func isUnixSocket(fd int) bool {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	return err == nil && domain == unix.AF_UNIX
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

func idOf(st *unix.Stat_t) pathcheck.ID {
	return pathcheck.ID{Dev: uint64(st.Dev), Ino: st.Ino}
}
