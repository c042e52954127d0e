package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// bindReadOnly mounts what stands at path on itself, with all that is mounted beneath,
// and read-only: its name can then be neither renamed nor removed (EBUSY), and nothing
// of it changed (EROFS). A symbolic link is not followed.
func (n *Namespace) bindReadOnly(path string) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path,
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return fmt.Errorf("open_tree %q: %w", path, err)
	}
	defer unix.Close(fd)
	if err = setReadOnly(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE); err == nil {
		err = attach(fd, path)
	}
	if err != nil {
		return err
	}
	n.covered = append(n.covered, path)
	return nil
}

// setReadOnly takes writing from a mount of this namespace. What is mounted on it
// outside later stays outside.
func setReadOnly(dirfd int, path string, flags uint) error {
	err := unix.MountSetattr(dirfd, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY, Propagation: unix.MS_PRIVATE})
	if err != nil {
		return fmt.Errorf("make a mount read-only: %w", err)
	}
	return nil
}

// procFiles are the entries of a proc file system by which the kernel starts programs,
// stops, or reaches memory and files of others.
var procFiles = []string{"sys", "sysrq-trigger", "bus", "fs"}

// eachKernelFile calls f for every place of these types of file systems that can be
// reached and is not read-only: a mount, or an entry of a whole proc file system, of
// which a process's own directory is not one.
func eachKernelFile(table pathcheck.Mounts, types func(fstype string) bool, f func(path string, mount bool) error) error {
	for _, m := range table {
		if !types(m.FSType) || isReadOnly(m) || covered(m) {
			continue
		}
		if m.FSType != "proc" || m.Root != "/" {
			if err := f(m.Point, true); err != nil {
				return err
			}
			continue
		}
		for _, name := range procFiles {
			path := pathcheck.Join(m.Point, name)
			var by unix.Statfs_t
			if unix.Statfs(path, &by) == nil && by.Flags&unix.ST_RDONLY != 0 {
				continue
			}
			if err := f(path, false); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// closeKernelFiles makes what acts on the kernel read-only in this mount namespace.
func (n *Namespace) closeKernelFiles(table pathcheck.Mounts) error {
	return eachKernelFile(table, actsOnKernel, func(path string, mount bool) error {
		if mount {
			return setReadOnly(unix.AT_FDCWD, path, 0)
		}
		return n.bindReadOnly(path)
	})
}

// kernelFilesClosed reports whether the mounts leave nothing to write by which the
// kernel can be acted on. Who is not root reaches only control groups, which may be
// delegated to a user.
func kernelFilesClosed(table pathcheck.Mounts, root bool) bool {
	types := actsOnKernel
	if !root {
		types = func(fstype string) bool { return fstype == "cgroup" || fstype == "cgroup2" }
	}
	return nil == eachKernelFile(table, types, func(path string, mount bool) error {
		if mount || unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS) == nil {
			return unix.EROFS // it is not
		}
		return nil
	})
}

// actsOnKernel tells the file systems whose files act on the kernel, or, for those of
// upcalls, on what answers for it.
func actsOnKernel(fstype string) bool {
	return plan.KernelFS(fstype) || fstype == "rpc_pipefs" || fstype == "nfsd" || fstype == "fusectl"
}

// covered reports whether a path leads to another mount than this one.
func covered(m pathcheck.Mount) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, m.Point, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &st)
	return err != nil || st.Mnt_id != uint64(m.ID)
}

func isReadOnly(m pathcheck.Mount) bool {
	has := func(options string) bool { return slices.Contains(strings.Split(options, ","), "ro") }
	return has(m.Options) || has(m.Super)
}
