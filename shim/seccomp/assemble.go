package seccomp

import (
	"errors"

	"golang.org/x/sys/unix"
)

// The instructions of which the filter is made (linux/bpf_common.h). A jump counts
// the instructions that it skips.
func load(off uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off}
}

func and(mask uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask}
}

func jump(op uint16, value uint32, skipTrue, skipFalse int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: uint8(skipTrue), Jf: uint8(skipFalse), K: value}
}

func skip(n int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(n)}
}

func give(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}

// maxSkip is how far a conditional jump reaches.
const maxSkip = 255

var errLong = errors.New("seccomp: the filter is longer than a jump")

// program assembles the filter. The entry for 32-bit programs has other numbers; with
// only64 it gets ENOSYS altogether, like every entry that is not known, and x32.
func (c Config) program() ([]unix.SockFilter, error) {
	foreign := give(errnoVerdict(unix.ENOSYS))
	var other []unix.SockFilter
	if !c.only64() {
		calls, err := assemble(c.everywhere(numbers32))
		if err != nil {
			return nil, err
		}
		other = append(other, jump(unix.BPF_JEQ, auditArch32, 0, 1+len(calls)), load(offNR))
		other = append(other, calls...)
	}
	other = append(other, foreign)
	if len(other) > maxSkip {
		return nil, errLong
	}
	out := append([]unix.SockFilter{load(offArch), jump(unix.BPF_JEQ, auditArch, len(other), 0)}, other...)

	out = append(out, load(offNR))
	if x32Bit != 0 {
		out = append(out, jump(unix.BPF_JSET, x32Bit, 0, 1), foreign)
	}
	calls, err := assemble(c.rules())
	return append(out, calls...), err
}

// assemble is the rules, with the number of the system call loaded: those of other
// calls are skipped, and what no rule decides is allowed.
func assemble(rules []rule) ([]unix.SockFilter, error) {
	var out []unix.SockFilter
	for len(rules) > 0 {
		nr := rules[0].nr
		var calls []unix.SockFilter
		for len(rules) > 0 && rules[0].nr == nr {
			calls = append(calls, rules[0].block()...)
			rules = rules[1:]
		}
		calls = append(calls, give(allowVerdict))
		if len(calls) > maxSkip {
			return nil, errLong
		}
		out = append(append(out, jump(unix.BPF_JEQ, nr, 0, len(calls))), calls...)
	}
	return append(out, give(allowVerdict)), nil
}

// block is one rule: each test that fails skips to behind it.
func (r rule) block() []unix.SockFilter {
	last := []unix.SockFilter{give(r.verdict)}
	if r.spans != nil {
		last = append(search(r.spans), last...)
	}
	length := len(last)
	for _, t := range r.tests {
		length += t.length()
	}
	var out []unix.SockFilter
	for _, t := range r.tests {
		out = append(out, load(t.off))
		if t.mask != 0 {
			out = append(out, and(t.mask))
		}
		out = append(out, jump(t.jump, t.value, 0, length-len(out)-1))
	}
	return append(out, last...)
}

// search goes on when the ioctl number is in one of the spans, which are sorted, and
// else skips one instruction.
func search(spans []span) []unix.SockFilter {
	length := 1
	for _, s := range spans {
		length += s.length()
	}
	// Most ioctls are those of terminals, and below all of a file system's.
	out := []unix.SockFilter{load(arg(1)), and(0xffff), jump(unix.BPF_JGE, spans[0].low(), 0, length-1)}
	for _, s := range spans {
		length -= s.length()
		if s.first == s.last {
			out = append(out, jump(unix.BPF_JEQ, s.low(), length, 0))
		} else {
			out = append(out, jump(unix.BPF_JGE, s.low(), 0, 1), jump(unix.BPF_JGT, s.high(), 0, length))
		}
	}
	return append(out, skip(1))
}

func (s span) length() int {
	if s.first == s.last {
		return 1
	}
	return 2
}

func (t test) length() int {
	if t.mask != 0 {
		return 3
	}
	return 2
}
