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

// maxSubmounts bounds the descriptors that are open while /proc is replaced.
const maxSubmounts = 40

// privateProc mounts a /proc that shows only the processes that this one may trace,
// which in a Landlock domain are those of the domain. Everything that is mounted on the
// old one is carried over: a container's masks stand there. After an error the old one
// is in place. It returns the place of another proc file system, or "".
func privateProc(table pathcheck.Mounts) (elsewhere string, err error) {
	// The new one will show this process's pid namespace.
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(unix.Getpid()) {
		return "", errors.New("/proc is missing or belongs to another pid namespace")
	}
	old, subs, elsewhere, err := findProc(table)
	if err != nil {
		return "", err
	}
	carried := make([]int, 0, len(subs))
	defer func() {
		for _, fd := range carried {
			unix.Close(fd)
		}
	}()
	for _, s := range subs {
		fd, err := unix.OpenTree(unix.AT_FDCWD, s.Point,
			unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
		if err != nil {
			return "", fmt.Errorf("carry over %q: %w", s.Point, err)
		}
		carried = append(carried, fd)
	}
	fresh, err := newProc(old)
	if err != nil {
		return "", err
	}
	defer unix.Close(fresh)
	if err := attach(fresh, "/proc"); err != nil {
		return "", err
	}
	err = func() error {
		for i, s := range subs {
			if err := attach(carried[i], s.Point); err != nil {
				return fmt.Errorf("carry over %q: %w", s.Point, err)
			}
		}
		return reenter()
	}()
	if err != nil {
		if undo := unix.Unmount("/proc", unix.MNT_DETACH); undo != nil {
			return "", fmt.Errorf("%w, and the old /proc is covered: %w", err, undo)
		}
		return "", err
	}
	return elsewhere, nil
}

// findProc returns the mount that /proc shows, what is mounted directly on it,
// and the place of another proc file system, or "".
func findProc(table pathcheck.Mounts) (old pathcheck.Mount, subs pathcheck.Mounts, elsewhere string, err error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, "/proc", unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &st); err != nil {
		return old, nil, "", fmt.Errorf("statx: %w", err)
	}
	seen := map[string]bool{}
	for _, m := range table {
		switch {
		case st.Mask&unix.STATX_MNT_ID != 0 && uint64(m.ID) == st.Mnt_id:
			old = m
		case m.FSType == "proc" && !pathcheck.Within("/proc", m.Point):
			elsewhere = m.Point
		}
	}
	if old.FSType != "proc" || old.Root != "/" || old.Point != "/proc" {
		return old, nil, "", errors.New("/proc is not the mount point of a whole proc file system")
	}
	for _, m := range table {
		// Of mounts on one place the last is seen, and carries what stands on it.
		if m.Parent == old.ID && !seen[m.Point] {
			seen[m.Point] = true
			subs = append(subs, m)
		}
	}
	if len(subs) > maxSubmounts {
		return old, nil, "", fmt.Errorf("%d file systems are mounted on /proc", len(subs))
	}
	return old, subs, elsewhere, nil
}

// newProc makes a detached mount of a new proc file system with the options of
// the old one.
func newProc(old pathcheck.Mount) (int, error) {
	for opt := range strings.SplitSeq(old.Super, ",") {
		switch name, _, _ := strings.Cut(opt, "="); name {
		case "gid", "subset", "ro", "rw", "hidepid", "seclabel":
		default:
			return -1, fmt.Errorf("carry over the option %q of /proc: %w", opt, errors.ErrUnsupported)
		}
	}
	return newMount("proc", old, []string{"gid", "subset", "ro"}, "hidepid", "ptraceable")
}

// mountAttribute returns the attribute of an option of a mount that takes
// something away; 0 for every other option.
func mountAttribute(opt string) int {
	switch opt {
	case "ro":
		return unix.MOUNT_ATTR_RDONLY
	case "nosuid":
		return unix.MOUNT_ATTR_NOSUID
	case "nodev":
		return unix.MOUNT_ATTR_NODEV
	case "noexec":
		return unix.MOUNT_ATTR_NOEXEC
	case "noatime":
		return unix.MOUNT_ATTR_NOATIME
	case "nodiratime":
		return unix.MOUNT_ATTR_NODIRATIME
	case "nosymfollow":
		return unix.MOUNT_ATTR_NOSYMFOLLOW
	}
	return 0
}

func attach(mount int, path string) error {
	if err := unix.MoveMount(mount, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount on %q: %w", path, err)
	}
	return nil
}

// reenter goes to the current directory by its path, if it is one of the old
// /proc.
func reenter() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(".", &fs); err == nil && fs.Type != unix.PROC_SUPER_MAGIC {
		return nil
	}
	dir, err := unix.Getwd()
	if err == nil {
		err = unix.Chdir(dir)
	}
	if err != nil {
		return fmt.Errorf("go to the current directory again: %w", err)
	}
	return nil
}

// launcherClosed tries to read the environment of the launcher, which is outside.
func launcherClosed() error {
	fd, err := openOnce(unix.AT_FDCWD, launcherProc()+"/environ", pathcheck.Regular)
	return denied(fd, err, "the environment of the launcher can be read", unix.EACCES, unix.EPERM, unix.ENOENT)
}

// launcherHidden tries to see that there is one.
func launcherHidden() error {
	err := unix.Stat(launcherProc(), &unix.Stat_t{})
	return denied(-1, err, "the launcher can be seen in /proc", unix.EACCES, unix.EPERM, unix.ENOENT)
}

func launcherProc() string { return "/proc/" + strconv.Itoa(unix.Getppid()) }
