package place

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
)

// A fileMode is who owns a file and what they may do with it.
type fileMode struct {
	uid, gid uint32
	perm     uint32
	acl      []byte // see readACL
}

// writeTemp writes a complete file under [shims.TempName] and makes it last. The
// caller renames or removes it.
func (d *directory) writeTemp(name string, data []byte, mode fileMode) (err error) {
	temp := shims.TempName(name)
	fail := func(step string, err error) error {
		return voice.Refused(d.join(temp), step+": %w", err)
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
		if err = errors.Join(err, voice.Bare(f.Close())); err != nil {
			_ = d.remove(temp)
		}
	}()
	if _, err := f.Write(data); err != nil {
		return fail("write", voice.Bare(err))
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
		if still, err := d.still(name, was); err != nil {
			return err
		} else if !still {
			return d.changed(name)
		}
		return d.rename(temp, name)
	case errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOENT):
		return d.changed(name)
	case err != nil:
		return d.cannotRename(temp, name, err)
	case was.kind == nothing:
		return d.sync()
	}
	if still, err := d.still(temp, was); err != nil {
		return err
	} else if !still {
		err := unix.Renameat2(d.fd, temp, d.fd, name, flags)
		return errors.Join(d.changed(name), err, d.sync())
	}
	if err := d.sync(); err != nil {
		return err
	}
	return d.remove(temp)
}

// still reports whether a name has the file that was seen, or none as before.
func (d *directory) still(name string, was entry) (bool, error) {
	st, there, err := d.lstat(name)
	return there == (was.kind != nothing) && shims.ID(&st) == shims.ID(&was.st), err
}

func (d *directory) changed(name string) error {
	return voice.Refused(d.join(name), "was changed by somebody else meanwhile; it stays as it is")
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
