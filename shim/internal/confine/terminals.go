package confine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// terminals mounts a devpts of the launch's own: new terminals are made in it, and those
// of others have no name. The terminal that the launch stands on gets the name
// /dev/console; its old name is gone.
func (n *Namespace) terminals(table pathcheck.Mounts) error {
	index := table.Index()
	old, ok := index.Of("/dev/pts")
	if !ok || old.FSType != "devpts" || old.Root != "/" || old.Point != "/dev/pts" {
		return errors.New("/dev/pts is not the mount point of a devpts file system")
	}
	if by, ok := index.Of("/dev/ptmx"); ok && by.FSType == "devpts" && by.Point == "/dev/ptmx" {
		return errors.New("/dev/ptmx is a mount of another devpts file system")
	}
	for _, m := range table {
		if m.FSType == "devpts" && m.ID != old.ID && m.Root == "/" && index.Reaches(m) {
			return fmt.Errorf("another devpts file system is mounted at %q", m.Point)
		}
	}
	own, name := ownTerminal()
	if own >= 0 {
		defer unix.Close(own)
	}
	n.was.terminal = otherTerminal(name)
	fresh, err := newMount("devpts", old, []string{"gid", "uid", "mode", "ptmxmode", "max"})
	if err != nil {
		return err
	}
	defer unix.Close(fresh)
	if err := attach(fresh, "/dev/pts"); err != nil {
		return err
	}
	if err := tryTerminal(); err != nil {
		if undo := unix.Unmount("/dev/pts", unix.MNT_DETACH); undo != nil {
			return fmt.Errorf("%w, and the old /dev/pts is covered: %w", err, undo)
		}
		return err
	}
	n.covered = append(n.covered, "/dev/pts")
	var st unix.Stat_t
	if own >= 0 && unix.Lstat(console, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && attach(own, console) == nil {
		rename()
	} // else the terminal has no name, and works
	return nil
}

const console = "/dev/console"

// rename opens what of descriptors 0 to 2 is the terminal that stands at console there:
// by the name under /proc/self/fd, ttyname(3) finds it.
func rename() {
	var named, st unix.Stat_t
	if unix.Lstat(console, &named) != nil {
		return
	}
	for fd := range 3 {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil || unix.Fstat(fd, &st) != nil || idOf(&st) != idOf(&named) {
			continue
		}
		const kept = unix.O_ACCMODE | unix.O_APPEND | unix.O_NONBLOCK
		if fresh, err := unix.Open(console, flags&kept|unix.O_NOCTTY|unix.O_CLOEXEC, 0); err == nil {
			_ = unix.Dup3(fresh, fd, 0)
			unix.Close(fresh)
		}
	}
}

// ownTerminal returns a detached mount of the terminal on descriptor 0, 1 or 2, and its
// path; -1 where there is none in this devpts.
func ownTerminal() (mount int, path string) {
	for fd := range 3 {
		var st, named unix.Stat_t
		path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err != nil || !strings.HasPrefix(path, "/dev/pts/") || unix.Fstat(fd, &st) != nil ||
			unix.Lstat(path, &named) != nil || idOf(&st) != idOf(&named) {
			continue
		}
		mount, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
		if err == nil {
			return mount, path
		}
	}
	return -1, ""
}

// otherTerminal returns the path of a terminal that is not the launch's, or "".
func otherTerminal(own string) string {
	fd, err := unix.Open("/dev/pts", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	buf := make([]byte, 4096) // one of the first is as good as any
	size, err := unix.ReadDirent(fd, buf)
	if err != nil {
		return ""
	}
	_, _, names := unix.ParseDirent(buf[:size], -1, nil)
	for _, name := range names {
		if path := "/dev/pts/" + name; path != own && name != "ptmx" {
			return path
		}
	}
	return ""
}

// tryTerminal makes a terminal, and looks for it in the new devpts.
func tryTerminal() error {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make a terminal: %w", err)
	}
	defer unix.Close(fd)
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.Lstat("/dev/pts/"+strconv.Itoa(number), &unix.Stat_t{})
	}
	if err != nil {
		return fmt.Errorf("find a new terminal: %w", err)
	}
	return nil
}
