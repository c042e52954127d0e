package main

import (
	"golang.org/x/sys/unix"
)

// Memory, messages and semaphores that are shared with a process outside.
func init() {
	add(ipc,
		attempt{Name: "shared-memory", do: func(w *w) error {
			text, err := unix.SysvShmAttach(w.Segment, 0, 0)
			if err != nil {
				return err
			}
			return w.isSecret(string(text[:len(w.Secret)]))
		}},
		attempt{Name: "message-queue", do: func(w *w) error {
			msg := [4]uint64{1}
			return did(unix.SYS_MSGSND, uintptr(w.Queue), ptr(&msg[0]), 8, 0)
		}},
		attempt{Name: "semaphore", do: func(w *w) error {
			op := [3]int16{0, 1, 0}
			return did(unix.SYS_SEMOP, uintptr(w.Set), ptr(&op[0]), 1)
		}},
		attempt{Name: "posix-queue", do: func(w *w) error {
			fd, err := call(unix.SYS_MQ_OPEN, cstr(w.MQ[1:]), unix.O_WRONLY, 0, 0)
			if err != nil {
				return err
			}
			return did(unix.SYS_MQ_TIMEDSEND, fd, cstr("x"), 1, 0, 0)
		}},
		attempt{Name: "posix-shared-memory", do: func(w *w) error { return w.read("/dev/shm" + w.MQ) }},
	)
}
