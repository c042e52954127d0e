package place

import (
	"debug/elf"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
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
func checkProgram(name string) (unix.Stat_t, error) {
	f, err := shims.Open(unix.AT_FDCWD, name, 0)
	if err != nil {
		// What cannot be read cannot be told from a shim.
		return unix.Stat_t{}, voice.Refused(name, "open: %w", err)
	}
	defer f.Close()
	p := program{path: name, resolved: name, file: f}
	if err := unix.Fstat(int(f.Fd()), &p.st); err != nil {
		return p.st, voice.Refused(name, "%w", err)
	}
	if r, err := filepath.EvalSymlinks(name); err == nil {
		p.resolved = r
	}
	for _, check := range []func(program) string{
		notRegular, notExecutable, setID, fileCapabilities, loader, isShim,
	} {
		if why := check(p); why != "" {
			if p.resolved != p.path {
				why = "leads to " + voice.Show(p.resolved) + ", which " + why
			}
			return p.st, voice.Refused(name, "%s", why)
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
	if !shims.Executable(p.path) {
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

// loader: a dynamic loader is a shared object without an interpreter, but so is
// a static program that can be loaded anywhere. What tells them apart is the
// name that the file itself or the C library's convention gives it, or that a
// shell asks for it.
func loader(p program) string {
	const is = "is a dynamic loader: every dynamic program needs it as it is"
	file, err := elf.NewFile(p.file)
	if err != nil || file.Type != elf.ET_DYN || interpreterOf(file) != "" {
		return ""
	}
	names, _ := file.DynString(elf.DT_SONAME)
	if slices.ContainsFunc(append(names, path.Base(p.path), path.Base(p.resolved)), loaderName.MatchString) {
		return is
	}
	if shell, err := elf.Open("/bin/sh"); err == nil {
		defer shell.Close()
		if id, ok := shims.IDAt(interpreterOf(shell)); ok && id == shims.ID(&p.st) {
			return is
		}
	}
	return ""
}

// loaderName matches ld-linux-x86-64.so.2, ld-linux-aarch64.so.1, ld-2.31.so,
// ld-musl-x86_64.so.1, ld64.so.1 and ld.so.1.
var loaderName = regexp.MustCompile(`^ld(-.*|64)?\.so`)

func interpreterOf(file *elf.File) string {
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			buf := make([]byte, min(p.Filesz, unix.PathMax))
			n, _ := p.ReadAt(buf, 0)
			return strings.TrimRight(string(buf[:n]), "\x00")
		}
	}
	return ""
}

func isShim(p program) string {
	is, err := record.FileIsShim(p.file)
	switch {
	case err != nil:
		return "cannot be read: " + voice.Bare(err).Error()
	case is:
		return "is itself a shim"
	}
	return ""
}
