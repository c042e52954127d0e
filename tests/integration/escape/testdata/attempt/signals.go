package main

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Signals to a process outside, and what else stops or ends it.
func init() {
	const quiet = unix.SIGURG // ignored, so that the process outside lives on
	add(signals,
		attempt{Name: "kill", do: func(w *w) error { return unix.Kill(w.PID, quiet) }},
		attempt{Name: "kill-0", do: func(w *w) error { return unix.Kill(w.PID, 0) }},
		attempt{Name: "tkill", do: func(w *w) error { return did(unix.SYS_TKILL, uintptr(w.PID), uintptr(quiet)) }},
		attempt{Name: "tgkill", do: func(w *w) error { return unix.Tgkill(w.PID, w.PID, quiet) }},
		attempt{Name: "kill-group", do: func(w *w) error { return unix.Kill(-w.PID, quiet) }},
		attempt{Name: "sigqueue", do: func(w *w) error {
			info := queued(int32(quiet))
			return did(unix.SYS_RT_SIGQUEUEINFO, uintptr(w.PID), uintptr(quiet), ptr(&info[0]))
		}},
		attempt{Name: "tgsigqueue", do: func(w *w) error {
			info := queued(int32(quiet))
			return did(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(w.PID), uintptr(w.PID), uintptr(quiet), ptr(&info[0]))
		}},
		attempt{Name: "pidfd-send-signal", do: func(w *w) error {
			fd, err := unix.PidfdOpen(w.PID, 0)
			if err != nil {
				return setup(err)
			}
			return unix.PidfdSendSignal(fd, quiet, nil, 0)
		}},
		attempt{Name: "pidfd-send-signal-group", Rare: "signals to the group of a pidfd", do: func(w *w) error {
			fd, err := unix.PidfdOpen(w.PID, 0)
			if err != nil {
				return setup(err)
			}
			const group = 1 << 2 // PIDFD_SIGNAL_PROCESS_GROUP
			err = unix.PidfdSendSignal(fd, quiet, nil, group)
			if errors.Is(err, unix.EINVAL) {
				return missing("signals to the group of a pidfd")
			}
			return err
		}},
		attempt{Name: "pidfd-send-signal-by-proc", do: func(w *w) error {
			fd, err := open(w.of(""), unix.O_RDONLY|unix.O_DIRECTORY)
			if err != nil {
				return w.unseen(err)
			}
			return unix.PidfdSendSignal(fd, quiet, nil, 0)
		}},
		attempt{Name: "signal-by-owner-of-a-pipe", do: func(w *w) error {
			return owned(w, func(fd int) error {
				_, err := unix.FcntlInt(uintptr(fd), unix.F_SETOWN, w.PID)
				return err
			})
		}},
		attempt{Name: "signal-by-group-of-a-pipe", do: func(w *w) error {
			return owned(w, func(fd int) error {
				_, err := unix.FcntlInt(uintptr(fd), unix.F_SETOWN, -w.PID)
				return err
			})
		}},
		attempt{Name: "signal-by-thread-of-a-pipe", do: func(w *w) error {
			return owned(w, func(fd int) error {
				owner := [2]int32{0, int32(w.PID)} // F_OWNER_TID
				const setOwnEx = 15
				return did(unix.SYS_FCNTL, uintptr(fd), setOwnEx, ptr(&owner[0]))
			})
		}},
		attempt{Name: "signal-by-dnotify", do: func(w *w) error {
			fd, err := open(w.at("work/dir"), unix.O_RDONLY|unix.O_DIRECTORY)
			if err != nil {
				return setup(err)
			}
			const create, again = 4, 1 << 31 // DN_CREATE, DN_MULTISHOT
			before := w.arrived()
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETSIG, int(unix.SIGUSR2)); err != nil {
				return setup(err)
			}
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETOWN, w.PID); err != nil {
				return err
			}
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_NOTIFY, create|again); err != nil {
				return setup(err)
			}
			// The kernel sets the owner of a watch again.
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETOWN, w.PID); err != nil {
				return err
			}
			if err := opened(open(w.at("work/dir/noticed"), unix.O_CREAT|unix.O_WRONLY)); err != nil {
				return setup(err)
			}
			return w.awaitSignal(before)
		}},
	)
}

// queued is a siginfo_t of sigqueue(3).
func queued(signal int32) []int32 {
	info := make([]int32, 32)
	info[0], info[2] = signal, -1 // SI_QUEUE
	info[4], info[5] = int32(os.Getpid()), int32(os.Getuid())
	return info
}

// owned makes a pipe that signals its owner when something arrives.
func owned(w *w, own func(fd int) error) error {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return setup(err)
	}
	if _, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETSIG, int(unix.SIGUSR2)); err != nil {
		return setup(err)
	}
	before := w.arrived()
	if err := own(p[0]); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETFL, unix.O_ASYNC|unix.O_NONBLOCK); err != nil {
		return setup(err)
	}
	if _, err := unix.Write(p[1], []byte("x")); err != nil {
		return setup(err)
	}
	return w.awaitSignal(before)
}

// arrived counts the signals that the process outside has written down.
func (w *w) arrived() int {
	data, _ := os.ReadFile(w.Signals)
	return strings.Count(string(data), "\n")
}

func (w *w) awaitSignal(before int) error {
	for range 30 {
		if w.arrived() > before {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errSilent
}

// Limits, priorities and scheduling of a process outside.
func init() {
	const limit = "Scheduling of other processes"
	add(signals,
		attempt{Name: "prlimit", do: func(w *w) error {
			var old unix.Rlimit
			if err := unix.Prlimit(w.PID, unix.RLIMIT_CPU, nil, &old); err != nil {
				return setup(err)
			}
			return unix.Prlimit(w.PID, unix.RLIMIT_CPU, &unix.Rlimit{Cur: 3600, Max: old.Max}, nil)
		}},
		attempt{Name: "setpriority-user", do: func(w *w) error { return renice(unix.PRIO_USER, w.Other) }},
		attempt{Name: "setpriority-group", do: func(w *w) error { return renice(unix.PRIO_PGRP, w.PID) }},
		attempt{Name: "ioprio-user", do: func(w *w) error { return ioprio(3, w.Other) }},
		attempt{Name: "ioprio-group", do: func(w *w) error { return ioprio(2, w.PID) }},
		attempt{Name: "setpriority", Limit: limit, do: func(w *w) error { return renice(unix.PRIO_PROCESS, w.PID) }},
		attempt{Name: "ioprio", Limit: limit, do: func(w *w) error { return ioprio(1, w.PID) }},
		attempt{Name: "sched-setaffinity", Limit: limit, do: func(w *w) error {
			var set unix.CPUSet
			for i := range runtime.NumCPU() {
				set.Set(i)
			}
			return unix.SchedSetaffinity(w.PID, &set)
		}},
		attempt{Name: "sched-setscheduler", Limit: limit, do: func(w *w) error {
			param := int32(0)
			return did(unix.SYS_SCHED_SETSCHEDULER, uintptr(w.PID), unix.SCHED_NORMAL, ptr(&param))
		}},
		attempt{Name: "sched-setattr", Limit: limit, do: func(w *w) error {
			attr := unix.SchedAttr{Policy: unix.SCHED_NORMAL, Nice: 19}
			attr.Size = uint32(unsafe.Sizeof(attr))
			return unix.SchedSetAttr(w.PID, &attr, 0)
		}},
		attempt{Name: "oom-score", Limit: limit, do: writeOf("oom_score_adj", "500")},
		attempt{Name: "coredump-filter", Limit: limit, do: writeOf("coredump_filter", "0x33")},
		attempt{Name: "autogroup", Limit: limit, Rare: "autogroups", do: writeOf("autogroup", "0")},
	)
}

// renice sets the nice value 19 of others.
func renice(kind, who int) error { return unix.Setpriority(kind, who, 19) }

func ioprio(kind, who int) error {
	const idle = 3 << 13
	return did(unix.SYS_IOPRIO_SET, uintptr(kind), uintptr(who), idle)
}
