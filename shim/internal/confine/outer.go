package confine

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// leadsOut says how an inherited descriptor leads around the mounts of this launch, or
// "". Its ".." and what is mounted beneath are those of the namespace in which it was
// opened, so a directory is opened anew; a file that a mount closes cannot be, since
// its position is the launcher's, too.
func (n *Namespace) leadsOut(fd int, text string) string {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return unexamined(err)
	}
	switch {
	case strings.HasPrefix(text, "mnt:["):
		return "the outer mount namespace"
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		if !openAnew(fd, &st, text) {
			return "a directory of the outer mount namespace"
		}
	case st.Mode&unix.S_IFMT == unix.S_IFREG && n.closes(text):
		return "a file that is read-only in the namespace of this launch, opened outside of it"
	}
	return ""
}

// openAnew opens a directory again by its path, in the mount namespace of this thread,
// on the same descriptor.
func openAnew(fd int, st *unix.Stat_t, text string) bool {
	const kept = unix.O_ACCMODE | unix.O_PATH | unix.O_NONBLOCK | unix.O_NOATIME
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || !path.IsAbs(text) {
		return false
	}
	fresh, err := unix.Open(text, flags&kept|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fresh)
	var now unix.Stat_t
	return unix.Fstat(fresh, &now) == nil && idOf(&now) == idOf(st) && unix.Dup3(fresh, fd, 0) == nil
}

// closes reports whether a mount of this launch keeps the file at a path from being
// changed.
func (n *Namespace) closes(file string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(file, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0 && n.entered
}
