package target

import (
	"bytes"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// A follower follows what happens when this shim starts a script: the kernel starts
// the interpreter that its #! line names, which may be this shim, or lead to it
// through other scripts, other shims and env(1). The same would then happen for
// ever.
type follower struct {
	me   Self
	argv []string // of this launch
	env  []string

	steps int
	seen  map[string]bool
}

const (
	// maxSteps bounds how many files are looked at; who needs more is not
	// looked at to the end and taken for a loop.
	maxSteps = 100
	// maxReturns bounds how often a script may have been started before that comes
	// back without being seen, because it cannot be read or through a program that
	// is not known: the kernel puts its path into argv each time.
	maxReturns = 8
	// maxInterpreters bounds a row of scripts; the kernel itself stops at a
	// handful (exec_binprm in fs/exec.c).
	maxInterpreters = 16
	// maxLine is how much of a #! line the kernel reads (BINPRM_BUF_SIZE), but for
	// the newline.
	maxLine = 255
)

// leadsBack reports whether execve of the file at path could come back to this
// shim. It follows everything that another shim could choose, not only what it
// would: each shim that does so breaks every loop that it is part of.
//
// What a script does when it runs is its own affair: a script that looks for
// its own name on PATH finds the shim again.
//
// head is the first page of the file, nil if it cannot be read.
func (f follower) leadsBack(path string, head []byte) bool {
	if !isELF(head) {
		n := 0
		for _, a := range f.argv[min(1, len(f.argv)):] {
			if a == path {
				n++
			}
		}
		if n >= maxReturns {
			return true
		}
	}
	f.seen, f.steps = map[string]bool{}, 1
	return f.follow(path, nil, head)
}

// from looks at the file at path and follows it. args are those that a #! line
// or env gave it; what stands behind them, a script and its arguments, is left out.
func (f *follower) from(path string, args []string) bool {
	search, _ := Getenv(f.env, "PATH")
	call := path + "\x00" + search + "\x00" + strings.Join(args, "\x00")
	if f.seen[call] {
		return false
	}
	f.seen[call] = true
	if f.steps++; f.steps > maxSteps {
		return true
	}
	id, err := fileID(path)
	if err != nil || !executable(path) {
		return false
	}
	if f.me.known && id == f.me.ID {
		return true
	}
	head, err := readHead(path)
	if err != nil {
		head = nil
	}
	return f.follow(path, args, head)
}

// follow goes on from a file with its first page, nil if that cannot be read.
func (f *follower) follow(path string, args []string, head []byte) bool {
	switch {
	case head == nil:
		// Perhaps a shim that cannot be read, which has no use for its record.
		return f.fromAny(base(path), args) || f.fromEnv(path, args)
	case record.IsShim(head):
		name := base(path)
		if r, ok := recordedBy(path); ok {
			if isShimFile(r.Real) != yes {
				return f.from(r.Real, args)
			}
			if !r.InPlace {
				name = base(r.Real)
			}
		}
		return f.fromAny(name, args)
	case isELF(head):
		return f.fromEnv(path, args)
	}
	next, arg, ok := interpreter(head)
	switch {
	case !ok:
		return f.from("/bin/sh", nil) // execvp(3)
	case arg == "":
		return f.from(next, nil)
	default:
		return f.from(next, []string{arg})
	}
}

// fromEnv follows what is started by a program that is none of ours. Only of env
// it is known what it does with its arguments.
func (f *follower) fromEnv(path string, args []string) bool {
	if base(path) != "env" {
		return false
	}
	next, args, after := envProgram(args, f.env)
	if next == "" {
		return false
	}
	before := f.env
	f.env = after
	back := f.from(next, args)
	f.env = before
	return back
}

// fromAny follows whatever a shim could find on PATH.
func (f *follower) fromAny(name string, args []string) bool {
	for _, dir := range PathDirs(f.env) {
		if path := dir + "/" + name; isShimFile(path) != yes && f.from(path, args) {
			return true
		}
	}
	return false
}

// maxShim is the size of a file beyond which it is searched for no record. A shim
// has three megabytes.
const maxShim = 16 << 20

// recordedBy returns the record of another shim.
func recordedBy(path string) (r record.Record, ok bool) {
	data, err := pathcheck.ReadRegular(path, maxShim)
	if err != nil {
		return r, false
	}
	r, ok, err = record.Read(data)
	return r, ok && err == nil
}

// interpreter returns the program that a #! line names and its argument, which
// is all the rest of the line (execve(2)). The kernel leaves out what is too long.
func interpreter(head []byte) (path, arg string, ok bool) {
	line, ok := bytes.CutPrefix(head[:min(len(head), maxLine)], []byte("#!"))
	if !ok {
		return "", "", false
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	line, _, _ = bytes.Cut(line, []byte{0})
	text := strings.Trim(string(line), " \t")
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		path, arg = text[:i], strings.TrimLeft(text[i:], " \t")
	} else {
		path = text
	}
	return path, arg, path != ""
}

func executable(path string) bool {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) == nil
}

// startable reports whether execve of the file at path could succeed: where it
// cannot because something is missing, execvp(3) goes on to the next entry.
func startable(path string) bool {
	for range maxInterpreters {
		if _, err := fileID(path); err != nil || !executable(path) {
			return false
		}
		head, err := readHead(path)
		if err != nil {
			return true
		}
		next, _, ok := interpreter(head)
		if !ok {
			return true
		}
		path = next
	}
	return true
}

const elfMagic = "\x7fELF"

func isELF(head []byte) bool { return bytes.HasPrefix(head, []byte(elfMagic)) }

// isForeignELF reports whether the file can be read and is an ELF file but no
// shim.
func isForeignELF(path string) bool {
	head, err := readHead(path)
	return err == nil && isELF(head) && !record.IsShim(head)
}
