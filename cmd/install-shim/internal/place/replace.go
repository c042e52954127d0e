package place

import (
	"bytes"
	"encoding/binary"
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

// same reports whether what stands at the name already is what writeTemp would
// write.
func (s *site) same(data []byte, mode fileMode) (bool, error) {
	st := &s.at.st
	if !bytes.Equal(s.at.Data, data) || st.Uid != mode.uid || st.Gid != mode.gid || st.Mode&0o7777 != mode.perm {
		return false, nil
	}
	acl, err := readACL(s.path())
	return err == nil && bytes.Equal(acl, mode.acl), err
}

// accessACL is the extended attribute that holds a file's access control list
// (acl(5)). Without it the shim would be closed to users for whom only the
// program's list opens it.
const accessACL = "system.posix_acl_access"

// readACL returns the list of the file at path, symlinks followed, or nil for a
// file that has none beside its mode.
func readACL(path string) ([]byte, error) {
	buf := make([]byte, 64<<10) // XATTR_SIZE_MAX
	n, err := unix.Getxattr(path, accessACL, buf)
	switch {
	case errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EOPNOTSUPP):
		return nil, nil
	case err != nil:
		return nil, voice.Refused(path, "read its access control list: %w", err)
	}
	return buf[:n], nil
}

// readableACL is [readableIfExecutable] for a list: a header of 4 bytes, then 8
// for each entry, of which the third and fourth are its permissions
// (struct posix_acl_xattr_entry).
func readableACL(acl []byte) []byte {
	const header, entry, permissions = 4, 8, 2
	out := append([]byte(nil), acl...)
	for at := header; at+entry <= len(out); at += entry {
		p := binary.LittleEndian.Uint16(out[at+permissions:])
		binary.LittleEndian.PutUint16(out[at+permissions:], p|p&1<<2)
	}
	return out
}
