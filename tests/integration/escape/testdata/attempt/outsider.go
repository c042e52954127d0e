package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/escape/world"
)

// outside is the process outside. It prints what attempts must know of it and
// ends with its standard input.
func outside(w *w) error {
	o := world.Outsider{PID: os.Getpid(), Signals: w.at("outside/signals")}
	secret := []byte(w.Secret)
	o.Address = uint64(uintptr(unsafe.Pointer(&secret[0])))
	for _, step := range []func(*w2) error{openKey, listenTCP, listenUDP, listenRoutes, listenUnix, terminal, shared, queue, key, subvolumes} {
		if err := step(&w2{w, &o}); err != nil {
			return err
		}
	}
	notes, err := os.Create(o.Signals)
	if err != nil {
		return err
	}
	arrived := make(chan os.Signal, 16)
	signal.Notify(arrived, unix.SIGUSR2)
	go func() {
		for range arrived {
			fmt.Fprintln(notes, "SIGUSR2")
		}
	}()
	// Those who ask for news of what is opened get some.
	go func() {
		for range time.Tick(20 * time.Millisecond) {
			_, _ = os.ReadFile(w.key())
		}
	}()
	if err := json.NewEncoder(os.Stdout).Encode(o); err != nil {
		return err
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	if string(secret) != w.Secret {
		return fmt.Errorf("changed")
	}
	return nil
}

type w2 struct {
	*w
	o *world.Outsider
}

func openKey(w *w2) (err error) {
	w.o.File, err = open(w.key(), unix.O_RDONLY)
	return err
}

// serve makes a listening socket that takes every connection.
func serve(fd int, err error, addr unix.Sockaddr) (int, error) {
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, addr); err != nil {
		return -1, err
	}
	if err := unix.Listen(fd, 64); err != nil {
		return -1, err
	}
	go func() {
		for {
			c, _, err := unix.Accept(fd)
			if err != nil {
				return
			}
			go func() { _, _ = unix.Read(c, make([]byte, 64)); unix.Close(c) }()
		}
	}()
	return fd, nil
}

func listenTCP(w *w2) error {
	const mptcp = 262 // takes plain TCP, too
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, mptcp)
	if err != nil {
		fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	}
	if fd, err = serve(fd, err, &unix.SockaddrInet6{}); err != nil {
		return err
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	w.o.TCP = at.(*unix.SockaddrInet6).Port
	return nil
}

func listenUDP(w *w2) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet6{}); err != nil {
		return err
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	w.o.UDP = at.(*unix.SockaddrInet6).Port
	return nil
}

// listenRoutes makes a socket of the one protocol that network "deny" leaves.
func listenRoutes(w *w2) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: uint32(w.o.PID)})
}

func listenUnix(w *w2) error {
	stream := func(name string) (int, error) {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		return serve(fd, err, &unix.SockaddrUnix{Name: name})
	}
	post := func(name string) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrUnix{Name: name})
	}
	w.o.Name = fmt.Sprint("@escape-", w.o.PID)
	w.o.Post, w.o.Path = w.o.Name+"-post", w.at("outside/socket")
	if _, err := stream(w.o.Name); err != nil {
		return err
	}
	if _, err := stream(w.at("hidden/socket")); err != nil {
		return err
	}
	for _, name := range []string{w.o.Post, w.o.Path + "-post", w.at("hidden/post")} {
		if err := post(name); err != nil {
			return err
		}
	}
	// The one that hands out a descriptor.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: w.o.Path}); err != nil {
		return err
	}
	if err := unix.Listen(fd, 16); err != nil {
		return err
	}
	go func() {
		for {
			c, _, err := unix.Accept(fd)
			if err != nil {
				return
			}
			_ = unix.Sendmsg(c, []byte("x"), unix.UnixRights(w.o.File), nil, 0)
			unix.Close(c)
		}
	}()
	return nil
}

func terminal(w *w2) error {
	m, err := open("/dev/ptmx", unix.O_RDWR)
	if err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(m, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	if err := unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	w.o.PTY = fmt.Sprint("/dev/pts/", n)
	// Somebody has it open, or it would be hung up.
	_, err = open(w.o.PTY, unix.O_RDWR)
	return err
}

func shared(w *w2) error {
	const create, size = 0o1600, 4096
	id, err := call(unix.SYS_SHMGET, 0, size, create)
	if err != nil {
		return err
	}
	at, err := unix.SysvShmAttach(int(id), 0, 0)
	if err != nil {
		return err
	}
	copy(at, w.Secret)
	w.o.Segment = int(id)
	if id, err = call(unix.SYS_MSGGET, 0, create); err != nil {
		return err
	}
	w.o.Queue = int(id)
	if id, err = call(unix.SYS_SEMGET, 0, 1, create); err != nil {
		return err
	}
	w.o.Set = int(id)
	return nil
}

func queue(w *w2) error {
	w.o.MQ = fmt.Sprint("/escape-", w.o.PID)
	name := cstr(w.o.MQ[1:]) // the system call takes no slash
	if _, err := call(unix.SYS_MQ_OPEN, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600, 0); err != nil {
		return err
	}
	return os.WriteFile("/dev/shm"+w.o.MQ, []byte(w.Secret), 0o600)
}

func key(w *w2) error {
	w.o.Key = fmt.Sprint("escape-", w.o.PID)
	id, err := unix.AddKey("user", w.o.Key, []byte(w.Secret), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		return err
	}
	const all = 0x3f3f0000 // what its possessor and its user may do
	return unix.KeyctlSetperm(id, all)
}

// subvolumes makes what lies on the btrfs.
func subvolumes(w *w2) error {
	if w.Btrfs == "" {
		return nil
	}
	for _, name := range []string{"hidden", "hidden-2", "hidden-3", "work/volume", "outside/volume", "outside/volume-2", "outside/volume-3", "outside/volume-4"} {
		i := strings.LastIndex("/"+name, "/")
		dir, err := open(w.Btrfs+"/"+name[:max(i-1, 0)], unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		if err := volume(dir, subvolumeCreate, 0, name[i:]); err != nil {
			return fmt.Errorf("subvolume %s: %w", name, err)
		}
	}
	fd, err := open(w.Btrfs+"/hidden-3", unix.O_RDONLY)
	if err != nil {
		return err
	}
	tree := [512]uint64{1: 256} // the tree of its root
	if err := did(unix.SYS_IOCTL, uintptr(fd), inodeLookup, ptr(&tree)); err != nil {
		return err
	}
	w.o.Volume = tree[0]
	if err := os.Mkdir(w.Btrfs+"/plain", 0o700); err != nil {
		return err
	}
	for _, name := range []string{"hidden/key", "plain/key"} {
		if err := os.WriteFile(w.Btrfs+"/"+name, []byte(w.Secret), 0o600); err != nil {
			return err
		}
	}
	return nil
}
