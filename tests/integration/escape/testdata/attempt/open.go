package main

import (
	"strings"

	"golang.org/x/sys/unix"
)

// Reading what is hidden, by every name that leads to it.
func init() {
	const cached = 0x20 // RESOLVE_CACHED
	add(hidden,
		attempt{Name: "open", do: func(w *w) error { return w.read(w.key()) }},
		attempt{Name: "open-through-link", do: func(w *w) error { return w.read(w.at("work/key-link")) }},
		attempt{Name: "open-through-directory-link", do: func(w *w) error { return w.read(w.at("work/hidden-link/key")) }},
		attempt{Name: "open-through-inner-link", do: func(w *w) error { return w.read(w.at("hidden/link")) }},
		attempt{Name: "open-relative", do: func(w *w) error { return from(w.at("work"), func() error { return w.read("../hidden/key") }) }},
		attempt{Name: "open-above", do: func(w *w) error { return w.read(w.at("work/dir/../../hidden/sub/../key")) }},
		attempt{Name: "open-deep-in-a-frozen-directory", do: func(w *w) error { return w.read(w.at("above/hidden/key")) }},
		attempt{Name: "open-long-path", do: func(w *w) error {
			return from(w.at("work"), func() error { return w.read(strings.Repeat("./", 1500) + "../hidden/key") })
		}},
		attempt{Name: "open-slashes", do: func(w *w) error { return w.read(strings.ReplaceAll(w.key(), "/", "//")) }},
		attempt{Name: "open-proc-root", do: func(w *w) error { return w.read("/proc/self/root" + w.key()) }},
		attempt{Name: "open-proc-thread-root", do: func(w *w) error { return w.read("/proc/thread-self/root" + w.key()) }},
		attempt{Name: "open-proc-cwd", do: func(w *w) error {
			return from(w.at("work"), func() error { return w.read("/proc/self/cwd/../hidden/key") })
		}},
		attempt{Name: "open-proc-task-cwd", do: func(w *w) error {
			return from(w.at("hidden"), func() error { return w.read("/proc/thread-self/cwd/key") })
		}},
		attempt{Name: "open-from-inside", do: func(w *w) error { return from(w.at("hidden"), func() error { return w.read("key") }) }},
		attempt{Name: "open-after-fchdir", do: func(w *w) error {
			fd, err := place(w.at("hidden"))
			if err != nil {
				return setup(err)
			}
			if err := unix.Fchdir(fd); err != nil {
				return err
			}
			return w.read("key")
		}},
		attempt{Name: "open-below-descriptor", do: func(w *w) error { return below(w, w.at("hidden"), "key", 0) }},
		attempt{Name: "open-below-work", do: func(w *w) error { return below(w, w.at("work"), "../hidden/key", 0) }},
		attempt{Name: "openat2", do: func(w *w) error { return below(w, w.at("hidden"), "key", unix.RESOLVE_BENEATH) }},
		attempt{Name: "openat2-in-root", do: func(w *w) error { return below(w, w.Dir, "/hidden/key", unix.RESOLVE_IN_ROOT) }},
		attempt{Name: "openat2-cached", do: func(w *w) error { return below(w, w.Dir, "hidden/key", cached) }},
		attempt{Name: "open-again-by-proc", do: func(w *w) error { return again(w, w.key(), "/proc/self/fd/") }},
		attempt{Name: "open-again-by-thread", do: func(w *w) error { return again(w, w.key(), "/proc/thread-self/fd/") }},
		attempt{Name: "open-again-by-dev", do: func(w *w) error { return again(w, w.key(), "/dev/fd/") }},
		attempt{Name: "open-directory-again", do: func(w *w) error {
			fd, err := place(w.at("hidden"))
			if err != nil {
				return setup(err)
			}
			again, err := open(fdPath(fd), unix.O_RDONLY|unix.O_DIRECTORY)
			return list(again, err, "key")
		}},
		attempt{Name: "list", do: func(w *w) error { return listed(w.at("hidden")) }},
		attempt{Name: "list-from-inside", do: func(w *w) error { return from(w.at("hidden"), func() error { return listed(".") }) }},
		attempt{Name: "list-through-link", do: func(w *w) error { return listed(w.at("work/hidden-link/")) }},
		attempt{Name: "list-below-descriptor", do: func(w *w) error {
			fd, err := place(w.at("hidden"))
			if err != nil {
				return setup(err)
			}
			dir, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
			return list(dir, err, "key")
		}},
		attempt{Name: "open-fifo", do: func(w *w) error { return opened(open(w.at("hidden/fifo"), unix.O_RDONLY|unix.O_NONBLOCK)) }},
		attempt{Name: "open-by-handle", Root: true, do: byHandle},
		attempt{Name: "open-another-name", Limit: "Another name of a hidden file", do: func(w *w) error { return w.read(w.at("work/other-name")) }},
		attempt{Name: "change-another-name", Limit: "Another name of a hidden file", do: func(w *w) error {
			return put(open(w.at("work/other-name"), unix.O_WRONLY|unix.O_APPEND))
		}},
	)
}

// from runs f in another directory.
func from(dir string, f func() error) error {
	if err := unix.Chdir(dir); err != nil {
		return err
	}
	return f()
}

// below opens name beneath a directory that was opened as a place.
func below(w *w, dir, name string, resolve uint64) error {
	fd, err := place(dir)
	if err != nil {
		return setup(err)
	}
	return w.secret(unix.Openat2(fd, name, &unix.OpenHow{Flags: unix.O_RDONLY, Resolve: resolve}))
}

// again opens by a proc file system what was opened as a place.
func again(w *w, path, prefix string) error {
	fd, err := place(path)
	if err != nil {
		return setup(err)
	}
	return w.read(prefix + fdPath(fd)[len("/proc/self/fd/"):])
}

func listed(dir string) error {
	fd, err := open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	return list(fd, err, "key")
}

func byHandle(w *w) error {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, w.key(), 0)
	if err != nil {
		return setup(err)
	}
	at, err := open(w.at("work"), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return setup(err)
	}
	return w.secret(unix.OpenByHandleAt(at, h, unix.O_RDONLY))
}
