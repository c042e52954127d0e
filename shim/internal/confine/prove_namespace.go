package confine

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// Prove tries what the namespace says, after the domain was entered: what is mounted
// read-only must take no change, the files of the kernel no writer, terminals and shared
// memory of others must be out of reach. k is what is in force.
func (n *Namespace) Prove(k rules.Kernel) error {
	for _, path := range n.ReadOnly {
		if err := mustNotChange(path); err != nil {
			return fmt.Errorf("%q: %w", path, err)
		}
	}
	if k.KernelFiles.By != "" {
		for _, path := range []string{"/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper"} {
			var st unix.Stat_t
			fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
			if err == nil && unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
				unix.Close(fd)
				continue // a container's mask, such as /dev/null
			}
			if err := denied(fd, err, "can be written", unix.EROFS, unix.EACCES, unix.EPERM, unix.ENOENT, unix.ENOTDIR, unix.ENXIO); err != nil {
				return fmt.Errorf("%q: %w", path, err)
			}
		}
	}
	if n.was.terminal != "" && k.Terminals.By != "" {
		fd, err := unix.Open(n.was.terminal, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
		if err := denied(fd, err, "the terminal can be opened", unix.ENOENT, unix.ENXIO, unix.EIO, unix.EACCES); err != nil {
			return fmt.Errorf("%q: %w", n.was.terminal, err)
		}
	}
	if k.IPC.By == rules.ByIPCNamespace {
		return n.proveIPC()
	}
	return nil
}

// mustNotChange gives a file the mode that it has.
func mustNotChange(path string) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	var err error
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		err = unix.Lchown(path, int(st.Uid), int(st.Gid))
	} else {
		err = unix.Chmod(path, st.Mode&0o7777)
	}
	if err == nil {
		return errors.New("can be changed")
	}
	if !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("expected to be read-only: %w", err)
	}
	return nil
}

func (n *Namespace) proveIPC() error {
	if now, err := os.Readlink(ipcLink); err == nil && now == n.was.ipc {
		return errors.New("the IPC namespace is that of the launcher")
	}
	// ENOSYS of a kernel without System V IPC.
	if segments, err := sharedMemory(); err == nil && segments != 0 {
		return fmt.Errorf("%d segments of shared memory are in the IPC namespace", segments)
	}
	return nil
}
