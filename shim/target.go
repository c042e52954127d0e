package shim

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// A target is the real program of a launch.
type target struct {
	// path is what execve is given.
	path string
	// name is what messages call it before it is found.
	name string
}

// errNotFound and errNotExecutable are the two ways in which a program can
// be missing, as a shell tells them apart.
var (
	errNotFound      = errors.New("the real program was not found")
	errNotExecutable = errors.New("not an executable file")
)

// findTarget finds the real program: the one in the shim's record, else the
// policy's, else the next of its name on PATH behind the shim's own entry that
// is no shim. No path through it leads back to a shim that could be read, and
// those that cannot be read are only ever taken from a later entry of PATH
// than the one before, so that a chain of shims ends.
func findTarget(s *Start, me self, program string, env []string) (target, error) {
	t := target{name: base(me.invoked)}
	if s.Record.Real != "" && me.readable {
		t.path, t.name = s.Record.Real, base(s.Record.Real)
		if s.Record.InPlace {
			t.name = base(me.invoked)
		}
		if err := checkTarget(t.path, me); !errors.Is(err, errIsShim) {
			return t, err
		}
		// A stale record: what stands there now is a shim. Look on PATH.
	}
	if s.Record.Real == "" && program != "" {
		t.path, t.name = program, base(program)
		return t, checkTarget(program, me)
	}
	if t.name == "" {
		return t, fmt.Errorf("%w: nothing tells under which name this shim was started", errNotFound)
	}
	path, err := searchPath(t.name, me, env)
	t.path = path
	return t, err
}

var errIsShim = errors.New("is a shim itself")

// checkTarget says why the file at path cannot be the real program.
func checkTarget(path string, me self) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			return fmt.Errorf("%q: %w", path, errNotFound)
		}
		return fmt.Errorf("%q: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) != nil {
		return fmt.Errorf("%q: %w", path, errNotExecutable)
	}
	if id, ok := fileID(path); ok && me.known && id == me.id || isShimFile(path) == yes {
		return fmt.Errorf("%q: %w", path, errIsShim)
	}
	return checkInterpreters(path, me)
}

// searchPath looks for name on the PATH of env as execvp(3) does, behind the
// entry by which this shim was reached.
func searchPath(name string, me self, env []string) (string, error) {
	dirs := pathDirs(env)
	first, last := -1, -1 // entries that lead to this very file
	for i, dir := range dirs {
		if id, ok := fileID(dir + "/" + name); ok && me.known && id == me.id {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	var found error
	for i := first + 1; i < len(dirs); i++ {
		path := dirs[i] + "/" + name
		err := checkTarget(path, me)
		switch {
		case err == nil && (i > last || isShimFile(path) == no):
			return path, nil
		case errors.Is(err, errNotExecutable):
			found = err
		}
	}
	if found != nil {
		return "", found
	}
	return "", fmt.Errorf("no %q on PATH behind the shim: %w", name, errNotFound)
}

// defaultPath is what execvp(3) searches when PATH is not set (_CS_PATH).
const defaultPath = "/bin:/usr/bin"

// pathDirs returns the entries of PATH; an empty one is the current directory.
func pathDirs(env []string) []string {
	value, ok := getenv(env, "PATH")
	if !ok {
		value = defaultPath
	}
	dirs := strings.Split(value, ":")
	for i, dir := range dirs {
		if dir == "" {
			dirs[i] = "."
		}
	}
	return dirs
}

// getenv returns the first value of a variable, as getenv(3) does.
func getenv(env []string, name string) (string, bool) {
	for _, s := range env {
		if v, ok := strings.CutPrefix(s, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

// maxInterpreters bounds how far a chain of scripts is followed; the kernel
// itself stops at a handful (exec_binprm in fs/exec.c).
const maxInterpreters = 16

// checkInterpreters refuses a script whose #! line leads back to this shim,
// directly or through the record of another shim: it would start itself for
// ever.
func checkInterpreters(path string, me self) error {
	for range maxInterpreters {
		head, err := readHead(path)
		if err != nil {
			return nil // cannot be a script that the kernel reads for us
		}
		if record.IsShim(head) {
			if id, ok := fileID(path); ok && me.known && id == me.id {
				return fmt.Errorf("its #! line leads back to this shim: %w", errIsShim)
			}
			next := recordedBy(path)
			if next == "" {
				return nil
			}
			path = next
			continue
		}
		next, ok := interpreter(head)
		if !ok {
			return nil
		}
		path = next
	}
	return fmt.Errorf("a chain of more than %d interpreters: %w", maxInterpreters, errIsShim)
}

// recordedBy returns the real program that another shim's record names, or "".
func recordedBy(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	r, ok, err := record.Read(data)
	if err != nil || !ok {
		return ""
	}
	return r.Real
}

// interpreter returns the program that a #! line names (execve(2)).
func interpreter(head []byte) (string, bool) {
	line, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return "", false
	}
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	f := bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == 0 })
	if len(f) == 0 {
		return "", false
	}
	return string(f[0]), true
}
