package main

import (
	"errors"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the kernel does for root, whatever is confined. Settings are written back
// as they are.
func init() {
	setting := func(path string) func(*w) error {
		return func(*w) error {
			return absent(rewrite(path), path)
		}
	}
	for _, s := range []struct{ name, path string }{
		{"core-pattern", "/proc/sys/kernel/core_pattern"},
		{"core-pipe-limit", "/proc/sys/kernel/core_pipe_limit"},
		{"modprobe-path", "/proc/sys/kernel/modprobe"},
		{"hotplug-path", "/proc/sys/kernel/hotplug"},
		{"poweroff-path", "/proc/sys/kernel/poweroff_cmd"},
		{"panic", "/proc/sys/kernel/panic"},
		{"sysrq", "/proc/sys/kernel/sysrq"},
		{"pid-max", "/proc/sys/kernel/pid_max"},
		{"randomize", "/proc/sys/kernel/randomize_va_space"},
		{"suid-dumpable", "/proc/sys/fs/suid_dumpable"},
		{"protected-links", "/proc/sys/fs/protected_hardlinks"},
		{"overcommit", "/proc/sys/vm/overcommit_memory"},
		{"ip-forward", "/proc/sys/net/ipv4/ip_forward"},
		{"keys-limit", "/proc/sys/kernel/keys/maxkeys"},
		{"uevent-helper", "/sys/kernel/uevent_helper"},
		{"huge-pages", "/sys/kernel/mm/ksm/sleep_millisecs"},
		{"workqueue-cpus", "/sys/devices/virtual/workqueue/cpumask"},
		{"module-parameter", "/sys/module/printk/parameters/time"},
		{"memory-hotplug", "/sys/devices/system/memory/auto_online_blocks"},
	} {
		add(kernel, attempt{Name: s.name, Root: true, Rare: s.path, do: setting(s.path)})
	}
	add(kernel,
		attempt{Name: "sysrq-trigger", Root: true, Rare: "/proc/sysrq-trigger", do: func(*w) error {
			return absent(into("/proc/sysrq-trigger", "h"), "/proc/sysrq-trigger") // prints its help
		}},
		attempt{Name: "keys-of-a-device", Root: true, do: func(*w) error {
			return into("/sys/devices/virtual/mem/null/uevent", "change")
		}},
		attempt{Name: "binfmt-misc", Root: true, Needs: "binfmt_misc", do: func(w *w) error {
			if w.Binfmt == "" {
				return missing("binfmt_misc")
			}
			if err := into(w.Binfmt+"/register", ":escape-test:E::escape-test::/bin/true:"); err != nil {
				return err
			}
			return setup(into(w.Binfmt+"/escape-test", "-1"))
		}},
		attempt{Name: "mount-unknown-type", Root: true, do: func(w *w) error {
			// The kernel asks for a module of that name, then says ENODEV.
			return unless(unix.Mount("none", w.at("work/point"), "escape-none", 0, ""), unix.ENODEV)
		}},
		attempt{Name: "hostname", Root: true, do: func(*w) error {
			var u unix.Utsname
			if err := unix.Uname(&u); err != nil {
				return setup(err)
			}
			return unix.Sethostname([]byte(unix.ByteSliceToString(u.Nodename[:])))
		}},
		attempt{Name: "domainname", Root: true, do: func(*w) error { return unix.Setdomainname([]byte("(none)")) }},
		attempt{Name: "clock", Root: true, do: func(*w) error {
			var t unix.Timex
			if _, err := unix.Adjtimex(&t); err != nil {
				return setup(err)
			}
			t.Modes = 0x4000 // ADJ_TICK, to what it is
			_, err := unix.Adjtimex(&t)
			return err
		}},
		attempt{Name: "clock-settime", Root: true, do: func(*w) error {
			// A time before the start of the machine is refused after the
			// question who may set it.
			t := unix.Timespec{Sec: 1}
			return unless(did(unix.SYS_CLOCK_SETTIME, unix.CLOCK_REALTIME, ptr(&t)), unix.EINVAL)
		}},
		attempt{Name: "reboot", Root: true, do: func(*w) error {
			// An unknown command is refused after that question, too.
			const magic1, magic2 = 0xfee1dead, 672274793
			return unless(did(unix.SYS_REBOOT, magic1, magic2, 0x7fff, 0), unix.EINVAL)
		}},
		attempt{Name: "modules", Root: true, Rare: "loadable modules", do: func(*w) error {
			image := [64]byte{}
			err := did(unix.SYS_INIT_MODULE, ptr(&image[0]), 64, cstr(""))
			if errors.Is(err, unix.ENOSYS) {
				return missing("loadable modules")
			}
			return unless(err, unix.ENOEXEC)
		}},
		attempt{Name: "kexec", Root: true, Rare: "kexec", do: func(*w) error {
			const architecture = 0x7fff << 16 // none
			err := did(unix.SYS_KEXEC_LOAD, 0, 0, 0, architecture)
			if errors.Is(err, unix.ENOSYS) {
				return missing("kexec")
			}
			return unless(err, unix.EINVAL)
		}},
		attempt{Name: "accounting", Root: true, Rare: "acct(2)", do: func(w *w) error {
			path := w.at("outside/accounting")
			err := did(unix.SYS_ACCT, cstr(path))
			if errors.Is(err, unix.ENOSYS) {
				return missing("acct(2)")
			}
			if err == nil {
				return setup(did(unix.SYS_ACCT, 0))
			}
			return err
		}},
		attempt{Name: "swapon", Root: true, Rare: "swap", do: func(w *w) error {
			err := did(unix.SYS_SWAPON, cstr(w.at("outside/file")), 0)
			if errors.Is(err, unix.ENOSYS) {
				return missing("swap")
			}
			return unless(err, unix.EINVAL) // it was read, and is none
		}},
		attempt{Name: "bpf", Root: true, do: func(*w) error {
			attr := [4]uint32{2, 4, 8, 1} // an array
			fd, err := call(unix.SYS_BPF, 0, ptr(&attr), unsafe.Sizeof(attr))
			return opened(int(fd), err)
		}},
		attempt{Name: "perf-of-a-processor", Root: true, do: func(*w) error {
			attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK}
			attr.Size = uint32(unsafe.Sizeof(attr))
			return opened(unix.PerfEventOpen(&attr, -1, 0, -1, 0))
		}},
		attempt{Name: "io-ports", Root: true, Rare: "I/O ports", do: ioPorts},
		attempt{Name: "kernel-memory", Root: true, Rare: "/proc/kcore", do: func(*w) error {
			return absent(opened(open("/proc/kcore", unix.O_RDONLY)), "/proc/kcore")
		}},
		attempt{Name: "fanotify-of-a-file-system", Root: true, do: events},
		attempt{Name: "hang-up", Root: true, do: func(*w) error {
			// Without a terminal of its own there is nothing to hang up.
			if _, err := unix.Setsid(); err != nil {
				return setup(err)
			}
			return did(unix.SYS_VHANGUP)
		}},
		attempt{Name: "syslog", Root: true, do: func(*w) error {
			const consoleLevel = 8
			data, err := os.ReadFile("/proc/sys/kernel/printk")
			if err != nil {
				return setup(err)
			}
			return did(unix.SYS_SYSLOG, consoleLevel, 0, uintptr(data[0]-'0'))
		}},
	)
}

// absent takes the errno of what is not there for a lack of the machine.
func absent(err error, what string) error {
	for _, e := range []error{unix.ENOENT, unix.ENXIO, unix.ENODEV, unix.ENOSYS, unix.EIO} {
		if errors.Is(err, e) {
			return missing(what)
		}
	}
	return err
}

// unless takes an errno that comes after the question of permission for a
// success.
func unless(err error, passed unix.Errno) error {
	if errors.Is(err, passed) {
		return nil
	}
	return err
}

// events reads what is hidden by the descriptor that comes with the news that
// the process outside has opened it.
func events(w *w) error {
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_NONBLOCK, unix.O_RDONLY)
	if err != nil {
		return err
	}
	if err := unix.FanotifyMark(fd, unix.FAN_MARK_ADD|unix.FAN_MARK_MOUNT, unix.FAN_OPEN, unix.AT_FDCWD, w.at("work")); err != nil {
		return err
	}
	buf := make([]byte, 4096)
	for range 100 {
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EAGAIN) {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		size := int(unsafe.Sizeof(unix.FanotifyEventMetadata{}))
		for ; n >= size; n -= size {
			e := (*unix.FanotifyEventMetadata)(unsafe.Pointer(&buf[0]))
			if w.secret(int(e.Fd), nil) == nil {
				return nil
			}
			buf = buf[size:]
		}
		buf = make([]byte, 4096)
	}
	return errSilent
}
