package launch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// An ABI is a Landlock that the kernel does not have: the test answers
// landlock_create_ruleset(2) in its place (seccomp_unotify(2)). Rights, fields
// and flags that the ABI does not know are refused as such a kernel refuses
// them. Everything else goes on to the real kernel, so that what is enforced
// is enforced; rights that only the faked ABI knows are taken out on the way.
// It proves masking and reporting, no more.
//
// When the tests run as root, no_new_privs is left alone. A process under one
// ABI cannot start another under a second.
type ABI struct {
	// Version is the ABI, 1 or more. The rights after those of ABI 9 are not
	// known here, so a newer one refuses them too.
	Version int
	// Errata is the answer to the question for fixed errata.
	Errata int
	// Errno, if not 0, is the answer to everything: ENOSYS, EOPNOTSUPP, EPERM.
	Errno syscall.Errno
	// Handled, if not nil, gets the file system rights that a ruleset was made
	// with, also those that the real kernel does not know.
	Handled *uint64
}

// The rights of each ABI (linux/landlock.h).
var (
	fsRights = []uint64{1<<13 - 1, 1<<14 - 1, 1<<15 - 1, 1<<15 - 1, 1<<16 - 1, 1<<16 - 1, 1<<16 - 1, 1<<16 - 1, 1<<17 - 1}
	fields   = []struct {
		abi    int
		rights uint64
	}{{1, 0}, {4, 3}, {6, 3}}
)

// restrictFlags returns the flags of landlock_restrict_self that an ABI knows.
func restrictFlags(abi int) uint64 {
	switch {
	case abi < 7:
		return 0
	case abi < 8:
		return 7
	default:
		return 15
	}
}

type fake struct {
	abi ABI
	fd  int
	end func() error
}

// stop ends the answering. It may be called more than once.
func (f *fake) stop() error {
	if f == nil || f.end == nil {
		return nil
	}
	return f.end()
}

// under calls start on a thread whose children are under the fake.
func (a ABI) under(start func() error) (*fake, error) {
	real := 0
	if n, err := ll.LandlockGetABIVersion(); err == nil {
		real = n
	}
	f := &fake{abi: a}
	result := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with its filter.
		runtime.LockOSThread()
		if os.Geteuid() != 0 {
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				result <- err
				return
			}
		}
		fd, err := installFilter(notifyFilter(), unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
		if err != nil {
			result <- fmt.Errorf("seccomp listener: %w", err)
			return
		}
		f.fd = fd
		f.serve(real)
		result <- start()
	}()
	if err := <-result; err != nil {
		_ = f.stop()
		return nil, err
	}
	return f, nil
}

// serve answers until stop is called or the last process under the filter has
// ended.
func (f *fake) serve(real int) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	done := make(chan error, 1)
	if err != nil {
		done <- err
	} else {
		go func() { done <- f.loop(wake, real) }()
	}
	f.end = sync.OnceValue(func() error {
		if err == nil {
			_, _ = unix.Write(wake, binary.NativeEndian.AppendUint64(nil, 1))
		}
		err := <-done
		unix.Close(wake)
		unix.Close(f.fd)
		return err
	})
}

// The structures and requests of linux/seccomp.h.
type notification struct {
	ID    uint64
	PID   uint32
	Flags uint32
	Nr    int32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

type reply struct {
	ID    uint64
	Val   int64
	Error int32
	Flags uint32
}

const (
	notifRecv  = 0xc0502100
	notifSend  = 0xc0182101
	notifValid = 0x40082102
)

func (f *fake) loop(wake, real int) error {
	for {
		fds := []unix.PollFd{{Fd: int32(f.fd), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil {
			if errors.Is(err, unix.EINTR) {
				continue
			}
			return fmt.Errorf("poll the seccomp listener: %w", err)
		}
		if fds[0].Revents&unix.POLLIN != 0 {
			var n notification
			if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(f.fd), notifRecv, uintptr(unsafe.Pointer(&n))); e != 0 {
				if e == unix.ENOENT || e == unix.EINTR {
					continue // the caller was killed
				}
				return fmt.Errorf("SECCOMP_IOCTL_NOTIF_RECV: %w", e)
			}
			r := f.answer(&n, real)
			r.ID = n.ID
			if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(f.fd), notifSend, uintptr(unsafe.Pointer(&r))); e != 0 && e != unix.ENOENT {
				return fmt.Errorf("SECCOMP_IOCTL_NOTIF_SEND: %w", e)
			}
			continue
		}
		if fds[0].Revents != 0 || fds[1].Revents != 0 {
			return nil
		}
	}
}

func fails(e syscall.Errno) reply { return reply{Error: -int32(e)} }

var goOn = reply{Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}

func (f *fake) answer(n *notification, real int) reply {
	if f.abi.Errno != 0 {
		return fails(f.abi.Errno)
	}
	switch n.Nr {
	case unix.SYS_LANDLOCK_CREATE_RULESET:
		return f.createRuleset(n, real)
	case unix.SYS_LANDLOCK_ADD_RULE:
		return f.addRule(n, real)
	default: // landlock_restrict_self
		if n.Args[1]&^restrictFlags(f.abi.Version) != 0 {
			return fails(unix.EINVAL)
		}
		return goOn
	}
}

const (
	askVersion = 1
	askErrata  = 2
)

func (f *fake) createRuleset(n *notification, real int) reply {
	attr, size, flags := n.Args[0], n.Args[1], n.Args[2]
	if flags != 0 {
		switch {
		case attr != 0 || size != 0:
			return fails(unix.EINVAL)
		case flags == askVersion:
			return reply{Val: int64(f.abi.Version)}
		case flags == askErrata && f.abi.Version >= 6:
			return reply{Val: int64(f.abi.Errata)}
		default:
			return fails(unix.EINVAL)
		}
	}
	data := make([]byte, min(size, 64))
	mem, err := f.memory(n)
	if err != nil {
		return fails(unix.EFAULT)
	}
	defer mem.Close()
	if _, err := mem.ReadAt(data, int64(attr)); err != nil {
		return fails(unix.EFAULT)
	}
	for i := 0; i+8 <= len(data); i += 8 {
		field := binary.NativeEndian.Uint64(data[i:])
		known := uint64(0)
		switch {
		case i == 0:
			known = fsRights[min(f.abi.Version, len(fsRights))-1]
		case i/8 < len(fields) && f.abi.Version >= fields[i/8].abi:
			known = fields[i/8].rights
		case field != 0:
			return fails(unix.E2BIG)
		}
		if field&^known != 0 {
			return fails(unix.EINVAL)
		}
	}
	if f.abi.Handled != nil && len(data) >= 8 {
		*f.abi.Handled = binary.NativeEndian.Uint64(data)
	}
	return f.cut(mem, int64(attr), real)
}

func (f *fake) addRule(n *notification, real int) reply {
	const pathBeneath = 1
	if n.Args[1] != pathBeneath {
		if f.abi.Version < 4 {
			return fails(unix.EINVAL)
		}
		return goOn
	}
	mem, err := f.memory(n)
	if err != nil {
		return fails(unix.EFAULT)
	}
	defer mem.Close()
	return f.cut(mem, int64(n.Args[2]), real)
}

// cut takes the file-system rights that the real kernel does not know out of
// the 64 bits at addr.
func (f *fake) cut(mem *os.File, addr int64, real int) reply {
	if real < 1 || f.abi.Version <= real {
		return goOn
	}
	var word [8]byte
	if _, err := mem.ReadAt(word[:], addr); err != nil {
		return fails(unix.EFAULT)
	}
	rights := binary.NativeEndian.Uint64(word[:]) & fsRights[min(real, len(fsRights))-1]
	binary.NativeEndian.PutUint64(word[:], rights)
	if _, err := mem.WriteAt(word[:], addr); err != nil {
		return fails(unix.EFAULT)
	}
	return goOn
}

// memory opens the memory of the calling process and makes sure that it is
// still that one.
func (f *fake) memory(n *notification) (*os.File, error) {
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", n.PID), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(f.fd), notifValid, uintptr(unsafe.Pointer(&n.ID))); e != 0 {
		mem.Close()
		return nil, e
	}
	return mem, nil
}
