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
	acl      []byte // see readACL
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
	if mode.acl != nil {
		if err := unix.Fsetxattr(fd, accessACL, mode.acl, 0); err != nil {
			return fail("give it the program's access control list", err)
		}
	}
	if err := unix.Fsync(fd); err != nil {
		return fail("sync", err)
	}
	return nil
}

// put gives the file that [directory.writeTemp] wrote its name, where still
// stands what was seen there. Somebody may have put another file there since,
// which is not lost: an upgrade of the program, or a new one.
func (d *directory) put(temp, name string, was entry) error {
	flags := uint(unix.RENAME_NOREPLACE)
	if was.kind != nothing {
		flags = unix.RENAME_EXCHANGE
	}
	err := unix.Renameat2(d.fd, temp, d.fd, name, flags)
	switch {
	case cannotExchange(err):
		// A moment remains in which it is not seen.
		if st, there, err := d.lstat(name); err != nil {
			return err
		} else if there != (was.kind != nothing) || there && idOf(&st) != idOf(&was.st) {
			return d.changed(name)
		}
		return d.rename(temp, name)
	case errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOENT):
		return d.changed(name)
	case err != nil:
		return fmt.Errorf("%s: rename to %s: %w", show(d.join(temp)), show(name), err)
	case was.kind == nothing:
		return d.sync()
	}
	if st, there, err := d.lstat(temp); err != nil {
		return err
	} else if !there || idOf(&st) != idOf(&was.st) {
		err := unix.Renameat2(d.fd, temp, d.fd, name, flags)
		return errors.Join(d.changed(name), err, d.sync())
	}
	if err := d.sync(); err != nil {
		return err
	}
	return d.remove(temp)
}

func (d *directory) changed(name string) error {
	return refused(d.join(name), "was changed by somebody else meanwhile; it stays as it is")
}

// cannotExchange reports whether a file system does not know the flags of
// renameat2(2).
func cannotExchange(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM)
}

// same reports whether a regular file already is what writeTemp would write.
func (d *directory) same(name string, data []byte, mode fileMode) (bool, error) {
	st, ok, err := d.lstat(name)
	if err != nil || !ok || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != int64(len(data)) {
		return false, err
	}
	if st.Uid != mode.uid || st.Gid != mode.gid || st.Mode&0o7777 != mode.perm {
		return false, nil
	}
	if acl, err := readACL(d.join(name)); err != nil || !bytes.Equal(acl, mode.acl) {
		return false, err
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
