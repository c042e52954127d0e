package target

import (
	"errors"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

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
	return pathcheck.ID{Dev: uint64(st.Dev), Ino: st.Ino}, nil
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

// maxShims bounds how many files [OnlyShims] looks at.
const maxShims = 64

// OnlyShims reports whether a directory holds shims and nothing else.
func OnlyShims(dir string) bool {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	shims := 0
	buf := make([]byte, 4096)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil || shims > maxShims {
			return false
		}
		if n == 0 {
			return shims > 0
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || isShimFile(dir+"/"+name) != yes {
				return false
			}
			shims++
		}
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
