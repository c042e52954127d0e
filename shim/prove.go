package shim

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// prove tries what the policy says, from inside the domain and before the
// program runs: what is hidden must not open, what is exposed must, and the
// program must be executable. A contradiction ends the launch.
//
// A hidden location is tried by its path and, where it is held, by its inode.
// EACCES is the only good answer: one that existed and is gone (ENOENT) was
// moved, perhaps to where it can be read. Opening a FIFO, a socket or a device
// could block or act, so for those the missing rule has to do.
func prove(pl *rules.Plan, hs held, rs *ruleset, path string) error {
	for _, h := range pl.Hidden {
		if !h.Exists {
			if err := mustStayClosed(h.Path); err != nil {
				return fmt.Errorf("hidden path %q: %w", h.Path, err)
			}
			continue
		}
		if !triable(h.Info.Kind) {
			continue
		}
		if err := mustNotOpen(unix.AT_FDCWD, h.Path, h.Info.Kind); err != nil {
			return fmt.Errorf("hidden path %q: %w", h.Path, err)
		}
	}
	for _, n := range hs {
		fd, ok := pathcheck.FD(n)
		if !ok || !triable(n.Info().Kind) {
			continue
		}
		var err error
		if n.Info().Kind == pathcheck.Directory {
			err = mustNotOpen(fd, ".", pathcheck.Directory)
		} else if err = mustNotOpen(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), n.Info().Kind); errors.Is(err, unix.ENOENT) {
			err = nil // /proc is not mounted; the path was tried
		}
		if err != nil {
			return fmt.Errorf("hidden inode %d: %w", n.Info().Ino, err)
		}
	}
	for _, x := range pl.Exposed {
		if err := mustOpen(x.Path, x.Info.Kind); err != nil {
			return fmt.Errorf("exposed path %q: %w", x.Path, err)
		}
	}
	if err := proveReadOnly(pl); err != nil {
		return err
	}
	for _, p := range rs.needed {
		if !rs.granted[p] {
			return fmt.Errorf("%q, which the program needs to start, could not be granted", p)
		}
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil {
		return fmt.Errorf("the program %q: %w", path, err)
	}
	return nil
}

// proveReadOnly tries to make a file outside the roots of scope workspace. The
// file has no name (O_TMPFILE of open(2)), so nothing is left of it where the
// confinement does not hold. Where permissions or the file system refuse
// anyway, that says nothing, and the next directory is tried; one that says
// something is enough, since all depend on the same rule.
func proveReadOnly(pl *rules.Plan) error {
	for _, dir := range []string{"/var/tmp", "/tmp", "/home", "/"} {
		if len(pl.ReadOnly(pathcheck.OS{}, dir)) == 0 {
			continue
		}
		fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err == nil {
			unix.Close(fd)
			return fmt.Errorf("%q can still be written", dir)
		}
		if errors.Is(err, unix.EACCES) && unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK, unix.AT_EACCESS) == nil {
			return nil
		}
	}
	return nil
}

func triable(k pathcheck.Kind) bool { return k == pathcheck.Regular || k == pathcheck.Directory }

const tryFlags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

func mustNotOpen(dirfd int, path string, kind pathcheck.Kind) error {
	fd, err := openOnce(dirfd, path, kind)
	switch {
	case err == nil:
		unix.Close(fd)
		return errors.New("can still be opened")
	case errors.Is(err, unix.EACCES):
		return nil
	default:
		return fmt.Errorf("expected to be denied: %w", err)
	}
}

// mustStayClosed tries a path at which nothing was: it may have appeared since.
func mustStayClosed(path string) error {
	fd, err := openOnce(unix.AT_FDCWD, path, pathcheck.Regular)
	if err != nil {
		return nil
	}
	unix.Close(fd)
	return errors.New("has appeared and can be opened")
}

func mustOpen(path string, kind pathcheck.Kind) error {
	if !triable(kind) {
		return nil
	}
	fd, err := openOnce(unix.AT_FDCWD, path, kind)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func openOnce(dirfd int, path string, kind pathcheck.Kind) (int, error) {
	flags := tryFlags
	if kind == pathcheck.Directory {
		flags |= unix.O_DIRECTORY
	}
	for {
		fd, err := unix.Openat(dirfd, path, flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}
