package shim

import (
	"errors"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// self is this shim's own file.
type self struct {
	// id is its identity; known is false when no way led to the file.
	id    pathcheck.ID
	known bool
	// readable is false when the file cannot be opened for reading, so that
	// no other shim could tell that it is one.
	readable bool
	// path is where the file stands, as far as it can be told.
	path string
	// invoked is the name under which the shim was started, with its
	// directory if the caller gave one; "" when nothing tells.
	invoked string
	scarcity
}

// A scarcity remembers that descriptors or memory ran out. Nothing that was found
// then may be relied on.
type scarcity struct{ err error }

func (s *scarcity) note(err error) {
	if pathcheck.Exhausted(err) {
		s.err = err
	}
}

// findSelf looks for the shim's own file: by /proc/self/exe, and where /proc is
// not mounted by the path that execve was given or the caller's argv[0].
func findSelf(s *Start) self {
	var me self
	ways := []string{"/proc/self/exe", s.ExecFn}
	if len(s.Argv) > 0 && strings.Contains(s.Argv[0], "/") {
		ways = append(ways, s.Argv[0])
	}
	for _, way := range ways {
		id, err := fileID(way)
		if me.note(err); err != nil {
			continue
		}
		if way != "/proc/self/exe" {
			head, err := readHead(way)
			if me.note(err); err == nil && !record.IsShim(head) {
				continue
			}
		}
		me.id, me.known, me.path = id, true, way
		err = unix.Faccessat(unix.AT_FDCWD, way, unix.R_OK, unix.AT_EACCESS)
		me.note(err)
		me.readable = err == nil
		break
	}
	text, err := readlink("/proc/self/exe")
	if me.note(err); strings.HasPrefix(text, "/") {
		me.path = text
	}
	me.invoked = me.nameOf(s)
	return me
}

// nameOf finds the name under which this launch was asked for. The path that
// execve was given is the best witness, if it is this file and not a way
// around names (fexecve gives /dev/fd/N); after a #! line it is the script.
func (me *self) nameOf(s *Start) string {
	candidates := []string{s.ExecFn}
	if len(s.Argv) > 0 {
		candidates = append(candidates, s.Argv[0])
	}
	for _, c := range candidates {
		if c == "" || strings.HasPrefix(c, "/dev/fd/") || strings.HasPrefix(c, "/proc/") {
			continue
		}
		id, err := fileID(c)
		if me.note(err); err == nil && me.known && id == me.id {
			return c
		}
	}
	if !strings.HasPrefix(me.path, "/proc/") {
		return strings.TrimSuffix(me.path, " (deleted)")
	}
	return ""
}

func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// fileID returns the identity of the regular file at path, symlinks followed.
func fileID(path string) (pathcheck.ID, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return pathcheck.ID{}, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return pathcheck.ID{}, errNotExecutable
	}
	return idOf(&st), nil
}

// An answer to a question that cannot always be asked.
type answer uint8

const (
	no answer = iota
	yes
	unknown
)

// isShimFile reports whether the file at path is a shim of any version, by the
// marker in its first page; unknown when it cannot be read.
func isShimFile(path string) answer {
	head, err := readHead(path)
	switch {
	case err != nil:
		return unknown
	case record.IsShim(head):
		return yes
	default:
		return no
	}
}

// readHead reads the first page of a regular file. Another shim must be known as
// one also when the caller has left no descriptor free.
func readHead(path string) (head []byte, err error) {
	head, err = readFirst(path)
	if errors.Is(err, unix.EMFILE) {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread and its table end with this
			if unix.Unshare(unix.CLONE_FILES) == nil && unix.Close(0) == nil {
				head, err = readFirst(path)
			}
			done <- err
		}()
		err = <-done
	}
	return head, err
}

// openRegular opens a regular file for reading. It waits for nothing, and is
// EACCES for every other kind.
func openRegular(path string) (fd int, size int64, err error) {
	fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return -1, 0, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = unix.EACCES
	}
	if err != nil {
		unix.Close(fd)
		return -1, 0, err
	}
	return fd, st.Size, nil
}

func readFirst(path string) ([]byte, error) {
	fd, _, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	head := make([]byte, 4096)
	n, err := unix.Pread(fd, head, 0)
	if err != nil {
		return nil, err
	}
	return head[:n], nil
}

func readlink(path string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlink(path, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
