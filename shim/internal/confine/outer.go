package confine

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// leadsOut says how an inherited descriptor leads around the mounts of this launch, or
// "". The ".." of a directory and what is mounted beneath are those of the namespace in
// which it was opened, so it is opened anew. A file that a mount closes cannot be, since
// its position is the launcher's, too.
func (n *Namespace) leadsOut(fd int) string {
	if !n.entered {
		return ""
	}
	text, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return unexamined(err)
	}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFDIR && (n.Kernel.PrivateProc && fd > 2 || !openAnew(fd, &st, text)):
		return "a directory of the outer mount namespace"
	case st.Mode&unix.S_IFMT == unix.S_IFREG && closes(fd, text):
		return "a file that is read-only in the namespace of this launch, opened outside of it"
	}
	return ""
}

// openAnew opens a directory again by its path, in the mount namespace of this thread,
// on the same descriptor.
func openAnew(fd int, st *unix.Stat_t, text string) bool {
	const kept = unix.O_ACCMODE | unix.O_PATH | unix.O_NONBLOCK | unix.O_NOATIME | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_APPEND
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || !strings.HasPrefix(text, "/") {
		return false
	}
	fresh, err := unix.Open(text, flags&kept|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fresh)
	var now unix.Stat_t
	if at, err := unix.Seek(fd, 0, unix.SEEK_CUR); err == nil { // not of O_PATH
		_, _ = unix.Seek(fresh, at, unix.SEEK_SET)
	}
	return unix.Fstat(fresh, &now) == nil && idOf(&now) == idOf(st) && unix.Dup3(fresh, fd, 0) == nil
}

// closes reports whether a mount of this launch takes writing from the file at a path,
// and that by which the descriptor was opened does not.
func closes(fd int, path string) bool {
	var here, there unix.Statfs_t
	return unix.Statfs(path, &here) == nil && here.Flags&unix.ST_RDONLY != 0 &&
		unix.Fstatfs(fd, &there) == nil && there.Flags&unix.ST_RDONLY == 0
}
