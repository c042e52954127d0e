package main

import (
	"golang.org/x/sys/unix"
)

// Terminals: the one that the launcher gave, and those of others.
func init() {
	const needs = "a controlling terminal"
	own := func(f func(fd int) error) func(*w) error {
		return func(w *w) error {
			fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
			if err != nil || !w.Terminal {
				return missing(needs)
			}
			return f(fd)
		}
	}
	other := func(flags int, f func(fd int) error) func(*w) error {
		return func(w *w) error {
			fd, err := open(w.PTY, flags|unix.O_NONBLOCK)
			if err != nil {
				return err
			}
			return f(fd)
		}
	}
	letter := byte('x')
	add(tty,
		attempt{Name: "terminal-input", Needs: needs, do: own(func(fd int) error {
			return did(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, ptr(&letter))
		})},
		attempt{Name: "terminal-input-inherited", Needs: needs, do: func(w *w) error {
			if !w.Terminal {
				return missing(needs)
			}
			return did(unix.SYS_IOCTL, uintptr(w.Descriptors["terminal"]), unix.TIOCSTI, ptr(&letter))
		}},
		attempt{Name: "terminal-input-by-master", Needs: needs, do: func(w *w) error {
			if !w.Terminal {
				return missing(needs)
			}
			_, err := unix.Write(w.Descriptors["master"], []byte("x"))
			return err
		}},
		attempt{Name: "terminal-input-wide-request", Needs: needs, do: own(func(fd int) error {
			// The kernel looks at 32 bits of the request.
			return did(unix.SYS_IOCTL, uintptr(fd), 1<<40|unix.TIOCSTI, ptr(&letter))
		})},
		attempt{Name: "terminal-input-32-bit", Needs: "the entry for 32-bit programs", do: own(func(fd int) error {
			return input32(fd)
		})},
		attempt{Name: "terminal-settings", Needs: needs, Limit: "The inherited terminal", do: own(func(fd int) error {
			t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
			if err != nil {
				return err
			}
			return unix.IoctlSetTermios(fd, unix.TCSETS, t)
		})},
		attempt{Name: "terminal-output", Needs: needs, Limit: "The inherited terminal", do: own(func(fd int) error {
			_, err := unix.Write(fd, []byte("password: "))
			return err
		})},
		attempt{Name: "other-terminal-read", do: other(unix.O_RDONLY, func(fd int) error {
			buf := make([]byte, 64)
			n, err := unix.Read(fd, buf)
			if err == unix.EAGAIN || n > 0 {
				return nil
			}
			return err
		})},
		attempt{Name: "other-terminal-write", do: other(unix.O_WRONLY, func(fd int) error {
			_, err := unix.Write(fd, []byte("password: "))
			return err
		})},
		attempt{Name: "other-terminal-settings", do: other(unix.O_RDWR, func(fd int) error {
			t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
			if err != nil {
				return err
			}
			return unix.IoctlSetTermios(fd, unix.TCSETS, t)
		})},
		attempt{Name: "other-terminal-input", Root: true, do: other(unix.O_RDWR, func(fd int) error {
			return did(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, ptr(&letter))
		})},
		attempt{Name: "other-terminal-of-a-session", do: func(w *w) error {
			if _, err := unix.Setsid(); err != nil {
				return setup(err)
			}
			fd, err := open(w.PTY, unix.O_RDWR)
			if err != nil {
				return err
			}
			return unix.IoctlSetInt(fd, unix.TIOCSCTTY, 0)
		}},
		attempt{Name: "console", Root: true, Rare: "a console", do: func(*w) error {
			return absent(put(open("/dev/tty1", unix.O_WRONLY)), "a console")
		}},
		attempt{Name: "console-screen", Root: true, Rare: "a console", do: func(*w) error {
			return absent(opened(open("/dev/vcs1", unix.O_RDONLY)), "a console")
		}},
		attempt{Name: "input-device", Root: true, Rare: "/dev/uinput", do: func(*w) error {
			return absent(opened(open("/dev/uinput", unix.O_WRONLY)), "/dev/uinput")
		}},
		attempt{Name: "console-input", Root: true, Rare: "a console", do: func(*w) error {
			fd, err := open("/dev/tty1", unix.O_RDWR)
			if err != nil {
				return absent(err, "a console")
			}
			shift := byte(6) // TIOCL_GETSHIFTSTATE
			const tioclinux = 0x541c
			return did(unix.SYS_IOCTL, uintptr(fd), tioclinux, ptr(&shift))
		}},
	)
}
