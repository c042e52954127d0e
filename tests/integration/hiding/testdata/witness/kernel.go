package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Attempts to go around the file system's names altogether: devices, mounts,
// namespaces, other processes.
func init() {
	for name, op := range map[string]func(path, to string) (string, error){
		"block-node": func(p, to string) (string, error) { // to is major:minor
			dev, err := device(to)
			if err != nil {
				return "", err
			}
			return "", unix.Mknod(p, unix.S_IFBLK|0o600, dev)
		},
		"char-node": func(p, to string) (string, error) {
			dev, err := device(to)
			if err != nil {
				return "", err
			}
			return "", unix.Mknod(p, unix.S_IFCHR|0o600, dev)
		},
		// search reads a whole device and looks for to in it.
		"search": func(p, to string) (string, error) {
			f, err := os.Open(p)
			if err != nil {
				return "", err
			}
			defer f.Close()
			data := make([]byte, 64<<20)
			n, _ := f.Read(data)
			if !strings.Contains(string(data[:n]), to) {
				return "", unix.ENODATA
			}
			return to, nil
		},
		"bind": func(p, to string) (string, error) { // bind to's place at p
			return "", unix.Mount(to, p, "", unix.MS_BIND, "")
		},
		"mount": func(p, to string) (string, error) { // a file system of type to at p
			return "", unix.Mount("none", p, to, 0, "")
		},
		"umount":    func(p, _ string) (string, error) { return "", unix.Unmount(p, unix.MNT_DETACH) },
		"remount":   func(p, _ string) (string, error) { return "", unix.Mount("", p, "", unix.MS_REMOUNT, "") },
		"propagate": func(p, _ string) (string, error) { return "", unix.Mount("", p, "", unix.MS_SHARED, "") },
		"bind-in-namespace": func(p, to string) (string, error) {
			return alone(func() (string, error) {
				if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
					return "", fmt.Errorf("unshare: %w", err)
				}
				return "", unix.Mount(to, p, "", unix.MS_BIND, "")
			})
		},
		"bind-in-user-namespace": func(p, to string) (string, error) {
			cmd := exec.Command("/proc/self/exe", fmt.Sprintf(`[{"Op":"bind","Path":%q,"To":%q}]`, p, to))
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
				UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
			}
			out, err := cmd.Output()
			if err != nil {
				return "", err
			}
			var inner []result
			if err := json.Unmarshal(out, &inner); err != nil {
				return "", err
			}
			if inner[0].Errno != "ok" {
				return "", errors.New(inner[0].Errno)
			}
			return inner[0].Data, nil
		},
		"open-tree": func(p, to string) (string, error) { // clone to, read p below it
			fd, err := unix.OpenTree(unix.AT_FDCWD, to, unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE|unix.OPEN_TREE_CLOEXEC)
			if err != nil {
				return "", fmt.Errorf("open_tree: %w", err)
			}
			defer unix.Close(fd)
			return read(fd, p)
		},
		"fsmount": func(p, to string) (string, error) { // to is "type key=value …"; p is read below it
			return fsmount(p, unix.O_RDONLY, to)
		},
		"fsmount-write": func(p, to string) (string, error) { return fsmount(p, unix.O_WRONLY, to) },
		"move-mount": func(p, to string) (string, error) { // clone to and attach it at p
			fd, err := unix.OpenTree(unix.AT_FDCWD, to, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
			if err != nil {
				return "", fmt.Errorf("open_tree: %w", err)
			}
			defer unix.Close(fd)
			return "", unix.MoveMount(fd, "", unix.AT_FDCWD, p, unix.MOVE_MOUNT_F_EMPTY_PATH)
		},
		"pivot-root": func(p, _ string) (string, error) { return "", unix.PivotRoot(p, p) },
		"chroot": func(p, to string) (string, error) { // chroot to to, then read p
			return alone(func() (string, error) {
				if err := unix.Unshare(unix.CLONE_FS); err != nil {
					return "", err
				}
				if err := unix.Chroot(to); err != nil {
					return "", fmt.Errorf("chroot: %w", err)
				}
				return read(unix.AT_FDCWD, p)
			})
		},
		"setns": func(p, to string) (string, error) { // enter the namespace at to, then read p
			return alone(func() (string, error) {
				var fd int
				if _, err := fmt.Sscanf(to, "fd:%d", &fd); err != nil {
					if fd, err = unix.Open(to, unix.O_RDONLY, 0); err != nil {
						return "", fmt.Errorf("open the namespace: %w", err)
					}
					defer unix.Close(fd)
				}
				if err := unix.Unshare(unix.CLONE_FS); err != nil {
					return "", err
				}
				if err := unix.Setns(fd, 0); err != nil {
					return "", fmt.Errorf("setns: %w", err)
				}
				return read(unix.AT_FDCWD, p)
			})
		},
		"ptrace": func(p, _ string) (string, error) {
			return alone(func() (string, error) {
				pid, err := strconv.Atoi(p)
				if err != nil {
					return "", err
				}
				if err := unix.PtraceSeize(pid); err != nil {
					return "", err
				}
				return "", nil // the tracer's thread ends, and detaches with it
			})
		},
		"process-memory": func(p, to string) (string, error) { // to is an address
			pid, err := strconv.Atoi(p)
			if err != nil {
				return "", err
			}
			addr, err := strconv.ParseUint(to, 0, 64)
			if err != nil {
				return "", err
			}
			buf := make([]byte, 16)
			n, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &buf[0], Len: 16}}, []unix.RemoteIovec{{Base: uintptr(addr), Len: 16}}, 0)
			return string(buf[:max(n, 0)]), err
		},
		"pidfd-descriptor": func(p, to string) (string, error) { // descriptor to of process p
			pid, err := strconv.Atoi(p)
			if err != nil {
				return "", err
			}
			fd, err := strconv.Atoi(to)
			if err != nil {
				return "", err
			}
			pidfd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return "", fmt.Errorf("pidfd_open: %w", err)
			}
			defer unix.Close(pidfd)
			got, err := unix.PidfdGetfd(pidfd, fd, 0)
			if err != nil {
				return "", err
			}
			defer unix.Close(got)
			buf := make([]byte, 256)
			n, err := unix.Pread(got, buf, 0)
			return string(buf[:max(n, 0)]), err
		},
		"swapon": func(p, _ string) (string, error) { return "", path1(unix.SYS_SWAPON, p) },
		"bpf": func(string, string) (string, error) { // BPF_MAP_CREATE of an array
			attr := [4]uint32{2, 4, 8, 1}
			fd, _, e := unix.Syscall(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
			if e != 0 {
				return "", e
			}
			return "", unix.Close(int(fd))
		},
		"perf": func(string, string) (string, error) { // a system-wide counter of CPU 0
			attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK}
			attr.Size = uint32(unsafe.Sizeof(attr))
			return "", closed(unix.PerfEventOpen(&attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC))
		},
		"capabilities": func(string, string) (string, error) {
			data, err := os.ReadFile("/proc/self/status")
			var out []string
			for line := range strings.Lines(string(data)) {
				if strings.HasPrefix(line, "Cap") || strings.HasPrefix(line, "NoNewPrivs") {
					out = append(out, strings.Join(strings.Fields(line), " "))
				}
			}
			return strings.Join(out, "; "), err
		},
		// become changes the user id, as a service with SETUID does.
		"become": func(p, _ string) (string, error) {
			uid, err := strconv.Atoi(p)
			if err != nil {
				return "", err
			}
			return "", unix.Setresuid(uid, uid, uid)
		},
		"connect": func(p, _ string) (string, error) {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				return "", err
			}
			defer unix.Close(fd)
			return "", unix.Connect(fd, &unix.SockaddrUnix{Name: p})
		},
		"ask": func(p, _ string) (string, error) {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				return "", err
			}
			defer unix.Close(fd)
			if err := unix.Connect(fd, &unix.SockaddrUnix{Name: p}); err != nil {
				return "", err
			}
			if _, err := unix.Write(fd, []byte("read\n")); err != nil {
				return "", err
			}
			buf := make([]byte, 256)
			n, err := unix.Read(fd, buf)
			return string(buf[:max(n, 0)]), err
		},
		"listen": func(p, _ string) (string, error) {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				return "", err
			}
			defer unix.Close(fd)
			return "", unix.Bind(fd, &unix.SockaddrUnix{Name: p})
		},
		"mktemp": func(string, string) (string, error) {
			f, err := os.CreateTemp("", "witness-")
			if err != nil {
				return "", err
			}
			defer os.Remove(f.Name())
			return filepath.Dir(f.Name()), f.Close()
		},
	} {
		operations[name] = op
	}
}

func device(s string) (int, error) {
	var major, minor uint32
	if _, err := fmt.Sscanf(s, "%d:%d", &major, &minor); err != nil {
		return 0, err
	}
	return int(unix.Mkdev(major, minor)), nil
}

func path1(nr uintptr, path string) error {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	if _, _, e := unix.Syscall(nr, uintptr(unsafe.Pointer(p)), 0, 0); e != 0 {
		return e
	}
	return nil
}

// fsmount makes a detached mount and opens path below it.
func fsmount(path string, flags int, how string) (string, error) {
	f := strings.Fields(how)
	fs, err := unix.Fsopen(f[0], unix.FSOPEN_CLOEXEC)
	if err != nil {
		return "", fmt.Errorf("fsopen: %w", err)
	}
	defer unix.Close(fs)
	for _, kv := range f[1:] {
		key, value, _ := strings.Cut(kv, "=")
		if err := unix.FsconfigSetString(fs, key, value); err != nil {
			return "", fmt.Errorf("fsconfig: %w", err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return "", fmt.Errorf("fsconfig create: %w", err)
	}
	mnt, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("fsmount: %w", err)
	}
	defer unix.Close(mnt)
	fd, err := unix.Openat(mnt, path, flags|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	if flags != unix.O_RDONLY {
		return "", nil
	}
	return content(fd)
}

// alone runs f on a thread of its own, which ends with it: what f changed about
// the thread ends too.
func alone(f func() (string, error)) (string, error) {
	type end struct {
		data string
		err  error
	}
	done := make(chan end)
	go func() {
		runtime.LockOSThread()
		data, err := f()
		done <- end{data, err}
	}()
	e := <-done
	return e.data, e.err
}
