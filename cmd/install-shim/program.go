package main

import (
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// A program is a file that a shim is to stand for, symbolic links followed.
type program struct {
	path     string // as given: absolute and clean
	resolved string // where it leads, for messages
	st       unix.Stat_t
	file     *os.File
}

// checkProgram says why the file at an absolute path cannot be the real
// program behind a shim, and returns what it is.
func checkProgram(path string) (unix.Stat_t, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		// What cannot be read cannot be told from a shim.
		return unix.Stat_t{}, refused(path, "open: %w", err)
	}
	p := program{path: path, resolved: path, file: os.NewFile(uintptr(fd), path)}
	defer p.file.Close()
	if err := unix.Fstat(fd, &p.st); err != nil {
		return p.st, refused(path, "%w", err)
	}
	if r, err := filepath.EvalSymlinks(path); err == nil {
		p.resolved = r
	}
	for _, check := range []func(program) string{
		notRegular, notExecutable, setID, fileCapabilities, loader, shim,
	} {
		if why := check(p); why != "" {
			if p.resolved != p.path {
				why = "leads to " + show(p.resolved) + ", which " + why
			}
			return p.st, refused(path, "%s", why)
		}
	}
	return p.st, nil
}

// The checks return what is wrong, as the end of "the program …".

func notRegular(p program) string {
	switch p.st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return ""
	case unix.S_IFDIR:
		return "is a directory"
	default:
		return "is not a regular file"
	}
}

func notExecutable(p program) string {
	if p.st.Mode&0o111 == 0 || unix.Faccessat(unix.AT_FDCWD, p.path, unix.X_OK, unix.AT_EACCESS) != nil {
		return "is not executable"
	}
	return ""
}

// setID: the real program would lose its privilege in a confined launch
// (no_new_privs), and a shim with the privilege refuses to work.
func setID(p program) string {
	if p.st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		return "is set-user-id or set-group-id: it would lose that behind a shim"
	}
	return ""
}

func fileCapabilities(p program) string {
	if n, err := unix.Fgetxattr(int(p.file.Fd()), "security.capability", nil); err == nil && n > 0 {
		return "has file capabilities: it would lose them behind a shim"
	}
	return ""
}

func loader(p program) string {
	if isLoader(p.file, idOf(&p.st), p.path, p.resolved) {
		return "is a dynamic loader: every dynamic program needs it as it is"
	}
	return ""
}

func shim(p program) string {
	is, err := record.FileIsShim(p.file)
	switch {
	case err != nil:
		return "cannot be read: " + bare(err).Error()
	case is:
		return "is itself a shim"
	}
	return ""
}

// compiler matches programs that look for their own parts next to where PATH
// has argv[0], and so next to a shim in another directory: gcc then says
// "cannot execute 'cc1'".
var compiler = regexp.MustCompile(`^([A-Za-z0-9_]+-)*(gcc|g\+\+|cc|c\+\+|cpp|gfortran|clang|clang\+\+)(-[0-9.]+)?$`)

func findsPartsByName(name string) bool { return compiler.MatchString(name) }
