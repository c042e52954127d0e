package target

import (
	"encoding/binary"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// Needs lists the files without which execve of a program fails: the file, the
// interpreters of its #! lines, and the loader of the last of them. Their paths may
// be relative.
func (p Program) Needs() []plan.Need {
	out := []plan.Need{{Role: "the program", Path: p.Path}}
	head := p.head
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
