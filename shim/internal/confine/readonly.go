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
	if err := setReadOnly(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE); err != nil {
		return fmt.Errorf("make a mount of %q read-only: %w", path, err)
	}
	if err := attach(fd, path); err != nil {
		return fmt.Errorf("mount on %q: %w", path, err)
	}
	n.covered = append(n.covered, path)
	return nil
}

// setReadOnly takes writing from a mount of this namespace. What is mounted on it
// outside later stays outside.
func setReadOnly(dirfd int, path string, flags uint) error {
	return unix.MountSetattr(dirfd, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY, Propagation: unix.MS_PRIVATE})
}

// procFiles are the entries of a proc file system by which the kernel starts programs,
// stops, or reaches memory and files of others.
var procFiles = []string{"sys", "sysrq-trigger", "bus", "fs"}

// closeKernelFiles makes every reachable file that acts on the kernel read-only in this
// mount namespace. A process's own directory of /proc stays writable.
func (n *Namespace) closeKernelFiles(table pathcheck.Mounts) error {
	index, sys := table.Index(), false
	for _, m := range table {
		if !actsOnKernel(m.FSType) || isReadOnly(m) || !index.Reaches(m) || sys && pathcheck.Beneath("/sys", m.Point) {
			continue
		}
		if m.Point == "/sys" { // with all that is mounted there
			if err := setReadOnly(unix.AT_FDCWD, m.Point, unix.AT_RECURSIVE); err != nil {
				return fmt.Errorf("make /sys read-only: %w", err)
			}
			sys = true
			continue
		}
		if !wholeProc(m) {
			if err := setReadOnly(unix.AT_FDCWD, m.Point, 0); err != nil {
				return fmt.Errorf("make %q read-only: %w", m.Point, err)
			}
			continue
		}
		for _, name := range procFiles {
			path := pathcheck.Join(m.Point, name)
			if by, ok := index.Of(path); ok && by.ID != m.ID && isReadOnly(by) {
				continue
			}
			if err := n.bindReadOnly(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// openKernelFile returns the path of a mount by which the kernel can be acted on, or "".
// Who is not root reaches only control groups, which may be delegated to a user.
func openKernelFile(table pathcheck.Mounts, root bool) string {
	index := table.Index()
	for _, m := range table {
		group := m.FSType == "cgroup" || m.FSType == "cgroup2"
		if !group && (!root || !actsOnKernel(m.FSType)) || isReadOnly(m) || !index.Reaches(m) {
			continue
		}
		if !wholeProc(m) {
			return m.Point
		}
		for _, name := range procFiles {
			path := pathcheck.Join(m.Point, name)
			if by, ok := index.Of(path); ok && by.ID != m.ID && isReadOnly(by) {
				continue
			}
			if unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS) == nil {
				return path
			}
		}
	}
	return ""
}

// actsOnKernel tells the file systems whose files act on the kernel, or, for those of
// upcalls, on what answers for it.
func actsOnKernel(fstype string) bool {
	return plan.KernelFS(fstype) || fstype == "rpc_pipefs" || fstype == "nfsd" || fstype == "fusectl"
}

func wholeProc(m pathcheck.Mount) bool { return m.FSType == "proc" && m.Root == "/" }

func isReadOnly(m pathcheck.Mount) bool {
	has := func(options string) bool { return slices.Contains(strings.Split(options, ","), "ro") }
	return has(m.Options) || has(m.Super)
}
