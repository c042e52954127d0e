package shim

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// A target is the real program of a launch.
type target struct {
	// path is what execve is given.
	path string
	// name is what messages call it before it is found.
	name string
	// head is its first page, nil if it cannot be read.
	head []byte
}

// errNotFound and errNotExecutable are the two ways in which a program can
// be missing, as a shell tells them apart.
var (
	errNotFound      = errors.New("the real program was not found")
	errNotExecutable = errors.New("not an executable file")
)

// findTarget finds the real program: the one in the shim's record, else the
// policy's, else the next of its name on PATH behind the shim's own entry that
// is no shim.
//
// So that every chain of shims ends, none starts another that it can read.
// Those that cannot be read are only ever taken from a later entry of PATH than
// the one before, or from a record by a shim that can be read, which none of
// them starts again. What remains are scripts, see [chain].
func findTarget(s *Start, me self, program string, env []string) (target, error) {
	t := target{name: base(me.invoked)}
	if me.err != nil {
		return t, fmt.Errorf("the shim's own file: %w", me.err)
	}
	back := chain{me: me, argv: s.Argv, env: env}
	// A shim whose file is nowhere to be found (no /proc, started by execveat)
	// still has its record in memory, and follows it to what is surely no shim.
	if s.Record.Real != "" && (me.readable || !me.known && isForeignELF(s.Record.Real)) {
		t.path, t.name = s.Record.Real, base(s.Record.Real)
		if s.Record.InPlace {
			t.name = base(me.invoked)
		}
		var err error
		t.head, err = checkTarget(t.path, back)
		if s.Record.InPlace && errors.Is(err, errNotFound) {
			// Uninstalled between the start of this launch and now: the
			// program has its name again.
			restored := strings.TrimSuffix(t.path, record.InPlaceSuffix)
			if head, err := checkTarget(restored, back); err == nil {
				t.path, t.head = restored, head
				return t, nil
			}
		}
		if !errors.Is(err, errIsShim) {
			return t, err
		}
		// A stale record: what stands there now is a shim. Look on PATH.
	}
	if s.Record.Real == "" && program != "" {
		t.path, t.name = program, base(program)
		// The policy is gone after this launch: the next one finds its
		// program without it, and no chain comes back here.
		var err error
		t.head, err = checkFile(program, me)
		return t, err
	}
	if t.name == "" {
		return t, fmt.Errorf("%w: nothing tells under which name this shim was started", errNotFound)
	}
	var err error
	t.path, t.head, err = searchPath(t.name, back)
	return t, err
}

var errIsShim = errors.New("is a shim itself")

// checkTarget says why the file at path cannot be the real program, or returns
// its first page, nil if that cannot be read.
func checkTarget(path string, c chain) (head []byte, err error) {
	if head, err = checkFile(path, c.me); err != nil {
		return nil, err
	}
	if c.leadsBack(path, head) {
		return nil, fmt.Errorf("%q: its #! line leads back here: %w", path, errIsShim)
	}
	return head, nil
}

func checkFile(path string, me self) (head []byte, err error) {
	if head, err = examine(path, me); err != nil {
		err = fmt.Errorf("%q: %w", path, err)
	}
	return head, err
}

func examine(path string, me self) ([]byte, error) {
	id, err := fileID(path)
	if err == nil {
		err = unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS)
		if oneOf(err, unix.EACCES, unix.EPERM) {
			return nil, errNotExecutable
		}
	}
	var head []byte
	if err == nil {
		head, err = readHead(path)
		switch {
		case me.known && id == me.id || err == nil && record.IsShim(head):
			return nil, errIsShim
		case oneOf(err, unix.EACCES, unix.EPERM):
			return nil, nil
		}
	}
	if oneOf(err, unix.ENOENT, unix.ENOTDIR) {
		return nil, errNotFound
	}
	return head, err
}

// searchPath looks for name on the PATH of env as execvp(3) does, behind the
// entry by which this shim was reached.
func searchPath(name string, c chain) (path string, head []byte, err error) {
	dirs := pathDirs(c.env)
	first, last := -1, -1 // entries that lead to this very file
	for i, dir := range dirs {
		if id, err := fileID(dir + "/" + name); err == nil && c.me.known && id == c.me.id {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	var found error
	for i := first + 1; i < len(dirs); i++ {
		path := dirs[i] + "/" + name
		head, err := checkTarget(path, c)
		switch {
		case err == nil && (i > last || head != nil): // what can be read is no shim
			return path, head, nil
		case pathcheck.Exhausted(err):
			return "", nil, err
		case err == nil, errors.Is(err, errNotFound), errors.Is(err, errIsShim), errors.Is(err, unix.EACCES):
		default:
			found = err
		}
	}
	if found != nil {
		return "", nil, found
	}
	return "", nil, fmt.Errorf("no %q on PATH behind the shim: %w", name, errNotFound)
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
