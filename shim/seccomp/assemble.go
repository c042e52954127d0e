package seccomp

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (linux/seccomp.h). The architectures are
// little-endian: the low half of an argument stands first.
const (
	offNR   = 0
	offArch = 4
	offArgs = 16
)

// The instructions of which the filter is made (linux/bpf_common.h).
const (
	load    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	and     = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	give    = unix.BPF_RET | unix.BPF_K
	skip    = unix.BPF_JMP | unix.BPF_JA
	equal   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	bits    = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	atLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	above   = unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K
)

const (
	allow = unix.SECCOMP_RET_ALLOW
	deny  = unix.SECCOMP_RET_ERRNO
)

// An assembler writes a filter. A jump whose distance is not known yet is written
// first, and land says where it leads.
type assembler struct {
	code []unix.SockFilter
	mark uint32
	long bool
	// ioctls are the jumps to the rules for ioctl, which all entries share.
	ioctls []int
}

// put writes one instruction, and returns where it stands. A conditional jump goes on
// when its condition holds, and else skips.
func (a *assembler) put(code uint16, k uint32) int {
	a.code = append(a.code, unix.SockFilter{Code: code, K: k})
	return len(a.code) - 1
}

// land lets the jump at i skip to the next instruction.
func (a *assembler) land(i int) {
	n := len(a.code) - i - 1
	if a.code[i].Code == skip {
		a.code[i].K = uint32(n)
		return
	}
	a.code[i].Jf = uint8(n)
	a.long = a.long || n > 255
}

var errLong = errors.New("seccomp: the filter is longer than a jump")

// program assembles the filter. The entry for 32-bit programs has other numbers; where
// it makes sockets, by a call that has its arguments in memory, it gets ENOSYS
// altogether, like every entry that is not known, and x32.
func (c Config) program() ([]unix.SockFilter, error) {
	w := c.wants()
	a := &assembler{code: make([]unix.SockFilter, 0, 256), mark: c.Mark}
	a.put(load, offArch)
	a.code[a.put(equal, auditArch)].Jt = 1
	other := a.put(skip, 0)
	a.put(load, offNR)
	if x32Bit != 0 {
		x32 := a.put(bits, x32Bit)
		a.put(give, deny|uint32(unix.ENOSYS))
		a.land(x32)
	}
	a.calls(w, network, nil)
	a.entry(w, &native)

	a.land(other)
	if w&noRing == 0 {
		foreign := a.put(equal, auditArch32)
		a.put(load, offNR)
		a.entry(w, &numbers32)
		a.land(foreign)
	}
	a.put(give, deny|uint32(unix.ENOSYS))

	for _, i := range a.ioctls {
		a.land(i)
	}
	if !a.rules(w, ioctls) {
		a.put(give, allow)
	}
	if a.long {
		return nil, errLong
	}
	return a.code, nil
}

// entry writes the rules that every entry has, with the number of the system call loaded.
func (a *assembler) entry(w wants, n *numbers) {
	call := a.put(equal, uint32(n[ioctl]))
	a.ioctls = append(a.ioctls, a.put(skip, 0))
	a.land(call)
	a.calls(w, everywhere, n)
	a.put(give, allow)
}

// calls writes what is wanted of a list, call by call, with the number of the system
// call loaded, and keeps it.
func (a *assembler) calls(w wants, list []rule, n *numbers) {
	for len(list) > 0 {
		end := 1
		for end < len(list) && list[end].call == list[0].call {
			end++
		}
		nr := uint32(list[0].call)
		if n != nil {
			nr = uint32(n[nr])
		}
		call := a.put(equal, nr)
		if a.rules(w, list[:end]) {
			a.land(call)
		} else {
			a.code = a.code[:call]
		}
		list = list[end:]
	}
}

// rules writes what is wanted of the rules of one call. What none decides is allowed.
// It reports whether there were any.
func (a *assembler) rules(w wants, list []rule) bool {
	start := len(a.code)
	for i := range list {
		if w&list[i].wants != 0 {
			a.rule(&list[i])
		}
	}
	if len(a.code) == start {
		return false
	}
	a.put(give, allow)
	return true
}

// rule writes one rule: what fails skips to behind it.
func (a *assembler) rule(r *rule) {
	start := len(a.code)
	for _, t := range r.tests {
		code, value, off := uint16(equal), t.value, offArgs+8*uint32(t.arg)
		switch t.how {
		case nothing:
			continue
		case high:
			off += 4
		case has:
			code = bits
		case own:
			value = a.mark
		}
		a.put(load, off)
		if t.how == kind {
			a.put(and, 0xf)
		}
		a.put(code, value)
	}
	if r.spans != nil {
		a.put(load, offArgs+8)
		a.put(and, 0xffff)
		for _, s := range *r.spans {
			a.put(atLeast, s.low()) // below it are those before, which it is not
			a.put(above, s.high())
		}
		a.put(skip, 1)
	}
	for i := start; i < len(a.code); i++ {
		if a.code[i].Code == above {
			a.land(i)
		}
	}
	verdict := uint32(allow)
	if r.errno != 0 {
		verdict = deny | uint32(r.errno)
	}
	a.put(give, verdict)
	for i := start; i < len(a.code); i++ {
		if c := a.code[i].Code; c == equal || c == bits || c == atLeast {
			a.land(i)
		}
	}
}
