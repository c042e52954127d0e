package confine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/planner"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/seccomp"
)

// Prove tries what the domain and the plan say, from inside and before the program
// runs: what is hidden must not open, what is exposed must, outside of the writable
// roots nothing can be made, the program at path must be executable, what the filter
// refuses must be refused, and where processes are isolated the launcher cannot
// be looked into. A contradiction ends the launch. pl is nil where the policy confines
// no files.
func (d *Domain) Prove(pl *planner.Plan, path string) error {
	if d.Ruleset == nil && d.wantsRuleset() {
		return errors.New("no ruleset was enforced")
	}
	if d.Ruleset != nil && pl != nil {
		if err := proveFiles(pl, d.Ruleset, path); err != nil {
			return err
		}
		if err := pl.MountsUnchanged(); err != nil {
			return err
		}
	}
	if d.Ruleset != nil {
		if err := provePorts(d.Ruleset.ports, d.asked.Network); err != nil {
			return err
		}
		if err := proveSignals(d.Ruleset.scopes); err != nil {
			return err
		}
	}
	if d.Ruleset != nil && d.asked.Isolate.Has(rules.IsolateProc) {
		if err := d.proveProc(); err != nil {
			return fmt.Errorf("/proc: %w", err)
		}
	}
	if d.offered.NoSeccomp != "" {
		return nil
	}
	return seccomp.Prove(d.Filter, d.behind)
}

// wantsRuleset reports whether Landlock is to hold something that it can hold here.
func (d *Domain) wantsRuleset() bool {
	if d.noRuleset != "" {
		return false
	}
	held, _ := rules.Assess(d.asked, d.offered)
	return slices.ContainsFunc(held, func(e rules.Enforcement) bool {
		return e.By == rules.ByLandlock && e.What != "audit" // which is about denials, and denies nothing
	})
}

// provePorts tries to bind and to connect to ports that are not listed. Landlock
// is asked before anything is sent. Under "deny" there is no socket to try it with.
func provePorts(handled uint64, n rules.Network) error {
	if n.Mode != rules.NetworkPorts {
		return nil
	}
	for _, t := range []struct {
		access uint64
		list   []uint16
		what   string
		do     func(fd int, to unix.Sockaddr) error
	}{
		{ll.AccessNetBindTCP, n.BindTCP, "bind to", unix.Bind},
		{ll.AccessNetConnectTCP, n.ConnectTCP, "connect to", unix.Connect},
	} {
		if handled&t.access == 0 {
			continue
		}
		port := uint16(1024)
		for slices.Contains(t.list, port) && port < 65535 {
			port++
		}
		if slices.Contains(t.list, port) {
			continue // every port that this user could try is listed
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return fmt.Errorf("a TCP socket: %w", err)
		}
		err = t.do(fd, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
		unix.Close(fd)
		if err = denied(-1, err, "is possible", unix.EACCES); err != nil {
			return fmt.Errorf("to %s port %d: %w", t.what, port, err)
		}
	}
	return nil
}

// proveSignals asks whether the launcher, which is outside, could be signalled.
func proveSignals(scopes uint64) error {
	if scopes&ll.ScopeSignal == 0 || unix.Getppid() == 0 { // its parent is in another pid namespace
		return nil
	}
	if err := denied(-1, unix.Kill(unix.Getppid(), 0), "can be signalled", unix.EPERM, unix.ESRCH); err != nil {
		return fmt.Errorf("the launcher: %w", err)
	}
	return nil
}

// proveProc: a domain closes processes outside to one that has no capability for
// it; a private /proc closes them to any, and hides them.
func (d *Domain) proveProc() error {
	k := d.InForce()
	private := k.PrivateProc && k.ProcElsewhere == ""
	if private || !k.ProcCapabilities {
		if err := launcherClosed(); err != nil {
			return err
		}
	}
	if private {
		return launcherHidden()
	}
	return nil
}

// proveFiles tries the plan's paths.
//
// A hidden location is tried by its path and, where it is held, by its inode.
// EACCES is the only good answer: one that existed and is gone (ENOENT) was
// moved, perhaps to where it can be read. Opening a FIFO, a socket or a device
// could block or act, so for those the missing rule has to do.
func proveFiles(pl *planner.Plan, rs *Ruleset, path string) error {
	for _, h := range pl.Files.Hidden {
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
	for _, n := range pl.Held {
		if err := mustStayHidden(n); err != nil {
			return fmt.Errorf("hidden inode %d: %w", n.Info().Ino, err)
		}
	}
	for _, x := range pl.Files.Exposed {
		if err := mustOpen(x.Path, x.Info.Kind); err != nil {
			return fmt.Errorf("exposed path %q: %w", x.Path, err)
		}
	}
	if err := proveReadOnly(pl.Files); err != nil {
		return err
	}
	if len(rs.missing) > 0 {
		return fmt.Errorf("%q, which the program needs to start, could not be granted", rs.missing[0])
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil {
		return fmt.Errorf("the program %q: %w", path, err)
	}
	return nil
}

// mustStayHidden tries an inode that was opened before the domain was entered.
func mustStayHidden(n pathcheck.Node) error {
	fd, ok := pathcheck.FD(n)
	switch kind := n.Info().Kind; {
	case !ok || !triable(kind):
		return nil
	case kind == pathcheck.Directory:
		return mustNotOpen(fd, ".", kind)
	default:
		err := mustNotOpen(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), kind)
		if errors.Is(err, unix.ENOENT) {
			return nil // /proc is not mounted; the path was tried
		}
		return err
	}
}

// Doubt titles a failed proof; one that ran out of descriptors or memory proved nothing.
func Doubt(err error) string {
	if pathcheck.Exhausted(err) {
		return "the confinement cannot be proved"
	}
	return "the confinement does not hold"
}

// proveReadOnly tries to make a file outside the roots of scope workspace. The
// file has no name (O_TMPFILE of open(2)), so nothing is left of it where the
// confinement does not hold. Where permissions or the file system refuse
// anyway, that says nothing, and the next directory is tried; one that says
// something is enough, since all depend on the same rule.
func proveReadOnly(pl *plan.Plan) error {
	for _, dir := range []string{"/var/tmp", "/tmp", "/home", "/"} {
		outside, err := pl.ReadOnly(pathcheck.OS{}, dir)
		if err == nil && len(outside) > 0 {
			var fd int
			if fd, err = unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600); err == nil {
				unix.Close(fd)
				return fmt.Errorf("%q can still be written", dir)
			}
			if errors.Is(err, unix.EACCES) {
				if err = unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK, unix.AT_EACCESS); err == nil {
					return nil
				}
			}
		}
		if pathcheck.Exhausted(err) {
			return fmt.Errorf("%q: %w", dir, err)
		}
	}
	return nil
}

func triable(k pathcheck.Kind) bool { return k == pathcheck.Regular || k == pathcheck.Directory }

const tryFlags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

func mustNotOpen(dirfd int, path string, kind pathcheck.Kind) error {
	fd, err := openOnce(dirfd, path, kind)
	return denied(fd, err, "can still be opened", unix.EACCES)
}

// mustStayClosed tries a path at which nothing was: it may have appeared since.
// Landlock denies it before the file itself is asked, so ENXIO of a socket is no
// better than an open file.
func mustStayClosed(path string) error {
	fd, err := openOnce(unix.AT_FDCWD, path, pathcheck.Regular)
	return denied(fd, err, "has appeared and can be opened",
		unix.EACCES, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG)
}

// denied judges what must fail, and in one of these ways: another one says nothing
// of the confinement. broken says what its success means.
func denied(fd int, err error, broken string, good ...unix.Errno) error {
	if err == nil {
		unix.Close(fd)
		return errors.New(broken)
	}
	if slices.ContainsFunc(good, func(errno unix.Errno) bool { return errors.Is(err, errno) }) {
		return nil
	}
	return fmt.Errorf("expected to be denied: %w", err)
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
