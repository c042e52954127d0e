package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Changing what is outside of the workspace.
func init() {
	out := func(name string) func(*w) string { return func(w *w) string { return w.at("outside/" + name) } }
	add(writes,
		attempt{Name: "write-outside", do: func(w *w) error { return put(open(w.at("outside/file"), unix.O_WRONLY)) }},
		attempt{Name: "append-outside", do: func(w *w) error { return put(open(w.at("outside/file"), unix.O_WRONLY|unix.O_APPEND)) }},
		attempt{Name: "truncate-outside", do: func(w *w) error { return unix.Truncate(w.at("outside/spare-truncate"), 0) }},
		attempt{Name: "open-truncate-outside", do: func(w *w) error {
			return opened(open(w.at("outside/spare-open-truncate"), unix.O_RDONLY|unix.O_TRUNC))
		}},
		attempt{Name: "create-outside", do: func(w *w) error { return created(w.at("outside/new")) }},
		attempt{Name: "create-unnamed-outside", do: func(w *w) error { return opened(open(w.at("outside"), unix.O_TMPFILE|unix.O_WRONLY)) }},
		attempt{Name: "link-unnamed-outside", do: func(w *w) error {
			fd, err := open(w.at("work"), unix.O_TMPFILE|unix.O_WRONLY)
			if err != nil {
				return setup(err)
			}
			return unix.Linkat(unix.AT_FDCWD, fdPath(fd), unix.AT_FDCWD, w.at("outside/unnamed"), unix.AT_SYMLINK_FOLLOW)
		}},
		attempt{Name: "mkdir-outside", do: func(w *w) error { return unix.Mkdir(w.at("outside/new-dir"), 0o700) }},
		attempt{Name: "rmdir-outside", do: func(w *w) error { return unix.Rmdir(w.at("outside/empty")) }},
		attempt{Name: "unlink-outside", do: func(w *w) error { return unix.Unlink(w.at("outside/spare-unlink")) }},
		attempt{Name: "symlink-outside", do: func(w *w) error { return unix.Symlink("x", w.at("outside/new-link")) }},
		attempt{Name: "mkfifo-outside", do: func(w *w) error { return unix.Mkfifo(w.at("outside/new-fifo"), 0o600) }},
		attempt{Name: "bind-socket-outside", do: func(w *w) error { return bindUnix(w.at("outside/bound")) }},
		attempt{Name: "rename-to-outside", do: func(w *w) error {
			return made(w.at("work/leaves"), func(p string) error { return unix.Rename(p, w.at("outside/arrived")) })
		}},
		attempt{Name: "rename-from-outside", do: func(w *w) error { return unix.Rename(w.at("outside/spare-rename"), w.at("work/taken")) }},
		attempt{Name: "rename-in-outside", do: func(w *w) error {
			return unix.Rename(w.at("outside/spare-rename-2"), w.at("outside/renamed"))
		}},
		attempt{Name: "rename-directory-from-outside", do: func(w *w) error { return unix.Rename(w.at("outside/sub"), w.at("work/sub")) }},
		attempt{Name: "rename-workspace", do: func(w *w) error { return undone(w.at("work"), w.at("work-2")) }},
		attempt{Name: "exchange-outside", do: func(w *w) error {
			return made(w.at("work/swapped"), func(p string) error {
				return unix.Renameat2(unix.AT_FDCWD, w.at("outside/spare-exchange"), unix.AT_FDCWD, p, unix.RENAME_EXCHANGE)
			})
		}},
		attempt{Name: "exchange-workspace", do: func(w *w) error {
			return twice(func() error {
				return unix.Renameat2(unix.AT_FDCWD, w.at("work"), unix.AT_FDCWD, w.at("outside"), unix.RENAME_EXCHANGE)
			})
		}},
		attempt{Name: "link-from-outside", do: func(w *w) error {
			if err := unix.Link(w.at("outside/file"), w.at("work/hard-outside")); err != nil {
				return err
			}
			return put(open(w.at("work/hard-outside"), unix.O_WRONLY))
		}},
		attempt{Name: "link-to-outside", do: func(w *w) error { return unix.Link(w.at("work/file"), w.at("outside/hard")) }},
		attempt{Name: "write-through-link", do: throughLink(out("file"), func(p string) error { return put(open(p, unix.O_WRONLY)) })},
		attempt{Name: "create-through-link-outside", do: throughLink(out("new-2"), func(p string) error { return opened(open(p, unix.O_CREAT|unix.O_WRONLY)) })},
		attempt{Name: "create-through-directory-link-outside", do: throughLink(out(""), func(p string) error { return created(p + "/new-3") })},
		attempt{Name: "write-above", do: func(w *w) error {
			return from(w.at("work/dir"), func() error { return put(open("../../outside/file", unix.O_WRONLY)) })
		}},
		attempt{Name: "write-by-proc-cwd", do: func(w *w) error {
			return from(w.at("work"), func() error { return put(open("/proc/self/cwd/../outside/file", unix.O_WRONLY)) })
		}},
		attempt{Name: "write-by-proc-root", do: func(w *w) error { return put(open("/proc/self/root"+w.at("outside/file"), unix.O_WRONLY)) }},
		attempt{Name: "write-read-descriptor-again", do: func(w *w) error {
			fd, err := open(w.at("outside/file"), unix.O_RDONLY)
			if err != nil {
				return setup(err)
			}
			return put(open(fdPath(fd), unix.O_WRONLY))
		}},
		attempt{Name: "write-place-again", do: func(w *w) error {
			fd, err := place(w.at("outside/file"))
			if err != nil {
				return setup(err)
			}
			return put(open("/dev/fd/"+filepath.Base(fdPath(fd)), unix.O_WRONLY))
		}},
		attempt{Name: "map-read-descriptor", do: func(w *w) error {
			fd, err := open(w.at("outside/file"), unix.O_RDWR)
			if err != nil {
				return err
			}
			_, err = unix.Mmap(fd, 0, 1, unix.PROT_WRITE, unix.MAP_SHARED)
			return err
		}},
		attempt{Name: "write-shim", do: func(w *w) error { return put(open(w.at("shims/attempt"), unix.O_WRONLY|unix.O_APPEND)) }},
		attempt{Name: "replace-shim", do: func(w *w) error {
			if err := os.WriteFile(w.at("work/attempt"), []byte("#!/bin/sh\n"), 0o700); err != nil {
				return setup(err)
			}
			return unix.Rename(w.at("work/attempt"), w.at("shims/other"))
		}},
		attempt{Name: "write-program", do: func(w *w) error { return created(w.at("beside-program")) }},
		attempt{Name: "cron", Root: true, do: func(*w) error {
			const path = "/etc/escape-test"
			if err := created(path); err != nil {
				return err
			}
			return setup(unix.Unlink(path))
		}},
		attempt{Name: "write-in-user-namespace", inside: true, do: func(w *w) error { return put(open(w.at("outside/file"), unix.O_WRONLY)) }},
		attempt{Name: "bind-outside-in-user-namespace", inside: true, do: func(w *w) error {
			if err := unix.Mount(w.at("outside"), w.at("work/point"), "", unix.MS_BIND, ""); err != nil {
				return err
			}
			return created(w.at("work/point/by-mount"))
		}},
		attempt{Name: "overlay-outside-in-user-namespace", inside: true, do: func(w *w) error {
			fd, err := detached("overlay", [][2]string{
				{"lowerdir", w.at("work/dir")}, {"upperdir", w.at("outside/dir")}, {"workdir", w.at("outside/empty-2")},
			})
			if err != nil {
				return err
			}
			return opened(unix.Openat(fd, "by-overlay", unix.O_CREAT|unix.O_WRONLY, 0o600))
		}},
		attempt{Name: "clone-tree-outside-in-user-namespace", inside: true, do: func(w *w) error {
			fd, err := unix.OpenTree(unix.AT_FDCWD, w.at("outside"), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
			if err != nil {
				return err
			}
			return opened(unix.Openat(fd, "by-clone", unix.O_CREAT|unix.O_WRONLY, 0o600))
		}},
		attempt{Name: "write-by-inherited-descriptor", Limit: "Descriptors for writing", do: func(w *w) error {
			_, err := unix.Write(w.Descriptors["outside"], []byte("+"))
			return err
		}},
		attempt{Name: "create-by-inherited-directory", do: func(w *w) error {
			return opened(unix.Openat(w.Descriptors["outside-dir"], "new-4", unix.O_CREAT|unix.O_WRONLY, 0o600))
		}},
	)
}

func created(path string) error {
	return opened(open(path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY))
}

// twice undoes an exchange.
func twice(f func() error) error {
	if err := f(); err != nil {
		return err
	}
	return setup(f())
}

// throughLink makes a link to a place in the workspace and hands it to f.
func throughLink(to func(*w) string, f func(string) error) func(*w) error {
	return func(w *w) error {
		link := w.at("work/link-" + filepath.Base(to(w)))
		if err := unix.Symlink(to(w), link); err != nil {
			return setup(err)
		}
		return f(link)
	}
}
