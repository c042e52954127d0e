package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// operations on files, each an attempt to reach one path.
var operations = map[string]func(path, to string) (string, error){
	"read":  func(p, _ string) (string, error) { return read(unix.AT_FDCWD, p) },
	"list":  func(p, _ string) (string, error) { return list(unix.AT_FDCWD, p) },
	"write": func(p, _ string) (string, error) { return "", closed(unix.Open(p, unix.O_WRONLY, 0)) },
	// written adds a byte, as an editor or a logger would.
	"written": func(p, _ string) (string, error) {
		f, err := os.OpenFile(p, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return "", err
		}
		defer f.Close()
		_, err = f.WriteString("+")
		return "", err
	},
	"truncate": func(p, _ string) (string, error) { return "", unix.Truncate(p, 1) },
	"create": func(p, _ string) (string, error) {
		return "", closed(unix.Open(p, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o600))
	},
	"mkdir":   func(p, _ string) (string, error) { return "", unix.Mkdir(p, 0o700) },
	"mkfifo":  func(p, _ string) (string, error) { return "", unix.Mkfifo(p, 0o600) },
	"symlink": func(p, to string) (string, error) { return "", unix.Symlink(to, p) },
	"tmpfile": func(p, _ string) (string, error) {
		return "", closed(unix.Open(p, unix.O_TMPFILE|unix.O_WRONLY, 0o600))
	},
	"unlink": func(p, _ string) (string, error) { return "", unix.Unlink(p) },
	"rmdir":  func(p, _ string) (string, error) { return "", unix.Rmdir(p) },
	"rename": func(p, to string) (string, error) { return "", unix.Rename(p, to) },
	"exchange": func(p, to string) (string, error) {
		return "", unix.Renameat2(unix.AT_FDCWD, p, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	},
	"link": func(p, to string) (string, error) { return "", unix.Link(p, to) },
	// A link through the descriptor, which open(2) recommends for O_TMPFILE.
	"link-descriptor": func(p, to string) (string, error) {
		fd, err := unix.Open(p, unix.O_PATH, 0)
		if err != nil {
			return "", err
		}
		defer unix.Close(fd)
		return "", unix.Linkat(unix.AT_FDCWD, fmt.Sprint("/proc/self/fd/", fd), unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW)
	},
	"execute": func(p, _ string) (string, error) { return execute(p, p) },
	// to holds the loader, which reads the program as a file.
	"execute-by-loader": func(p, to string) (string, error) { return execute(to, to, p) },
	"stat": func(p, _ string) (string, error) {
		var st unix.Stat_t
		return "", unix.Stat(p, &st)
	},
	"access": func(p, _ string) (string, error) { return "", unix.Access(p, unix.R_OK) },
	"readlink": func(p, _ string) (string, error) {
		return os.Readlink(p)
	},
	"getxattr": func(p, _ string) (string, error) {
		buf := make([]byte, 256)
		n, err := unix.Getxattr(p, "user.note", buf)
		return string(buf[:max(n, 0)]), err
	},
	"setxattr": func(p, to string) (string, error) { return "", unix.Setxattr(p, "user.note", []byte(to), 0) },
	"chmod":    func(p, _ string) (string, error) { return "", unix.Chmod(p, 0o700) },
	"utimes":   func(p, _ string) (string, error) { return "", os.Chtimes(p, time.Unix(1, 0), time.Unix(1, 0)) },
	"inotify": func(p, _ string) (string, error) {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return "", err
		}
		defer unix.Close(fd)
		_, err = unix.InotifyAddWatch(fd, p, unix.IN_CREATE)
		return "", err
	},

	// Ways around the name.
	"path-descriptor": func(p, _ string) (string, error) {
		fd, err := unix.Open(p, unix.O_PATH, 0)
		if err != nil {
			return "", err
		}
		defer unix.Close(fd)
		return read(unix.AT_FDCWD, fmt.Sprint("/proc/self/fd/", fd))
	},
	"below-descriptor": func(p, _ string) (string, error) {
		fd, err := unix.Open(filepath.Dir(p), unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return "", err
		}
		defer unix.Close(fd)
		return read(fd, filepath.Base(p))
	},
	"from-inside": func(p, _ string) (string, error) {
		return inside(filepath.Dir(p), func() (string, error) { return read(unix.AT_FDCWD, filepath.Base(p)) })
	},
	"list-from-inside": func(p, _ string) (string, error) {
		return inside(p, func() (string, error) { return list(unix.AT_FDCWD, ".") })
	},
	"by-proc-cwd": func(p, _ string) (string, error) {
		return inside(filepath.Dir(p), func() (string, error) {
			return read(unix.AT_FDCWD, fmt.Sprintf("/proc/%d/cwd/%s", os.Getpid(), filepath.Base(p)))
		})
	},
	"by-proc-root": func(p, _ string) (string, error) { return read(unix.AT_FDCWD, "/proc/self/root"+p) },
	"cwd": func(p, _ string) (string, error) {
		return inside(p, os.Getwd)
	},
	"inherited": func(p, _ string) (string, error) { // p is the number of a descriptor
		var fd int
		if _, err := fmt.Sscan(p, &fd); err != nil {
			return "", err
		}
		buf := make([]byte, 256)
		n, err := unix.Pread(fd, buf, 0)
		return string(buf[:max(n, 0)]), err
	},
	"handle": func(p, to string) (string, error) { // to is a directory on the same file system
		h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, p, 0)
		if err != nil {
			return "", fmt.Errorf("name_to_handle_at: %w", err)
		}
		at, err := unix.Open(to, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return "", fmt.Errorf("open the mount: %w", err)
		}
		defer unix.Close(at)
		fd, err := unix.OpenByHandleAt(at, h, unix.O_RDONLY)
		if err != nil {
			return "", err
		}
		defer unix.Close(fd)
		return content(fd)
	},
}

func closed(fd int, err error) error {
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// read opens and reads without waiting for a device or a FIFO.
func read(dirfd int, path string) (string, error) {
	fd, err := unix.Openat(dirfd, path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return content(fd)
}

func content(fd int) (string, error) {
	buf := make([]byte, 256)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

func list(dirfd int, path string) (string, error) {
	fd, err := unix.Openat(dirfd, path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	names, err := f.Readdirnames(-1)
	return strings.Join(names, " "), err
}

func inside(dir string, f func() (string, error)) (string, error) {
	back, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if err := unix.Chdir(dir); err != nil {
		return "", err
	}
	defer func() { _ = unix.Chdir(back) }()
	return f()
}

// execute starts a program and says how its execve ended.
func execute(path string, argv ...string) (string, error) {
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer null.Close()
	p, err := os.StartProcess(path, argv, &os.ProcAttr{Files: []*os.File{null, null, null}})
	if err != nil {
		return "", err
	}
	state, err := p.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("%s", state)
	}
	return "", err
}

// await waits for a file, with which the test says that it is ready.
func await(path string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(path), unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE); err != nil {
		return err
	}
	buf := make([]byte, 4096)
	for {
		if _, err := os.Lstat(path); err == nil {
			return nil
		}
		if _, err := unix.Read(fd, buf); err != nil && err != unix.EINTR {
			return err
		}
	}
}

func init() {
	operations["await"] = func(p, _ string) (string, error) { return "", await(p) }
}
