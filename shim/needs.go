package shim

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// facts gathers what the compiler must know of this launch.
func facts(env []string, t target, mounts pathcheck.Mounts, p *rules.Policy) plan.Launch {
	l := plan.Launch{EUID: powerOf(), Mounts: mounts, Needed: needs(t)}
	if cwd, err := unix.Getwd(); err == nil && len(cwd) > 0 && cwd[0] == '/' {
		l.Cwd = cwd
	}
	// PATH and #! lines may have relative ones.
	for i, n := range l.Needed {
		l.Needed[i].Path = absolute(l.Cwd, n.Path)
	}
	l.Needed = slices.DeleteFunc(l.Needed, func(n plan.Need) bool { return n.Path == "" })
	l.TempDir = "/tmp"
	if dir, ok := getenv(env, "TMPDIR"); ok && dir != "" {
		l.TempDir = absolute(l.Cwd, dir)
	}
	// What stands in for directories that cannot be listed.
	for _, dir := range pathDirs(env) {
		l.Names = append(l.Names, absolute(l.Cwd, dir))
	}
	if home, ok := getenv(env, "HOME"); ok && home != "" {
		l.Names = append(l.Names, absolute(l.Cwd, home))
	}
	l.Names = append(l.Names, l.Cwd, l.TempDir)
	for _, list := range [][]rules.Entry{p.Hidden, p.Exposed, p.Precreate} {
		for _, e := range list {
			l.Names = append(l.Names, e.Path)
		}
	}
	for i := 0; i < len(l.Names); {
		if l.Names[i] == "" {
			l.Names = append(l.Names[:i], l.Names[i+1:]...)
			continue
		}
		i++
	}
	return l
}

// powerOf returns the effective user id, or 0 when the process holds
// capabilities: with SETUID it can become root, and with DAC_OVERRIDE it need
// not, to write what only root may.
func powerOf() int {
	if c, err := readCapabilities(); err != nil || c.permitted != 0 {
		return 0
	}
	return unix.Geteuid()
}

// absolute puts a relative path behind cwd; "" if cwd is not known.
func absolute(cwd, path string) string {
	switch {
	case len(path) > 0 && path[0] == '/':
		return path
	case cwd == "":
		return ""
	default:
		return pathcheck.Join(cwd, path)
	}
}

// needs lists the files without which execve of a program fails: the file, the
// interpreters of its #! lines, and the loader of the last of them.
func needs(t target) []plan.Need {
	out := []plan.Need{{Role: "the program", Path: t.path}}
	head := t.head
	for range maxInterpreters {
		if head == nil {
			return out
		}
		next, _, ok := interpreter(head)
		if !ok {
			if loader := elfInterpreter(head); loader != "" {
				out = append(out, plan.Need{Role: "the program's loader", Path: loader})
			}
			return out
		}
		out = append(out, plan.Need{Role: "the program's interpreter", Path: next})
		var err error
		if head, err = readHead(next); err != nil {
			head = nil
		}
	}
	return out
}

// elfInterpreter returns the path in the PT_INTERP header of an ELF file whose
// first page is head, or "" (elf(5)). Both classes and byte orders are read,
// since the kernel may run foreign programs.
func elfInterpreter(head []byte) string {
	if len(head) < 64 || string(head[:4]) != "\x7fELF" {
		return ""
	}
	var order binary.ByteOrder = binary.LittleEndian
	if head[5] == 2 {
		order = binary.BigEndian
	}
	const ptInterp = 3
	class64 := head[4] == 2
	var off, size, count uint64
	if class64 {
		off, size, count = order.Uint64(head[32:]), uint64(order.Uint16(head[54:])), uint64(order.Uint16(head[56:]))
	} else {
		off, size, count = uint64(order.Uint32(head[28:])), uint64(order.Uint16(head[42:])), uint64(order.Uint16(head[44:]))
	}
	for i := range count {
		at := off + i*size
		if size < 32 || at > uint64(len(head)) || at+size > uint64(len(head)) {
			return ""
		}
		ph := head[at : at+size]
		if order.Uint32(ph) != ptInterp {
			continue
		}
		var from, length uint64
		if class64 && size >= 56 {
			from, length = order.Uint64(ph[8:]), order.Uint64(ph[32:])
		} else {
			from, length = uint64(order.Uint32(ph[4:])), uint64(order.Uint32(ph[16:]))
		}
		if length < 2 || from > uint64(len(head)) || length > uint64(len(head))-from {
			return ""
		}
		return string(head[from : from+length-1])
	}
	return ""
}
