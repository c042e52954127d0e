package confine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

const ipcLink = "/proc/self/ns/ipc"

// ipc enters an IPC namespace (System V objects and POSIX message queues) with a
// /dev/shm of its own (POSIX shared memory and semaphores).
func (n *Namespace) ipc(table pathcheck.Mounts) error {
	index := table.Index()
	shm, known := index.Of("/dev/shm")
	var dir, here unix.Stat_t
	if unix.Stat("/dev/shm", &dir) == nil {
		switch {
		case unix.Stat(".", &here) == nil && here.Dev == dir.Dev && known && shm.Point == "/dev/shm":
			return errors.New("the current directory is in the /dev/shm of others")
		case len(index.Others("/dev/shm")) > 0:
			return fmt.Errorf("/dev/shm is mounted at %q, too", index.Others("/dev/shm")[0])
		}
	}
	n.was.ipc, _ = os.Readlink(ipcLink)
	if err := unix.Unshare(unix.CLONE_NEWIPC); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if dir.Mode&unix.S_IFMT == unix.S_IFDIR {
		if shm.FSType != "tmpfs" || shm.Point != "/dev/shm" {
			shm = pathcheck.Mount{Source: "tmpfs", Options: "nosuid,nodev"}
		}
		if err := mountFresh("tmpfs", "/dev/shm", shm, "size", "nr_blocks", "nr_inodes", "mode", "uid", "gid", "huge"); err != nil {
			return err
		}
		n.covered = append(n.covered, "/dev/shm")
	}
	for _, m := range table {
		if m.FSType == "mqueue" && index.Reaches(m) {
			if err := mountFresh("mqueue", m.Point, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// mountFresh mounts a new file system.
func mountFresh(fstype, at string, like pathcheck.Mount, keep ...string) error {
	fd, err := newMount(fstype, like, keep)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return attach(fd, at)
}

// newMount makes a detached mount of a new file system, with those options of another
// that keep names, more of them as names and values, and what the other's mount takes
// away.
func newMount(fstype string, like pathcheck.Mount, keep []string, more ...string) (int, error) {
	fs, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("fsopen %s: %w", fstype, err)
	}
	defer unix.Close(fs)
	more = append(more, "source", like.Source)
	for opt := range strings.SplitSeq(like.Super, ",") {
		if name, value, _ := strings.Cut(opt, "="); slices.Contains(keep, name) {
			more = append(more, name, value)
		}
	}
	for i := 0; i < len(more); i += 2 {
		if more[i+1] == "" {
			err = unix.FsconfigSetFlag(fs, more[i])
		} else {
			err = unix.FsconfigSetString(fs, more[i], more[i+1])
		}
		if err != nil {
			return -1, fmt.Errorf("fsconfig %s of %s: %w", more[i], fstype, err)
		}
	}
	attributes := 0
	for opt := range strings.SplitSeq(like.Options, ",") {
		attributes |= mountAttribute(opt)
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("fsconfig %s: %w", fstype, err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attributes)
	if err != nil {
		return -1, fmt.Errorf("fsmount %s: %w", fstype, err)
	}
	return fd, nil
}

// shmInfo is struct shm_info of linux/shm.h.
type shmInfo struct {
	used                  int32
	_                     int32
	total, resident, swap uint64
	attempts, successes   uint64
}

// sharedMemory counts the System V segments of this IPC namespace.
func sharedMemory() (int, error) {
	const info = 14 // SHM_INFO
	var i shmInfo
	if _, _, errno := unix.Syscall(unix.SYS_SHMCTL, 0, info, uintptr(unsafe.Pointer(&i))); errno != 0 {
		return 0, errno
	}
	return int(i.used), nil
}
