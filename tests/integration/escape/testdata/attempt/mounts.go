package main

import (
	"golang.org/x/sys/unix"
)

// Reaching what is hidden by mounts and roots. Each is tried by root, and by
// everybody in a user namespace.
func init() {
	for _, m := range []struct {
		name string
		do   func(*w) error
	}{
		{"bind", func(w *w) error {
			return mounted(w, unix.Mount(w.at("hidden"), w.at("work/point"), "", unix.MS_BIND, ""), "key")
		}},
		{"bind-above", func(w *w) error {
			return mounted(w, unix.Mount(w.Dir, w.at("work/point"), "", unix.MS_BIND|unix.MS_REC, ""), "hidden/key")
		}},
		{"bind-root", func(w *w) error {
			return mounted(w, unix.Mount("/", w.at("work/point"), "", unix.MS_BIND|unix.MS_REC, ""), w.key()[1:])
		}},
		{"bind-file", func(w *w) error {
			if err := unix.Mount(w.key(), w.at("work/file"), "", unix.MS_BIND, ""); err != nil {
				return err
			}
			defer func() { _ = unix.Unmount(w.at("work/file"), unix.MNT_DETACH) }()
			return w.read(w.at("work/file"))
		}},
		{"bind-proc-descriptor", func(w *w) error {
			fd, err := place(w.at("hidden"))
			if err != nil {
				return setup(err)
			}
			return mounted(w, unix.Mount(fdPath(fd), w.at("work/point"), "", unix.MS_BIND, ""), "key")
		}},
		{"overlay", func(w *w) error {
			return mounted(w, unix.Mount("none", w.at("work/point"), "overlay", 0, "lowerdir="+w.at("hidden")+":"+w.at("work/dir")), "key")
		}},
		{"overlay-above", func(w *w) error {
			return mounted(w, unix.Mount("none", w.at("work/point"), "overlay", 0, "lowerdir="+w.at("above")+":"+w.at("work/dir")), "hidden/key")
		}},
		{"fsopen-overlay", func(w *w) error { return overlay(w, w.at("hidden"), "key") }},
		{"fsopen-overlay-above", func(w *w) error { return overlay(w, w.at("above"), "hidden/key") }},
		{"open-tree", func(w *w) error { return clone(w, w.at("hidden"), "key") }},
		{"open-tree-above", func(w *w) error { return clone(w, w.Dir, "hidden/key") }},
		{"open-tree-root", func(w *w) error { return clone(w, "/", w.key()[1:]) }},
		{"move-mount", func(w *w) error {
			fd, err := unix.OpenTree(unix.AT_FDCWD, w.at("hidden"), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
			if err != nil {
				return err
			}
			return mounted(w, unix.MoveMount(fd, "", unix.AT_FDCWD, w.at("work/point"), unix.MOVE_MOUNT_F_EMPTY_PATH), "key")
		}},
		{"pivot-root", func(w *w) error {
			_ = unix.Unshare(unix.CLONE_NEWNS)
			if err := unix.Mount(w.at("above"), w.at("work/point"), "", unix.MS_BIND, ""); err != nil {
				return err
			}
			if err := unix.PivotRoot(w.at("work/point"), w.at("work/point/old")); err != nil {
				return err
			}
			return w.read("/hidden/key")
		}},
		{"chroot", func(w *w) error {
			if err := unix.Chroot(w.Dir); err != nil {
				return err
			}
			return w.read("/hidden/key")
		}},
		{"chroot-inside", func(w *w) error {
			if err := unix.Chroot(w.at("hidden")); err != nil {
				return err
			}
			return w.read("/key")
		}},
		{"chroot-and-back", func(w *w) error {
			// The old way out of a chroot: a current directory outside of it.
			if err := unix.Chdir(w.Dir); err != nil {
				return setup(err)
			}
			if err := unix.Chroot(w.at("work/dir")); err != nil {
				return err
			}
			return w.read("hidden/key")
		}},
		{"remount", func(w *w) error { return unix.Mount("", w.Mount, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_NOEXEC, "") }},
		{"propagation", func(w *w) error { return unix.Mount("", w.Mount, "", unix.MS_UNBINDABLE, "") }},
		{"mount-setattr", func(w *w) error {
			return unix.MountSetattr(unix.AT_FDCWD, w.Mount, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV})
		}},
		{"fspick", func(w *w) error {
			fd, err := unix.Fspick(unix.AT_FDCWD, w.Mount, 0)
			if err != nil {
				return err
			}
			return unix.FsconfigReconfigure(fd)
		}},
		{"cover", func(w *w) error {
			if err := unix.Mount("none", w.at("above"), "tmpfs", 0, ""); err != nil {
				return err
			}
			return setup(unix.Unmount(w.at("above"), unix.MNT_DETACH))
		}},
	} {
		// The file system of another user is not changed in a user namespace, and
		// how it is mounted there is nobody else's affair.
		if m.name != "fspick" && m.name != "mount-setattr" {
			add(hidden, attempt{Name: m.name + "-in-user-namespace", inside: true, do: m.do})
		}
		add(hidden, attempt{Name: m.name, Root: true, do: m.do})
	}
	add(hidden,
		attempt{Name: "unmount", Root: true, do: func(w *w) error { return unix.Unmount(w.Mount, unix.MNT_DETACH) }},
		attempt{Name: "mount-device", Root: true, Needs: "a loop device", do: func(w *w) error {
			if w.Loop == "" {
				return missing("a loop device")
			}
			if err := unix.Mount(w.Loop, w.at("work/point"), "squashfs", unix.MS_RDONLY, ""); err != unix.EINVAL {
				return err
			}
			return nil // it was read, and is none
		}},
		attempt{Name: "new-proc", Root: true, do: func(w *w) error {
			if err := unix.Mount("proc", w.at("work/point"), "proc", 0, ""); err != nil {
				return err
			}
			defer func() { _ = unix.Unmount(w.at("work/point"), unix.MNT_DETACH) }()
			return rewrite(w.at("work/point/sys/kernel/core_pattern"))
		}},
		attempt{Name: "fsopen-proc", Root: true, do: func(*w) error {
			fd, err := detached("proc", nil)
			if err != nil {
				return err
			}
			return writable(fd, "sys/vm/drop_caches")
		}},
		attempt{Name: "fsopen-sysfs", Root: true, do: func(*w) error {
			fd, err := detached("sysfs", nil)
			if err != nil {
				return err
			}
			return writable(fd, "kernel/mm/transparent_hugepage/enabled")
		}},
		attempt{Name: "setns-mount", Root: true, do: func(w *w) error { return enter(w) }},
		attempt{Name: "setns-pidfd", Root: true, do: func(w *w) error {
			fd, err := unix.PidfdOpen(w.PID, 0)
			if err != nil {
				return setup(err)
			}
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return setup(err)
			}
			if err := unix.Setns(fd, unix.CLONE_NEWNS); err != nil {
				return err
			}
			return w.read(w.key())
		}},
		attempt{Name: "setns-own", Root: true, do: func(w *w) error {
			fd, err := open("/proc/self/ns/mnt", unix.O_RDONLY)
			if err != nil {
				return setup(err)
			}
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return setup(err)
			}
			if err := unix.Setns(fd, unix.CLONE_NEWNS); err != nil {
				return err
			}
			return w.read(w.key())
		}},
		attempt{Name: "user-namespace", inside: true, do: func(w *w) error { return w.read(w.key()) }},
	)
}

// mounted reads below work/point after a mount, which is then undone: as root
// it is in the namespace of the whole world.
func mounted(w *w, err error, name string) error {
	if err != nil {
		return err
	}
	defer func() { _ = unix.Unmount(w.at("work/point"), unix.MNT_DETACH) }()
	return w.read(w.at("work/point/" + name))
}

func clone(w *w, dir, name string) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	return w.secret(unix.Openat(fd, name, unix.O_RDONLY, 0))
}

// detached makes a file system that is mounted nowhere.
func detached(kind string, options [][2]string) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	for _, o := range options {
		if err := unix.FsconfigSetString(fs, o[0], o[1]); err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
}

func overlay(w *w, dir, name string) error {
	fd, err := detached("overlay", [][2]string{{"lowerdir", dir + ":" + w.at("work/dir")}})
	if err != nil {
		return err
	}
	return w.secret(unix.Openat(fd, name, unix.O_RDONLY, 0))
}

// writable opens a file below a descriptor for writing.
func writable(fd int, name string) error { return opened(unix.Openat(fd, name, unix.O_WRONLY, 0)) }

// enter joins the mount namespace of the process outside and reads what is
// hidden.
func enter(w *w) error {
	fd, err := open(w.of("ns/mnt"), unix.O_RDONLY)
	if err != nil {
		return w.unseen(err)
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return setup(err)
	}
	if err := unix.Setns(fd, unix.CLONE_NEWNS); err != nil {
		return err
	}
	return w.read(w.key())
}
