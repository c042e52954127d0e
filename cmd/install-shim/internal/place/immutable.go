package place

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
)

// immutableFlag is FS_IMMUTABLE_FL of linux/fs.h (ioctl_iflags(2)). Nobody changes,
// renames or removes the file then, and CAP_LINUX_IMMUTABLE takes it off.
const immutableFlag = 0x10

// errFlagRefused: a container and a user namespace lack the capability.
var errFlagRefused = errors.New("needs CAP_LINUX_IMMUTABLE")

// setImmutable gives the regular file of a name the flag or takes it off.
func (d *directory) setImmutable(name string, on bool) error {
	f, err := shims.Open(d.fd, name, unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer f.Close()
	fd := int(f.Fd())
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if err == nil {
		want := flags &^ immutableFlag
		if on {
			want |= immutableFlag
		}
		if want == flags {
			return nil
		}
		err = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(want))
	}
	switch {
	case errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL):
		return errors.New("its file system has no such flag")
	case errors.Is(err, unix.EPERM):
		return errFlagRefused
	case err != nil:
		return err
	}
	// Some file systems take a flag that they do not keep.
	if now, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS); err != nil || now&immutableFlag != 0 != on {
		return errors.New("its file system does not keep the flag")
	}
	return nil
}

// isImmutable reports whether the file of a name has the flag.
func (d *directory) isImmutable(name string) bool {
	var stx unix.Statx_t
	err := unix.Statx(d.fd, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &stx)
	return err == nil && stx.Attributes&unix.STATX_ATTR_IMMUTABLE != 0
}

// A thawed file had the flag until now.
type thawed struct {
	dir  *directory
	name string
	was  entry
}

// thaw takes the flag off a site's shims, and off the program behind one in place. The
// kernel renames and removes no file that has it.
func (s *site) thaw(program bool) (files []thawed, err error) {
	for _, f := range []thawed{{s.dir, s.name, s.at}, {s.dir, s.sibling(), s.real}} {
		if f.was.kind == nothing || f.was.kind == other && (!program || f.name != s.sibling()) || !s.dir.isImmutable(f.name) {
			continue
		}
		if err := s.dir.setImmutable(f.name, false); err != nil {
			return files, voice.Refused(s.dir.join(f.name), "is immutable (chattr), and to take that off: %w", err)
		}
		files = append(files, f)
	}
	return files, nil
}

// thawShims takes the flag off the shims that are to be replaced.
func thawShims(changes []*change) (files []thawed, err error) {
	for _, c := range changes {
		more, err := c.thaw(false)
		files, c.wasImmutable = append(files, more...), len(more) > 0
		if err != nil {
			return files, err
		}
	}
	return files, nil
}

// freeze gives the flag back where a file still has its name.
func freeze(files []thawed) {
	for _, f := range files {
		if still, err := f.dir.still(f.name, f.was); err == nil && still {
			_ = f.dir.setImmutable(f.name, true)
		}
	}
}

// makeImmutable gives an installed shim the flag, and the program behind one in place,
// if that is asked for. Where it is not to be had, the install stands. It returns what
// to add to the line about the install.
func (c *change) makeImmutable() string {
	if !c.immutable && !c.wasImmutable {
		return ""
	}
	if err := c.dir.setImmutable(c.name, true); err != nil {
		c.warn("is installed and not immutable: " + err.Error())
		return ""
	}
	if !c.rec.InPlace || !c.immutable {
		return " (immutable)"
	}
	sibling := voice.Show(c.sibling())
	var st unix.Stat_t
	switch err := unix.Fstatat(c.dir.fd, c.sibling(), &st, unix.AT_SYMLINK_NOFOLLOW); {
	case c.upgraded:
		return " (immutable)" // or dpkg could not put the next version there
	case err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK:
		c.warn(sibling + " is a symbolic link, which cannot be immutable")
	case err == nil && st.Nlink > 1:
		c.warn(sibling + " has other names (hard links), which would be immutable, too: it stays as it is")
	default:
		if err = c.dir.setImmutable(c.sibling(), true); err == nil {
			return " (both immutable)"
		}
		c.warn(sibling + " is not immutable: " + err.Error())
	}
	return " (immutable)"
}
