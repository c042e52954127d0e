package main

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Paths that many attempts use.
func (w *w) key() string           { return w.Dir + "/hidden/key" }
func (w *w) at(name string) string { return w.Dir + "/" + name }
func (w *w) spare(n string) string { return w.Dir + "/hidden/spare-" + n }

// secret reads from a descriptor and succeeds if it is the secret.
func (w *w) secret(fd int, err error) error {
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	buf := make([]byte, 4096)
	n, err := unix.Pread(fd, buf, 0)
	if err != nil {
		return err
	}
	return w.isSecret(string(buf[:n]))
}

func (w *w) isSecret(text string) error {
	if !strings.Contains(text, w.Secret) {
		return fmt.Errorf("read %q", text[:min(len(text), 40)])
	}
	return nil
}

func (w *w) read(path string) error { return w.secret(open(path, unix.O_RDONLY|unix.O_NONBLOCK)) }

func open(path string, flags int) (int, error) {
	return unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOCTTY, 0o600)
}

// opened closes a descriptor that is only good for having been opened.
func opened(fd int, err error) error {
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// list succeeds if a directory can be listed and holds a name.
func list(fd int, err error, name string) error {
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	buf := make([]byte, 1<<16)
	n, err := unix.Getdents(fd, buf)
	if err != nil {
		return err
	}
	if !strings.Contains(string(buf[:n]), name) {
		return fmt.Errorf("no %s in the list", name)
	}
	return nil
}

// put appends to a file through a new descriptor.
func put(fd int, err error) error {
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("+"))
	return err
}

func fdPath(fd int) string { return fmt.Sprint("/proc/self/fd/", fd) }

// path opens a descriptor that is only a place.
func place(path string) (int, error) { return open(path, unix.O_PATH|unix.O_NOFOLLOW) }

// call is a raw system call.
func call(nr uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return r, errno
	}
	return r, nil
}

// did is call for its error alone.
func did(nr uintptr, args ...uintptr) error {
	_, err := call(nr, args...)
	return err
}

// cstr is a string for a raw system call. Nothing collects it before the end of
// the process.
func cstr(s string) uintptr {
	p, err := unix.BytePtrFromString(s)
	if err != nil {
		panic(err)
	}
	kept = append(kept, unsafe.Pointer(p))
	return uintptr(unsafe.Pointer(p))
}

// ptr is the address of a value that stays.
func ptr[T any](v *T) uintptr {
	kept = append(kept, unsafe.Pointer(v))
	return uintptr(unsafe.Pointer(v))
}

var kept []unsafe.Pointer

// missing is the answer of a machine that lacks what an attempt needs.
func missing(what string) error { return fmt.Errorf("this machine lacks %s", what) }

// rewrite writes back what is in a file, which changes nothing.
func rewrite(path string) error {
	fd, err := open(path, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	data, err := os.ReadFile(path)
	if err != nil {
		return setup(err)
	}
	_, err = unix.Write(fd, data)
	return err
}
