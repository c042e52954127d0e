package plan

import (
	"slices"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// kernelFS tells the file systems whose files act on the kernel itself. Outside
// /proc and /sys, where they are granted for reading, root does not reach them.
func kernelFS(fstype string) bool {
	switch fstype {
	case "proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "binfmt_misc",
		"securityfs", "configfs", "efivarfs", "bpf", "pstore":
		return true
	}
	return false
}

// KernelFS reports whether the files of a file system of this type act on the kernel
// itself.
func KernelFS(fstype string) bool { return kernelFS(fstype) }

// groupFS tells the file systems by which the processes of a control group are killed,
// stopped and moved: without a signal, and by a user to whom one was delegated.
func groupFS(fstype string) bool { return fstype == "cgroup" || fstype == "cgroup2" }

// deviceFS tells the file systems of which every mount is the same device nodes.
func deviceFS(fstype string) bool {
	return fstype == "devtmpfs" || fstype == "devpts" || fstype == "mqueue" || fstype == "nsfs"
}

// kernelKey is the key of what no policy entry hides, but addKernelMounts.
const kernelKey = "hidden"

// addKernelMounts splits off the mounts by which root would leave the domain:
// a second procfs has a second core_pattern. A second devtmpfs has the disks,
// for whoever may open them.
//
// Only those at which where holds are looked at.
func (pl *Plan) addKernelMounts(t pathcheck.Tree, where func(point string) bool) error {
	for _, m := range pl.launch.Mounts {
		if !where(m.Point) {
			continue
		}
		acts := kernelFS(m.FSType) && pl.launch.EUID == 0 || pl.noGroups && groupFS(m.FSType)
		if !acts && m.FSType != "devtmpfs" {
			continue
		}
		if pathcheck.Within("/proc", m.Point) || pathcheck.Within("/sys", m.Point) || m.Point == "/" {
			continue
		}
		if m.FSType == "devtmpfs" && pathcheck.Within("/dev", m.Point) || !pl.mounts.Reaches(m) {
			continue
		}
		if pl.closed(m.Point) || m.FSType == "devtmpfs" && harmlessNode(t, m.Point) {
			continue
		}
		if kept, err := pl.keepKernelMount(t, m.Point); err != nil {
			return err
		} else if kept {
			continue
		}
		if err := pl.hideMount(t, kernelKey, byPolicy, m.Point, "is a mounted "+m.FSType); err != nil {
			return err
		}
	}
	return nil
}

// keepKernelMount deals with a bind mount of /proc or /sys itself, as a chroot has
// one. It is the same inode, so the rule that makes /proc readable makes it
// readable too, and hiding it would take /proc away. What counts is that no
// rule above it makes it writable.
func (pl *Plan) keepKernelMount(t pathcheck.Tree, point string) (bool, error) {
	loc, err := pathcheck.Resolve(t, point)
	if err != nil || !loc.Exists {
		return false, err
	}
	for _, of := range []string{"/proc", "/sys"} {
		own, err := pathcheck.Resolve(t, of)
		if err != nil || !own.Exists || own.Info.ID != loc.Info.ID {
			continue
		}
		pl.kernelMounts = append(pl.kernelMounts, Hidden{Key: kernelKey, Path: loc.Path, author: byPolicy, above: loc.Above})
		pl.noteAbove(loc.Path)
		return true, nil
	}
	return false, nil
}

// inKernelMount reports whether path is one of kernelMounts or lies beneath one:
// it must not be granted by what its path looks like.
func (pl *Plan) inKernelMount(path string) bool {
	return slices.ContainsFunc(pl.kernelMounts, func(h Hidden) bool { return pathcheck.Within(h.Path, path) })
}

// harmlessNode reports whether one device node is mounted at path, as a
// container engine mounts /dev/null over what it masks, and not a disk's.
func harmlessNode(t pathcheck.Tree, path string) bool {
	loc, err := pathcheck.Resolve(t, path)
	return err == nil && loc.Exists && loc.Path == path &&
		loc.Info.Kind == pathcheck.CharDevice && !rawDevice(path, loc.Info)
}

// splitRoot has "/" granted entry by entry where nothing is hidden, so that /proc and
// /sys can be readable only. It can still be listed.
func (pl *Plan) splitRoot(t pathcheck.Tree) error {
	root, err := t.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	id := root.Info().ID
	pl.listable = true
	pl.expand["/"], pl.ungranted[id], pl.ancestors[id] = id, "/", true
	return nil
}

// readable reports whether path is one of the kernel's own files, which are for this
// launch to read only.
func (pl *Plan) readable(path string) bool {
	return pl.launch.EUID == 0 && inKernel(path) || pl.noGroups && pathcheck.Within("/sys", path)
}

// inKernel reports whether path is that of the kernel's own files.
func inKernel(path string) bool {
	return pathcheck.Within("/proc", path) || pathcheck.Within("/sys", path)
}
