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

// page is as much of a file as tells what it is.
const page = 4096

// readHead reads the first page of a regular file. Another shim must be known as
// one also when the caller has left no descriptor free.
func readHead(path string) (head []byte, err error) {
	head, err = pathcheck.ReadHead(path, page)
	if errors.Is(err, unix.EMFILE) {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread and its table end with this
			if unix.Unshare(unix.CLONE_FILES) == nil && unix.Close(0) == nil {
				head, err = pathcheck.ReadHead(path, page)
			}
			done <- err
		}()
		err = <-done
	}
	return head, err
}

func readlink(path string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlink(path, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
