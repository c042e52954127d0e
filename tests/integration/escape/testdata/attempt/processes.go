package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// of is a file of the process outside.
func (w *w) of(name string) string { return fmt.Sprintf("/proc/%d/%s", w.PID, name) }

// unseen tells a process that a private /proc does not show from one that is
// not there.
func (w *w) unseen(err error) error {
	if errors.Is(err, unix.ENOENT) && !errors.Is(unix.Kill(w.PID, 0), unix.ESRCH) {
		return errUnseen
	}
	return err
}

// Looking into a process outside.
func init() {
	file := func(name string) func(*w) error {
		return func(w *w) error {
			fd, err := open(w.of(name), unix.O_RDONLY)
			if err != nil {
				return w.unseen(err)
			}
			_, err = unix.Read(fd, make([]byte, 64))
			return err
		}
	}
	link := func(name string) func(*w) error {
		return func(w *w) error { _, err := os.Readlink(w.of(name)); return w.unseen(err) }
	}
	// These lead to what is hidden, under every policy that hides it.
	add(hidden,
		attempt{Name: "outside-root", do: func(w *w) error { return w.unseen(w.read(w.of("root") + w.key())) }},
		attempt{Name: "outside-cwd", do: func(w *w) error { return w.unseen(w.read(w.of("cwd/hidden/key"))) }},
		attempt{Name: "outside-descriptor", do: func(w *w) error { return w.unseen(w.read(w.of("fd/" + strconv.Itoa(w.File)))) }},
		attempt{Name: "outside-task-descriptor", do: func(w *w) error {
			return w.unseen(w.read(w.of(fmt.Sprintf("task/%d/fd/%d", w.PID, w.File))))
		}},
		attempt{Name: "outside-memory", do: func(w *w) error {
			fd, err := open(w.of("mem"), unix.O_RDONLY)
			if err != nil {
				return w.unseen(err)
			}
			buf := make([]byte, len(w.Secret))
			if _, err := unix.Pread(fd, buf, int64(w.Address)); err != nil {
				return err
			}
			return w.isSecret(string(buf))
		}},
		attempt{Name: "process-vm-readv", do: func(w *w) error {
			buf := make([]byte, len(w.Secret))
			_, err := unix.ProcessVMReadv(w.PID, iovec(buf), []unix.RemoteIovec{{Base: uintptr(w.Address), Len: len(buf)}}, 0)
			if err != nil {
				return err
			}
			return w.isSecret(string(buf))
		}},
		attempt{Name: "process-vm-writev", do: func(w *w) error {
			_, err := unix.ProcessVMWritev(w.PID, iovec([]byte(w.Secret)), []unix.RemoteIovec{{Base: uintptr(w.Address), Len: len(w.Secret)}}, 0)
			return err
		}},
		attempt{Name: "pidfd-getfd", do: func(w *w) error {
			fd, err := unix.PidfdOpen(w.PID, 0)
			if err != nil {
				return setup(err)
			}
			return w.secret(unix.PidfdGetfd(fd, w.File, 0))
		}},
		attempt{Name: "ptrace-seize", do: func(w *w) error { return unix.PtraceSeize(w.PID) }},
		attempt{Name: "ptrace-attach", do: func(w *w) error { return attach(w.PID) }},
	)
	add(proc,
		attempt{Name: "proc-environ", do: file("environ")},
		attempt{Name: "proc-auxv", do: file("auxv")},
		attempt{Name: "proc-maps", do: file("maps")},
		attempt{Name: "proc-smaps", do: file("smaps")},
		attempt{Name: "proc-pagemap", do: file("pagemap")},
		attempt{Name: "proc-numa-maps", do: file("numa_maps"), Rare: "numa_maps"},
		attempt{Name: "proc-io", do: file("io")},
		attempt{Name: "proc-syscall", do: file("syscall")},
		attempt{Name: "proc-stack", do: file("stack"), Root: true},
		attempt{Name: "proc-personality", do: file("personality")},
		attempt{Name: "proc-timers", do: file("timers")},
		attempt{Name: "proc-timerslack", do: file("timerslack_ns"), Root: true},
		attempt{Name: "proc-exe", do: link("exe")},
		attempt{Name: "proc-cwd-link", do: link("cwd")},
		attempt{Name: "proc-root-link", do: link("root")},
		attempt{Name: "proc-fd-link", do: link("fd/0")},
		attempt{Name: "proc-ns", do: link("ns/user")},
		attempt{Name: "proc-fdinfo", do: file("fdinfo/0")},
		attempt{Name: "proc-execute", do: func(w *w) error {
			if err := run(w.of("exe"), "escaped"); err != nil {
				return w.unseen(err)
			}
			return nil
		}},
		attempt{Name: "proc-map-files", Root: true, do: func(w *w) error {
			dir, err := os.ReadDir(w.of("map_files"))
			if err != nil {
				return w.unseen(err)
			}
			return opened(open(w.of("map_files/"+dir[0].Name()), unix.O_RDONLY))
		}},
		attempt{Name: "kcmp", do: func(w *w) error {
			return did(unix.SYS_KCMP, uintptr(w.PID), uintptr(unix.Getpid()), 0, 0, 0)
		}},
		attempt{Name: "get-robust-list", do: func(w *w) error {
			var head, size uintptr
			return did(unix.SYS_GET_ROBUST_LIST, uintptr(w.PID), ptr(&head), ptr(&size))
		}},
		attempt{Name: "process-madvise", Root: true, do: func(w *w) error {
			fd, err := unix.PidfdOpen(w.PID, 0)
			if err != nil {
				return setup(err)
			}
			page := w.Address &^ 4095
			vec := unix.RemoteIovec{Base: uintptr(page), Len: 4096}
			return did(unix.SYS_PROCESS_MADVISE, uintptr(fd), ptr(&vec), 1, 21, 0) // MADV_PAGEOUT
		}},
		attempt{Name: "move-pages", do: func(w *w) error {
			page, status := uintptr(w.Address), int32(0)
			return did(unix.SYS_MOVE_PAGES, uintptr(w.PID), 1, ptr(&page), 0, ptr(&status), 0)
		}},
		attempt{Name: "migrate-pages", do: func(w *w) error {
			nodes := uint64(1)
			return did(unix.SYS_MIGRATE_PAGES, uintptr(w.PID), 64, ptr(&nodes), ptr(&nodes))
		}},
		attempt{Name: "perf-of-outside", do: func(w *w) error {
			attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK, Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
			attr.Size = uint32(unsafe.Sizeof(attr))
			return opened(unix.PerfEventOpen(&attr, w.PID, -1, -1, 0))
		}},
		attempt{Name: "pidfd-namespace", Rare: "namespaces of a pidfd", do: func(w *w) error {
			fd, err := unix.PidfdOpen(w.PID, 0)
			if err != nil {
				return setup(err)
			}
			const userNamespace = 0xff09 // PIDFD_GET_USER_NAMESPACE
			ns, err := call(unix.SYS_IOCTL, uintptr(fd), userNamespace, 0)
			if errors.Is(err, unix.ENOTTY) {
				return missing("namespaces of a pidfd")
			}
			return opened(int(ns), err)
		}},
		attempt{Name: "share-core", Rare: "core scheduling", do: func(w *w) error {
			// Nobody shares a cookie with a process that he may not trace.
			const schedCore, create = 62, 1
			err := did(unix.SYS_PRCTL, schedCore, create, uintptr(w.PID), 0, 0)
			if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENODEV) {
				return missing("core scheduling")
			}
			return err
		}},
		attempt{Name: "proc-clear-refs", Limit: "Scheduling of other processes", do: writeOf("clear_refs", "1")},
		attempt{Name: "proc-cmdline", Limit: "Which processes there are", do: file("cmdline")},
		attempt{Name: "proc-status", Limit: "Which processes there are", do: file("status")},
		attempt{Name: "proc-stat", Limit: "Which processes there are", do: func(w *w) error {
			return w.unseen(unix.Stat(w.of(""), &unix.Stat_t{}))
		}},
		attempt{Name: "proc-list", Limit: "Which processes there are", do: func(w *w) error {
			dir, err := os.ReadDir("/proc")
			if err != nil {
				return err
			}
			for _, e := range dir {
				if e.Name() == strconv.Itoa(w.PID) {
					return nil
				}
			}
			return errUnseen
		}},
		attempt{Name: "pidfd-open", Limit: "Which processes there are", do: func(w *w) error { return opened(unix.PidfdOpen(w.PID, 0)) }},
		attempt{Name: "getpgid", Limit: "Which processes there are", do: func(w *w) error { _, err := unix.Getpgid(w.PID); return err }},
		attempt{Name: "getpriority", Limit: "Which processes there are", do: func(w *w) error {
			_, err := unix.Getpriority(unix.PRIO_PROCESS, w.PID)
			return err
		}},
		attempt{Name: "prlimit-read", Limit: "Which processes there are", do: func(w *w) error {
			return unix.Prlimit(w.PID, unix.RLIMIT_CORE, nil, &unix.Rlimit{})
		}},
	)
}

// writeOf writes a text into a file of the process outside.
func writeOf(name, text string) func(*w) error {
	return func(w *w) error {
		fd, err := open(w.of(name), unix.O_WRONLY)
		if err != nil {
			return w.unseen(err)
		}
		_, err = unix.Write(fd, []byte(text))
		return err
	}
}

// attach stops a process as a debugger and lets it go again.
func attach(pid int) error {
	if err := unix.PtraceAttach(pid); err != nil {
		return err
	}
	if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
		return setup(err)
	}
	return setup(unix.PtraceDetach(pid))
}

func iovec(buf []byte) []unix.Iovec {
	v := unix.Iovec{Base: &buf[0]}
	v.SetLen(len(buf))
	return []unix.Iovec{v}
}
