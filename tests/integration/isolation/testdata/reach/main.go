// Command reach tries to reach a process outside in one way, and says "ok" or
// the errno that stopped it.
//
//	reach WAY PID ADDRESS SOCKET
//	reach wait
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

var (
	pid     int
	address uintptr
	socket  string
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "wait" {
		// The process outside: what can be read of it is a word of its memory.
		secret := []byte("secret")
		fmt.Println(uintptr(unsafe.Pointer(&secret[0])))
		_, _ = io.Copy(io.Discard, os.Stdin)
		_, _ = io.Discard.Write(secret)
		return
	}
	way := ways[os.Args[1]]
	if len(os.Args) != 5 || way == nil {
		fmt.Println("usage")
		os.Exit(2)
	}
	pid, _ = strconv.Atoi(os.Args[2])
	n, _ := strconv.ParseUint(os.Args[3], 10, 64)
	address, socket = uintptr(n), os.Args[4]
	err := way()
	var errno unix.Errno
	switch {
	case err == nil:
		fmt.Println("ok")
	case errors.As(err, &errno):
		fmt.Println(unix.ErrnoName(errno))
	default:
		fmt.Println(err)
	}
}

var ways = map[string]func() error{
	"kill":   func() error { return unix.Kill(pid, unix.SIGCONT) },
	"kill-0": func() error { return unix.Kill(pid, 0) },
	"tgkill": func() error { return unix.Tgkill(pid, pid, unix.SIGCONT) },
	"pidfd": func() error {
		return withPidfd(func(fd int) error { return unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0) })
	},
	"getfd":     func() error { return withPidfd(func(fd int) error { _, err := unix.PidfdGetfd(fd, 0, 0); return err }) },
	"ptrace":    func() error { return unix.PtraceSeize(pid) },
	"vm-readv":  vmReadv,
	"prlimit":   func() error { return unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil) },
	"priority":  func() error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 19) },
	"affinity":  affinity,
	"environ":   func() error { return read("environ") },
	"maps":      func() error { return read("maps") },
	"mem":       func() error { return read("mem") },
	"fd":        func() error { return link("fd/0") },
	"cwd":       func() error { return link("cwd") },
	"root":      func() error { return link("root") },
	"cmdline":   func() error { return read("cmdline") },
	"status":    func() error { return read("status") },
	"abstract":  func() error { return connect("@" + socket) },
	"path":      func() error { return connect(socket) },
	"datagram":  datagram,
	"pair":      pair,
	"tiocsti":   func() error { return ioctl(unix.TIOCSTI, 'x') },
	"tioclinux": func() error { return ioctl(0x541c, 0) },
	"tty-size":  func() error { _, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ); return err },
	"proc-at":   func() error { return readAt(20, "proc/"+strconv.Itoa(pid)+"/cmdline") },
}

func withPidfd(f func(int) error) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	return f(fd)
}

func vmReadv() error {
	buf := make([]byte, 6)
	local := []unix.Iovec{{Base: &buf[0], Len: 6}}
	_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: address, Len: 6}}, 0)
	if err == nil && string(buf) != "secret" {
		return errors.New("read something else")
	}
	return err
}

func affinity() error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return err
	}
	return unix.SchedSetaffinity(pid, &set)
}

func proc(name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

func read(name string) error { return readAt(unix.AT_FDCWD, proc(name)) }

func readAt(dir int, path string) error {
	fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	buf := make([]byte, 6)
	if path == proc("mem") {
		_, err = unix.Pread(fd, buf, int64(address))
	} else if n, err2 := unix.Read(fd, buf); err2 == nil && n == 0 {
		err = errors.New("empty")
	} else {
		err = err2
	}
	return err
}

func link(name string) error {
	_, err := unix.Readlink(proc(name), make([]byte, 256))
	return err
}

// connect asks a service for "touch", as one asks a container engine.
func connect(name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		return err
	}
	if _, err := unix.Write(fd, []byte("run\n")); err != nil {
		return err
	}
	_, err = unix.Read(fd, make([]byte, 1)) // the end: it has run
	return err
}

// datagram sends to a named socket from one of a pair.
func datagram() error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(fds[0], []byte("run\n"), 0, &unix.SockaddrUnix{Name: socket + ".dgram"})
}

func pair() error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, err = unix.Write(fds[0], []byte("x"))
	return err
}

func ioctl(request uintptr, value byte) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, 0, request, uintptr(unsafe.Pointer(&value)))
	if errno != 0 {
		return errno
	}
	return nil
}
