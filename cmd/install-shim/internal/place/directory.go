package place

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// A directory is an open directory in which names are looked at and changed.
// All names are names in it, never paths.
type directory struct {
	fd   int
	path string
	id   pathcheck.ID
}

// openDirectory opens the directory at an absolute path, symbolic links
// followed.
func openDirectory(path string) (*directory, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, voice.Refused(path, "open directory: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, voice.Refused(path, "%w", err)
	}
	return &directory{fd: fd, path: path, id: shims.ID(&st)}, nil
}

func (d *directory) close() {
	if d != nil {
		_ = unix.Close(d.fd)
	}
}

func (d *directory) join(name string) string { return pathcheck.Join(d.path, name) }

// holds reports whether a path is one of a name in the directory.
func (d *directory) holds(p string) bool {
	id, ok := shims.IDAt(pathcheck.Parent(p))
	return ok && d != nil && id == d.id
}

// prepare refuses a directory that cannot be changed and locks it.
func (d *directory) prepare() error {
	if err := d.checkChangeable(); err != nil {
		return err
	}
	return d.lock()
}

// lockWait is how long another installer in the same directory is waited for.
const lockWait = 10 * time.Second

// lock keeps other installers out of the directory until it is closed or this
// process ends. A file system without locks does without.
func (d *directory) lock() error {
	for deadline := time.Now().Add(lockWait); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Flock(d.fd, unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil || errors.Is(err, unix.EBADF) || errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS):
			return nil
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EWOULDBLOCK) && time.Now().Before(deadline):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return voice.Refused(d.path, "another process holds a lock on this directory")
		default:
			return voice.Refused(d.path, "lock: %w", err)
		}
	}
}

// checkChangeable says why no name in the directory can be changed.
func (d *directory) checkChangeable() error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(d.fd, &fs); err != nil {
		return voice.Refused(d.path, "%w", err)
	}
	if fs.Flags&unix.ST_RDONLY != 0 {
		return voice.Hinted(voice.Refused(d.path, "is on a read-only mount"), "shadow the program from another directory with --dir")
	}
	if err := unix.Faccessat(d.fd, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return voice.Refused(d.path, "cannot be changed: %w", err)
	}
	return nil
}

// checkExecutable refuses a directory in which a shim could not be started.
func (d *directory) checkExecutable() error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(d.fd, &fs); err == nil && fs.Flags&unix.ST_NOEXEC != 0 {
		return voice.Refused(d.path, "is on a mount where nothing can be executed (noexec)")
	}
	return nil
}

// lstat looks at a name itself; ok is false when there is none.
func (d *directory) lstat(name string) (st unix.Stat_t, ok bool, err error) {
	err = unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return st, false, nil
	}
	if err != nil {
		return st, false, voice.Refused(d.join(name), "%w", err)
	}
	return st, true, nil
}

// sync makes the changes of names last through a power cut.
func (d *directory) sync() error {
	// Some file systems cannot sync a directory and say EINVAL.
	if err := unix.Fsync(d.fd); err != nil && !errors.Is(err, unix.EINVAL) {
		return voice.Refused(d.path, "sync: %w", err)
	}
	return nil
}

// rename gives a file another name in the same directory, in one step. What
// had that name is gone.
func (d *directory) rename(from, to string) error {
	if err := unix.Renameat(d.fd, from, d.fd, to); err != nil {
		return d.cannotRename(from, to, err)
	}
	return d.sync()
}

func (d *directory) cannotRename(from, to string, err error) error {
	return fmt.Errorf("%s: rename to %s: %w", voice.Show(d.join(from)), voice.Show(to), err)
}

// remove removes a name that is not a directory. It need not exist.
func (d *directory) remove(name string) error {
	err := unix.Unlinkat(d.fd, name, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return voice.Refused(d.join(name), "remove: %w", err)
	}
	return d.sync()
}
