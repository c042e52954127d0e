package target

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// A Program is the real program of a launch.
type Program struct {
	// Path is what execve is given; it is relative where PATH has such an entry.
	Path string
	// Name is what messages call it, also before it is found.
	Name string
	// head is its first page, nil if it cannot be read.
	head []byte
}

// At is the program at an absolute path that somebody else has chosen.
func At(path, name string) Program {
	head, _ := readHead(path) // nil where it cannot be read, as in a launch
	return Program{Path: path, Name: name, head: head}
}

// Errors of [Find]; use errors.Is. All others mean that the program is there and
// cannot be executed, as a shell tells them apart.
var (
	ErrNotFound      = errors.New("the real program was not found")
	errNotExecutable = errors.New("not an executable file")
)

// A Question is what [Find] goes by.
type Question struct {
	Self   Self
	Record record.Record
	// Program is the policy's, absolute, or "".
	Program string
	// Argv and Env are those that the program would get.
	Argv, Env []string
}

// Find finds the real program: the one in the shim's record, else the policy's,
// else the next of its name on PATH behind the shim's own entry that is no shim.
// With an error, of the program only the name is known.
//
// So that every row of shims ends, none starts another that it can read. Those
// that cannot be read are only ever taken from a later entry of PATH than the one
// before, or from a record by a shim that can be read, which none of them starts
// again. What remains are scripts, see [follower].
func Find(q Question) (Program, error) {
	me := q.Self
	p := Program{Name: me.Name()}
	if me.err != nil {
		return p, fmt.Errorf("the shim's own file: %w", me.err)
	}
	f := follower{me: me, argv: q.Argv, env: q.Env}
	// A shim whose file is nowhere to be found (no /proc, started by execveat)
	// still has its record in memory, and follows it to what is surely no shim.
	if q.Record.Real != "" && (me.readable || !me.known && isForeignELF(q.Record.Real)) {
		p.Path, p.Name = q.Record.Real, base(q.Record.Real)
		if q.Record.InPlace {
			p.Name = me.Name()
		}
		var err error
		p.head, err = f.check(p.Path)
		if q.Record.InPlace && errors.Is(err, ErrNotFound) {
			// Uninstalled between the start of this launch and now: the
			// program has its name again.
			restored := strings.TrimSuffix(p.Path, record.InPlaceSuffix)
			if head, err := f.check(restored); err == nil {
				p.Path, p.head = restored, head
				return p, nil
			}
		}
		if !errors.Is(err, ErrIsShim) {
			return p, err
		}
		// A stale record: what stands there now is a shim. Look on PATH.
	}
	var err error
	switch {
	case q.Record.Real == "" && q.Program != "":
		// The policy is gone after this launch: the next one finds its
		// program without it, and nothing comes back here.
		p.Path, p.Name = q.Program, base(q.Program)
		p.head, err = checkFile(q.Program, me)
	case p.Name == "":
		err = fmt.Errorf("%w: nothing tells under which name this shim was started", ErrNotFound)
	default:
		p.Path, p.head, err = f.search(p.Name)
	}
	return p, err
}

var ErrIsShim = errors.New("is a shim itself")

// check says why the file at path cannot be the real program, or returns its first
// page, nil if that cannot be read.
func (f follower) check(path string) (head []byte, err error) {
	if head, err = checkFile(path, f.me); err != nil {
		return nil, err
	}
	if f.leadsBack(path, head) {
		return nil, fmt.Errorf("%q: its #! line leads back here: %w", path, ErrIsShim)
	}
	return head, nil
}

func checkFile(path string, me Self) (head []byte, err error) {
	if head, err = examine(path, me); err != nil {
		err = fmt.Errorf("%q: %w", path, err)
	}
	return head, err
}

func examine(path string, me Self) ([]byte, error) {
	id, err := fileID(path)
	if err == nil {
		err = unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS)
		if errors.Is(err, fs.ErrPermission) {
			return nil, errNotExecutable
		}
	}
	var head []byte
	if err == nil {
		head, err = readHead(path)
		switch {
		case me.known && id == me.ID || err == nil && record.IsShim(head):
			return nil, ErrIsShim
		case errors.Is(err, fs.ErrPermission):
			return nil, nil
		}
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil, ErrNotFound
	}
	return head, err
}

// search looks for name on the PATH of env as execvp(3) does, behind the
// entry by which this shim was reached.
func (f follower) search(name string) (path string, head []byte, err error) {
	dirs := PathDirs(f.env)
	first, last := -1, -1 // entries that lead to this very file
	for i, dir := range dirs {
		if id, err := fileID(dir + "/" + name); err == nil && f.me.known && id == f.me.ID {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	var found error
	for i := first + 1; i < len(dirs); i++ {
		path := dirs[i] + "/" + name
		head, err := f.check(path)
		switch {
		case err == nil && (i > last || head != nil): // what can be read is no shim
			return path, head, nil
		case pathcheck.Exhausted(err):
			return "", nil, err
		case err == nil, errors.Is(err, ErrNotFound), errors.Is(err, ErrIsShim), errors.Is(err, unix.EACCES):
		default:
			found = err
		}
	}
	if found != nil {
		return "", nil, found
	}
	return "", nil, fmt.Errorf("no %q on PATH behind the shim: %w", name, ErrNotFound)
}

// defaultPath is what execvp(3) searches when PATH is not set (_CS_PATH).
const defaultPath = "/bin:/usr/bin"

// PathDirs returns the entries of PATH; an empty one is the current directory.
func PathDirs(env []string) []string {
	value, ok := Getenv(env, "PATH")
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

// Getenv returns the first value of a variable, as getenv(3) does.
func Getenv(env []string, name string) (string, bool) {
	for _, s := range env {
		if v, ok := strings.CutPrefix(s, name+"="); ok {
			return v, true
		}
	}
	return "", false
}
