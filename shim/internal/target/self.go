package target

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// Self is this shim's own file.
type Self struct {
	// ID is its identity; known is false when nothing led to the file.
	ID    pathcheck.ID
	known bool
	// readable is false when the file cannot be opened for reading, so that
	// no other shim could tell that it is one.
	readable bool
	// Path is where the file stands, as far as it can be told; it may be relative.
	Path string
	// Invoked is the name under which the shim was started, with its
	// directory if the caller gave one; "" when nothing tells.
	Invoked string
	// err is set when descriptors or memory ran out: what was found then may not
	// be relied on, and [Find] fails.
	err error
}

func (me *Self) note(err error) {
	if pathcheck.Exhausted(err) {
		me.err = err
	}
}

// Name is the last component of Invoked.
func (me *Self) Name() string { return base(me.Invoked) }

// FindSelf looks for the shim's own file: by /proc/self/exe, and where /proc is
// not mounted by execFn, the path that execve was given, or the caller's argv[0].
func FindSelf(execFn string, argv []string) Self {
	var me Self
	places := []string{"/proc/self/exe", execFn}
	if len(argv) > 0 && strings.Contains(argv[0], "/") {
		places = append(places, argv[0])
	}
	for _, path := range places {
		id, err := fileID(path)
		if me.note(err); err != nil {
			continue
		}
		if path != "/proc/self/exe" {
			head, err := readHead(path)
			if me.note(err); err == nil && !record.IsShim(head) {
				continue
			}
		}
		me.ID, me.known, me.Path = id, true, path
		err = unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK, unix.AT_EACCESS)
		me.note(err)
		me.readable = err == nil
		break
	}
	text, err := readlink("/proc/self/exe")
	if me.note(err); strings.HasPrefix(text, "/") {
		me.Path = text
	}
	me.Invoked = me.invokedAs(execFn, argv)
	return me
}

// invokedAs finds the name under which this launch was asked for. The path that
// execve was given counts first, if it is this file and not a way
// around names (fexecve gives /dev/fd/N); after a #! line it is the script.
func (me *Self) invokedAs(execFn string, argv []string) string {
	candidates := []string{execFn}
	if len(argv) > 0 {
		candidates = append(candidates, argv[0])
	}
	for _, c := range candidates {
		if c == "" || strings.HasPrefix(c, "/dev/fd/") || strings.HasPrefix(c, "/proc/") {
			continue
		}
		id, err := fileID(c)
		if me.note(err); err == nil && me.known && id == me.ID {
			return c
		}
	}
	if !strings.HasPrefix(me.Path, "/proc/") {
		return strings.TrimSuffix(me.Path, " (deleted)")
	}
	return ""
}
