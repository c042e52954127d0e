package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A fileMode is who owns a file and what they may do with it.
type fileMode struct {
	uid, gid uint32
	perm     uint32
}

// tempName is where the new file for a name is written. It is the same every
// time, so that what a crash left is found and removed.
func tempName(name string) string { return "." + name + ".shim-new" }

// writeTemp writes a complete file under [tempName] and makes it last. The
// caller renames or removes it.
func (d *directory) writeTemp(name string, data []byte, mode fileMode) (err error) {
	temp := tempName(name)
	fail := func(step string, err error) error {
		return fmt.Errorf("%s: %s: %w", show(d.join(temp)), step, err)
	}
	if err := d.remove(temp); err != nil {
		return err
	}
	flags := unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(d.fd, temp, flags, 0o600)
	if err != nil {
		return fail("create", err)
	}
	f := os.NewFile(uintptr(fd), d.join(temp))
	defer func() {
		if err = errors.Join(err, bare(f.Close())); err != nil {
			_ = d.remove(temp)
		}
	}()
	if _, err := f.Write(data); err != nil {
		return fail("write", bare(err))
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fail("stat", err)
	}
	if st.Uid != mode.uid || st.Gid != mode.gid {
		if err := unix.Fchown(fd, int(mode.uid), int(mode.gid)); err != nil {
			return fail("give it the program's owner", err)
		}
	}
	// After the change of owner, which may clear mode bits.
	if err := unix.Fchmod(fd, mode.perm); err != nil {
		return fail("set mode", err)
	}
	if err := unix.Fsync(fd); err != nil {
		return fail("sync", err)
	}
	return nil
}

// same reports whether a regular file already is what writeTemp would write.
func (d *directory) same(name string, data []byte, mode fileMode) (bool, error) {
	st, ok, err := d.lstat(name)
	if err != nil || !ok || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != int64(len(data)) {
		return false, err
	}
	if (fileMode{st.Uid, st.Gid, st.Mode & 0o7777}) != mode {
		return false, nil
	}
	had, err := d.read(name)
	return err == nil && bytes.Equal(had, data), err
}

// maxShim bounds what is read as a shim.
const maxShim = 64 << 20

// read reads a regular file that is no symbolic link.
func (d *directory) read(name string) ([]byte, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxShim))
	if err != nil {
		return nil, fmt.Errorf("%s: read: %w", show(d.join(name)), bare(err))
	}
	return data, nil
}

// open opens a regular file that is no symbolic link. It waits for nothing.
func (d *directory) open(name string) (*os.File, error) {
	fd, err := unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: open: %w", show(d.join(name)), err)
	}
	return os.NewFile(uintptr(fd), d.join(name)), nil
}
