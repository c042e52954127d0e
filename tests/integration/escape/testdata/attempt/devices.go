package main

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The bytes below a file system, and the memory of the kernel.
func init() {
	const loop = "a loop device"
	device := func(path string, flags int) func(*w) error {
		return func(*w) error {
			err := opened(open(path, flags|unix.O_NONBLOCK))
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) {
				return missing(path)
			}
			return err
		}
	}
	node := func(w *w) (int, error) {
		var st unix.Stat_t
		err := unix.Stat(w.Loop, &st)
		return int(st.Rdev), err
	}
	add(hidden,
		attempt{Name: "block-device", Root: true, Needs: loop, do: func(w *w) error {
			if w.Loop == "" {
				return missing(loop)
			}
			return w.read(w.Loop)
		}},
		attempt{Name: "block-device-by-descriptor", Root: true, Needs: loop, do: func(w *w) error {
			if w.Loop == "" {
				return missing(loop)
			}
			return again(w, w.Loop, "/proc/self/fd/")
		}},
		attempt{Name: "block-device-node", Root: true, Needs: loop, do: func(w *w) error {
			if w.Loop == "" {
				return missing(loop)
			}
			dev, err := node(w)
			if err != nil {
				return setup(err)
			}
			if err := unix.Mknod(w.at("work/disk"), unix.S_IFBLK|0o600, dev); err != nil {
				return err
			}
			return w.read(w.at("work/disk"))
		}},
		attempt{Name: "memory-node", Root: true, do: func(w *w) error {
			if err := unix.Mknod(w.at("work/mem"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1))); err != nil {
				return err
			}
			return nil
		}},
		attempt{Name: "attach-loop-device", Root: true, Needs: loop, do: func(w *w) error {
			// A descriptor of the hidden file is needed for it.
			if w.Loop == "" {
				return missing(loop)
			}
			fd, err := open(w.key(), unix.O_RDONLY)
			if err != nil {
				return err
			}
			ctl, err := open(w.Loop, unix.O_RDONLY)
			if err != nil {
				return err
			}
			const changeFD = 0x4c06
			return unless(unix.IoctlSetInt(ctl, changeFD, fd), unix.EINVAL)
		}},
		attempt{Name: "detach-loop-device", Root: true, Needs: loop, do: func(w *w) error {
			if w.Loop == "" {
				return missing(loop)
			}
			fd, err := open(w.Loop, unix.O_RDONLY)
			if err != nil {
				return err
			}
			const setStatus = 0x4c04 // without a status: EFAULT, after the question of permission
			return unless(did(unix.SYS_IOCTL, uintptr(fd), setStatus, 0), unix.EFAULT)
		}},
		attempt{Name: "dev-mem", Root: true, Rare: "/dev/mem", do: device("/dev/mem", unix.O_RDONLY)},
		attempt{Name: "dev-port", Root: true, Rare: "/dev/port", do: device("/dev/port", unix.O_RDONLY)},
		attempt{Name: "swap-device", Root: true, Rare: "/dev/zram0", do: device("/dev/zram0", unix.O_RDONLY)},
		attempt{Name: "root-disk", Root: true, Rare: "a root disk that may be read", do: func(*w) error {
			disk := rootDisk()
			if disk == "" {
				return missing("a root disk")
			}
			return opened(open(disk, unix.O_RDONLY))
		}},
	)
	add(kernel,
		attempt{Name: "machine-registers", Root: true, Rare: "/dev/cpu/0/msr", do: device("/dev/cpu/0/msr", unix.O_RDONLY)},
	)
	add(writes,
		attempt{Name: "dev-kmsg", Root: true, do: device("/dev/kmsg", unix.O_WRONLY)},
		attempt{Name: "dev-fuse", Needs: "/dev/fuse", Root: true, do: device("/dev/fuse", unix.O_RDWR)},
		attempt{Name: "dev-kvm", Rare: "/dev/kvm", Root: true, do: device("/dev/kvm", unix.O_RDWR)},
		attempt{Name: "dev-console", Root: true, Rare: "/dev/ttyS0", do: device("/dev/ttyS0", unix.O_WRONLY)},
		attempt{Name: "dev-new", Root: true, do: func(*w) error {
			const path = "/dev/escape-test"
			if err := opened(open(path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY)); err != nil {
				return err
			}
			return setup(unix.Unlink(path))
		}},
		attempt{Name: "dev-loop-control", Root: true, Needs: "/dev/loop-control", do: device("/dev/loop-control", unix.O_RDWR)},
		attempt{Name: "dev-block-write", Root: true, Needs: loop, do: func(w *w) error {
			if w.Loop == "" {
				return missing(loop)
			}
			return rewrite(w.Loop)
		}},
	)
}

// rootDisk is the device of /, if it is one.
func rootDisk() string {
	data, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 1 && f[1] == "/" && strings.HasPrefix(f[0], "/dev/") {
			if fd, err := open(f[0], unix.O_RDONLY); err == nil {
				_ = unix.Close(fd)
				return f[0]
			} else if errors.Is(err, unix.EACCES) {
				return f[0]
			}
		}
	}
	return ""
}
