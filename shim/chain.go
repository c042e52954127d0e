package shim

import (
	"bytes"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// A chain is what follows when this shim starts a script: the kernel starts the
// interpreter that its #! line names, which may be this shim, or lead to it
// through other scripts, other shims and env(1). The same would then happen for
// ever.
type chain struct {
	me   self
	argv []string // of this launch
	env  []string

	steps int
	seen  map[string]bool
}

const (
	// maxSteps bounds how many files are looked at; who needs more is not
	// looked at to the end and taken for a loop.
	maxSteps = 100
	// maxReturns bounds how often a script that cannot be read may have been
	// started before: the kernel puts its path into argv each time.
	maxReturns = 8
	// maxInterpreters bounds a chain of scripts; the kernel itself stops at a
	// handful (exec_binprm in fs/exec.c).
	maxInterpreters = 16
)

// leadsBack reports whether execve of the file at path could come back to this
// shim. It follows everything that another shim could choose, not only what it
// would: each shim that does so breaks every loop that it is part of.
//
// What a script does when it runs is its own affair: a script that looks for
// its own name on PATH finds the shim again.
//
// head is the first page of the file, nil if it cannot be read.
func (c chain) leadsBack(path string, head []byte) bool {
	if !isELF(head) {
		n := 0
		for _, a := range tail(c.argv) {
			if a == path {
				n++
			}
		}
		if n >= maxReturns {
			return true
		}
	}
	c.seen, c.steps = map[string]bool{path + "\x00": true}, 1
	return c.follow(path, "", head)
}

// from looks at the file at path, which is started with the argument of a #!
// line, and follows it.
func (c *chain) from(path, arg string) bool {
	if c.seen[path+"\x00"+arg] {
		return false
	}
	c.seen[path+"\x00"+arg] = true
	if c.steps++; c.steps > maxSteps {
		return true
	}
	id, err := fileID(path)
	if err != nil || !executable(path) {
		return false
	}
	if c.me.known && id == c.me.id {
		return true
	}
	head, err := readHead(path)
	if err != nil {
		head = nil
	}
	return c.follow(path, arg, head)
}

// follow goes on from a file with its first page, nil if that cannot be read.
func (c *chain) follow(path, arg string, head []byte) bool {
	switch {
	case head == nil:
		// Perhaps a shim that cannot be read, which has no use for its record.
		return c.fromAny(base(path), arg)
	case record.IsShim(head):
		name := base(path)
		if r, ok := recordedBy(path); ok {
			if isShimFile(r.Real) != yes {
				return c.from(r.Real, arg)
			}
			if !r.InPlace {
				name = base(r.Real)
			}
		}
		return c.fromAny(name, arg)
	case isELF(head):
		if base(path) != "env" {
			return false
		}
		next := envProgram(arg, c.env)
		return next != "" && c.from(next, "")
	}
	if next, arg, ok := interpreter(head); ok {
		return c.from(next, arg)
	}
	return c.from("/bin/sh", "") // execvp(3)
}

// fromAny follows whatever a shim could find on PATH.
func (c *chain) fromAny(name, arg string) bool {
	for _, dir := range pathDirs(c.env) {
		if path := dir + "/" + name; isShimFile(path) != yes && c.from(path, arg) {
			return true
		}
	}
	return false
}

// recordedBy returns the record of another shim.
func recordedBy(path string) (record.Record, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return record.Record{}, false
	}
	r, ok, err := record.Read(data)
	return r, ok && err == nil
}

// interpreter returns the program that a #! line names and its argument, which
// is all the rest of the line (execve(2)).
func interpreter(head []byte) (path, arg string, ok bool) {
	line, ok := bytes.CutPrefix(head, []byte("#!"))
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

// envProgram returns the file that env(1) starts for the argument of a #! line,
// or "".
func envProgram(arg string, env []string) string {
	words := []string{arg}
	if strings.HasPrefix(arg, "-") {
		words = strings.Fields(arg) // -S splits it
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "-S" || w == "--":
		case strings.HasPrefix(w, "-S"):
			words[i] = w[2:]
			i--
		case w == "-u" || w == "-C" || w == "-a" || w == "--unset" || w == "--chdir" || w == "--argv0":
			i++
		case strings.HasPrefix(w, "-"):
		case strings.HasPrefix(w, "PATH="):
			env = []string{w}
		case strings.Contains(w, "="):
		case strings.Contains(w, "/"):
			return w
		default:
			for _, dir := range pathDirs(env) {
				if path := dir + "/" + w; startable(path) {
					return path
				}
			}
			return ""
		}
	}
	return ""
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
