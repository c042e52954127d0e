package main

import (
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What Landlock has no right for.
func init() {
	const limit = "Metadata"
	var st unix.Stat_t
	add(hidden,
		attempt{Name: "stat", Limit: limit, do: func(w *w) error { return unix.Stat(w.key(), &st) }},
		attempt{Name: "access", Limit: limit, do: func(w *w) error { return unix.Access(w.key(), unix.R_OK) }},
		attempt{Name: "readlink", Limit: limit, do: func(w *w) error { _, err := os.Readlink(w.at("hidden/link")); return err }},
		attempt{Name: "chmod", Limit: limit, do: func(w *w) error { return unix.Chmod(w.key(), 0o644) }},
		attempt{Name: "chown", Limit: limit, do: func(w *w) error { return unix.Chown(w.key(), w.UID, w.UID) }},
		attempt{Name: "utimes", Limit: limit, do: func(w *w) error { return os.Chtimes(w.key(), time.Unix(1, 0), time.Unix(1, 0)) }},
		attempt{Name: "setxattr", Limit: limit, do: func(w *w) error { return unix.Setxattr(w.key(), "user.note", []byte("x"), 0) }},
		attempt{Name: "listxattr", Limit: limit, do: func(w *w) error { _, err := unix.Listxattr(w.key(), make([]byte, 256)); return err }},
		attempt{Name: "file-attributes", Limit: limit, Rare: "file_setattr(2)", do: func(w *w) error {
			return fileAttributes(w.key())
		}},
		attempt{Name: "inotify", Limit: limit, do: func(w *w) error { return inotify(w.at("hidden")) }},
		attempt{Name: "fanotify", Limit: limit, do: func(w *w) error { return fanotify(w.at("hidden")) }},
		attempt{Name: "handle", Limit: limit, do: func(w *w) error {
			_, _, err := unix.NameToHandleAt(unix.AT_FDCWD, w.key(), 0)
			return err
		}},
		attempt{Name: "chdir", Limit: limit, do: func(w *w) error { return unix.Chdir(w.at("hidden/sub")) }},
		attempt{Name: "statfs", Limit: limit, do: func(w *w) error { return unix.Statfs(w.at("hidden"), &unix.Statfs_t{}) }},
	)
	add(writes,
		attempt{Name: "chmod-outside", Limit: limit, do: func(w *w) error { return unix.Chmod(w.at("outside/file"), 0o644) }},
		attempt{Name: "chown-outside", Limit: limit, do: func(w *w) error { return unix.Lchown(w.at("outside/file"), w.UID, w.UID) }},
		attempt{Name: "utimes-outside", Limit: limit, do: func(w *w) error {
			return os.Chtimes(w.at("outside/file"), time.Unix(1, 0), time.Unix(1, 0))
		}},
		attempt{Name: "setxattr-outside", Limit: limit, do: func(w *w) error {
			return unix.Setxattr(w.at("outside/file"), "user.note", []byte("x"), 0)
		}},
		attempt{Name: "acl-outside", Limit: limit, do: func(w *w) error {
			// struct posix_acl_xattr_header and entries: user, one more user, group, mask, other.
			acl := []byte{2, 0, 0, 0,
				1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 6, 0, 1, 0, 0, 0,
				4, 0, 4, 0, 255, 255, 255, 255, 16, 0, 6, 0, 255, 255, 255, 255, 32, 0, 4, 0, 255, 255, 255, 255}
			return unix.Setxattr(w.at("outside/file"), "system.posix_acl_access", acl, 0)
		}},
		attempt{Name: "file-attributes-outside", Limit: limit, Rare: "file_setattr(2)", do: func(w *w) error {
			return fileAttributes(w.at("outside/file"))
		}},
		attempt{Name: "flags-outside", Limit: limit, do: func(w *w) error {
			// chattr +A, by a descriptor that is only for reading.
			fd, err := open(w.at("outside/file"), unix.O_RDONLY)
			if err != nil {
				return setup(err)
			}
			flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
			if err != nil {
				return setup(err)
			}
			const noatime = 0x80
			return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|noatime)
		}},
		attempt{Name: "immutable-outside", Root: true, do: func(w *w) error {
			fd, err := open(w.at("outside/file"), unix.O_RDONLY)
			if err != nil {
				return setup(err)
			}
			flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
			if err != nil {
				return setup(err)
			}
			const immutable = 0x10
			if err := unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|immutable); err != nil {
				return err
			}
			return setup(unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags))
		}},
		attempt{Name: "set-user-id-outside", Limit: limit, do: func(w *w) error { return unix.Chmod(w.at("outside/leased"), 0o4755) }},
		attempt{Name: "file-capability-outside", Root: true, Limit: limit, do: func(w *w) error { return change("capability", w.at("outside/leased")) }},
		attempt{Name: "generation-outside", Limit: limit, do: func(w *w) error {
			fd, err := open(w.at("outside/file"), unix.O_RDONLY)
			if err != nil {
				return setup(err)
			}
			const setVersion = 0x40087602 // FS_IOC_SETVERSION
			return unix.IoctlSetPointerInt(fd, setVersion, 7)
		}},
		attempt{Name: "lease-outside", Limit: "Locks and leases", do: func(w *w) error {
			fd, err := open(w.at("outside/leased"), unix.O_RDONLY)
			if err != nil {
				return setup(err)
			}
			_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
			return err
		}},
		attempt{Name: "flock-outside", Limit: "Locks and leases", do: func(w *w) error {
			fd, err := open(w.at("outside/file"), unix.O_RDONLY)
			if err != nil {
				return setup(err)
			}
			return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		}},
	)
}

// fileAttributes sets the flags of file_setattr(2) that were there.
func fileAttributes(path string) error {
	const getattr, setattr = 468, 469
	attr := make([]uint64, 3)
	size := unsafe.Sizeof(attr[0]) * 3
	at := unix.AT_FDCWD
	if err := did(getattr, uintptr(at), cstr(path), ptr(&attr[0]), size, 0); err != nil {
		if err == unix.ENOSYS {
			return missing("file_getattr(2)")
		}
		return setup(err)
	}
	return did(setattr, uintptr(at), cstr(path), ptr(&attr[0]), size, 0)
}

func inotify(path string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return setup(err)
	}
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_ALL_EVENTS)
	return err
}

func fanotify(path string) error {
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_REPORT_DFID_NAME, unix.O_RDONLY)
	if err != nil {
		return err
	}
	return unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_CREATE|unix.FAN_ONDIR, unix.AT_FDCWD, path)
}
