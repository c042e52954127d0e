package main

import (
	"golang.org/x/sys/unix"
)

// Changing what is hidden: its content, its names, its directory.
func init() {
	add(hidden,
		attempt{Name: "write", do: func(w *w) error { return put(open(w.spare("write"), unix.O_WRONLY)) }},
		attempt{Name: "append", do: func(w *w) error { return put(open(w.spare("append"), unix.O_WRONLY|unix.O_APPEND)) }},
		attempt{Name: "read-write", do: func(w *w) error { return put(open(w.spare("read-write"), unix.O_RDWR)) }},
		attempt{Name: "open-truncate", do: func(w *w) error { return opened(open(w.spare("open-truncate"), unix.O_WRONLY|unix.O_TRUNC)) }},
		attempt{Name: "open-read-truncate", do: func(w *w) error { return opened(open(w.spare("open-read-truncate"), unix.O_RDONLY|unix.O_TRUNC)) }},
		attempt{Name: "truncate", do: func(w *w) error { return unix.Truncate(w.spare("truncate"), 0) }},
		attempt{Name: "create", do: func(w *w) error { return opened(open(w.at("hidden/new"), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY)) }},
		attempt{Name: "create-through-link", do: func(w *w) error {
			return opened(open(w.at("work/hidden-link/new-2"), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY))
		}},
		attempt{Name: "create-through-dangling-link", do: func(w *w) error {
			if err := unix.Symlink("../hidden/new-3", w.at("work/dangling")); err != nil {
				return setup(err)
			}
			return opened(open(w.at("work/dangling"), unix.O_CREAT|unix.O_WRONLY))
		}},
		attempt{Name: "create-unnamed", do: func(w *w) error { return opened(open(w.at("hidden"), unix.O_TMPFILE|unix.O_WRONLY)) }},
		attempt{Name: "link-unnamed-in", do: func(w *w) error {
			fd, err := open(w.at("work"), unix.O_TMPFILE|unix.O_WRONLY)
			if err != nil {
				return setup(err)
			}
			return unix.Linkat(unix.AT_FDCWD, fdPath(fd), unix.AT_FDCWD, w.at("hidden/unnamed"), unix.AT_SYMLINK_FOLLOW)
		}},
		attempt{Name: "mkdir", do: func(w *w) error { return unix.Mkdir(w.at("hidden/new-dir"), 0o700) }},
		attempt{Name: "mkfifo", do: func(w *w) error { return unix.Mkfifo(w.at("hidden/new-fifo"), 0o600) }},
		attempt{Name: "mknod-socket", do: func(w *w) error { return unix.Mknod(w.at("hidden/new-socket"), unix.S_IFSOCK|0o600, 0) }},
		attempt{Name: "mknod-device", Root: true, do: func(w *w) error {
			return unix.Mknod(w.at("hidden/new-null"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
		}},
		attempt{Name: "bind-socket", do: func(w *w) error { return bindUnix(w.at("hidden/bound")) }},
		attempt{Name: "symlink", do: func(w *w) error { return unix.Symlink("x", w.at("hidden/new-link")) }},
		attempt{Name: "rmdir", do: func(w *w) error { return unix.Rmdir(w.at("hidden/empty")) }},
		attempt{Name: "unlink", do: func(w *w) error { return unix.Unlink(w.spare("unlink")) }},
		attempt{Name: "unlink-below-descriptor", do: func(w *w) error {
			fd, err := place(w.at("hidden"))
			if err != nil {
				return setup(err)
			}
			return unix.Unlinkat(fd, "spare-unlinkat", 0)
		}},
		attempt{Name: "rename-out", do: func(w *w) error { return unix.Rename(w.spare("rename-out"), w.at("work/renamed")) }},
		attempt{Name: "rename-in", do: func(w *w) error {
			return made(w.at("work/to-rename"), func(p string) error { return unix.Rename(p, w.at("hidden/renamed-in")) })
		}},
		attempt{Name: "rename-over", do: func(w *w) error {
			return made(w.at("work/to-cover"), func(p string) error { return unix.Rename(p, w.spare("rename-over")) })
		}},
		attempt{Name: "rename-within", do: func(w *w) error { return unix.Rename(w.spare("rename-within"), w.at("hidden/other")) }},
		attempt{Name: "rename-directory-out", do: func(w *w) error { return unix.Rename(w.at("hidden/moved"), w.at("work/moved")) }},
		attempt{Name: "rename-hidden", do: func(w *w) error {
			return undone(w.at("twin/hidden"), w.at("work/away"))
		}},
		attempt{Name: "rename-above-hidden", do: func(w *w) error { return undone(w.at("above"), w.at("work/above")) }},
		attempt{Name: "rename-above-hidden-in-place", do: func(w *w) error { return undone(w.at("above"), w.at("above-2")) }},
		attempt{Name: "exchange", do: func(w *w) error {
			return made(w.at("work/to-exchange"), func(p string) error {
				return unix.Renameat2(unix.AT_FDCWD, w.spare("exchange"), unix.AT_FDCWD, p, unix.RENAME_EXCHANGE)
			})
		}},
		attempt{Name: "exchange-directories", do: func(w *w) error {
			if err := unix.Mkdir(w.at("work/decoy"), 0o700); err != nil {
				return setup(err)
			}
			return unix.Renameat2(unix.AT_FDCWD, w.at("hidden/sub"), unix.AT_FDCWD, w.at("work/decoy"), unix.RENAME_EXCHANGE)
		}},
		attempt{Name: "whiteout", do: func(w *w) error {
			return unix.Renameat2(unix.AT_FDCWD, w.spare("whiteout"), unix.AT_FDCWD, w.at("hidden/white"), unix.RENAME_WHITEOUT)
		}},
		attempt{Name: "link-out", do: func(w *w) error { return linked(w, unix.Link(w.key(), w.at("work/hard")), "work/hard") }},
		attempt{Name: "link-in", do: func(w *w) error { return unix.Link(w.at("work/file"), w.at("hidden/hard")) }},
		attempt{Name: "link-by-proc", do: func(w *w) error {
			fd, err := place(w.key())
			if err != nil {
				return setup(err)
			}
			err = unix.Linkat(unix.AT_FDCWD, fdPath(fd), unix.AT_FDCWD, w.at("work/hard-2"), unix.AT_SYMLINK_FOLLOW)
			return linked(w, err, "work/hard-2")
		}},
		attempt{Name: "link-by-descriptor", do: func(w *w) error {
			fd, err := place(w.key())
			if err != nil {
				return setup(err)
			}
			return linked(w, unix.Linkat(fd, "", unix.AT_FDCWD, w.at("work/hard-3"), unix.AT_EMPTY_PATH), "work/hard-3")
		}},
		attempt{Name: "create-beside", do: func(w *w) error { return opened(open(w.at("above/new"), unix.O_CREAT|unix.O_WRONLY)) }},
		attempt{Name: "replace-hidden", do: func(w *w) error {
			// What stands at the hidden path in the next launch.
			if err := unix.Mkdir(w.at("work/fake"), 0o700); err != nil {
				return setup(err)
			}
			return unix.Rename(w.at("work/fake"), w.at("above/none"))
		}},
	)
}

// made makes a file for f.
func made(path string, f func(string) error) error {
	if err := opened(open(path, unix.O_CREAT|unix.O_WRONLY)); err != nil {
		return setup(err)
	}
	return f(path)
}

// undone renames and renames back, for those that come after.
func undone(from, to string) error {
	if err := unix.Rename(from, to); err != nil {
		return err
	}
	return setup(unix.Rename(to, from))
}

// linked reads through a new name.
func linked(w *w, err error, name string) error {
	if err != nil {
		return err
	}
	return w.read(w.at(name))
}

func bindUnix(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrUnix{Name: path})
}
