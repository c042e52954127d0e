package seccomp

import (
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// A Config says what the filter takes away.
type Config struct {
	// Sockets says which sockets can be made.
	Sockets Sockets
	// NoUnixSockets forbids socket(AF_UNIX); socketpair stays.
	NoUnixSockets bool
	// NoTerminalInput forbids the ioctls that put input into a terminal.
	NoTerminalInput bool
	// Mark answers [Mark] for [Marked].
	Mark bool
}

// Sockets says which address families a process can make sockets of. In all
// but AnySockets, AF_UNIX and the route protocol of AF_NETLINK stay: Node,
// asyncio, cargo and name lookups of "localhost" need them.
type Sockets uint8

const (
	// AnySockets leaves sockets alone.
	AnySockets Sockets = iota
	// LocalSockets forbids all that reach a network.
	LocalSockets
	// TCPSockets also allows TCP, whose ports Landlock checks.
	TCPSockets
	// TCPAndUDPSockets also allows UDP.
	TCPAndUDPSockets
)

// Empty reports whether there is nothing to filter.
func (c Config) Empty() bool { return c == Config{} }

// Offsets in struct seccomp_data (linux/seccomp.h). Arguments are 64 bits;
// what is compared here is 32 bits wide in the kernel too, so the low half
// counts and the high half is ignored, as the kernel ignores it.
const (
	offNR   = 0
	offArch = 4
	offArgs = 16
)

func arg(n uint32) uint32 { return offArgs + 8*n } // little-endian: the low half stands first

// A test compares one word of seccomp_data.
type test struct {
	off   uint32
	mask  uint32 // 0 means all bits
	cond  bpf.JumpTest
	value uint32
}

func equals(n, value uint32) test       { return test{off: arg(n), cond: bpf.JumpEqual, value: value} }
func masked(n, mask, value uint32) test { return test{arg(n), mask, bpf.JumpEqual, value} }
func anyBits(n, bits uint32) test       { return test{off: arg(n), cond: bpf.JumpBitsSet, value: bits} }
func errnoVerdict(e unix.Errno) uint32  { return unix.SECCOMP_RET_ERRNO | uint32(e) }

const allowVerdict = unix.SECCOMP_RET_ALLOW

// A rule gives its verdict for one system call when all its tests hold; the
// first rule that does decides.
type rule struct {
	nr      uint32
	tests   []test
	verdict uint32
}

// rules is the policy of the filter, in the order in which it is asked.
func (c Config) rules() []rule {
	var out []rule
	add := func(verdict uint32, nr uint32, tests ...test) { out = append(out, rule{nr, tests, verdict}) }
	deny := errnoVerdict(unix.EACCES)

	if c.Mark {
		add(errnoVerdict(markAnswer), unix.SYS_PRCTL, equals(0, markQuestion))
	}
	if c.NoUnixSockets {
		add(deny, unix.SYS_SOCKET, equals(0, unix.AF_UNIX))
	}
	if c.Sockets != AnySockets {
		add(allowVerdict, unix.SYS_SOCKET, equals(0, unix.AF_UNIX))
		add(allowVerdict, unix.SYS_SOCKET, equals(0, unix.AF_NETLINK), equals(2, unix.NETLINK_ROUTE))
		for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
			// The type shares its word with SOCK_CLOEXEC and SOCK_NONBLOCK.
			const typeMask = 0xf
			if c.Sockets >= TCPSockets {
				add(allowVerdict, unix.SYS_SOCKET, equals(0, family), masked(1, typeMask, unix.SOCK_STREAM), equals(2, 0))
				add(allowVerdict, unix.SYS_SOCKET, equals(0, family), masked(1, typeMask, unix.SOCK_STREAM), equals(2, unix.IPPROTO_TCP))
			}
			if c.Sockets >= TCPAndUDPSockets {
				add(allowVerdict, unix.SYS_SOCKET, equals(0, family), masked(1, typeMask, unix.SOCK_DGRAM), equals(2, 0))
				add(allowVerdict, unix.SYS_SOCKET, equals(0, family), masked(1, typeMask, unix.SOCK_DGRAM), equals(2, unix.IPPROTO_UDP))
			}
		}
		add(deny, unix.SYS_SOCKET)
	}
	if c.Sockets == TCPSockets || c.Sockets == TCPAndUDPSockets {
		// Fast open connects within send, where Landlock does not look.
		add(deny, unix.SYS_SENDTO, anyBits(3, unix.MSG_FASTOPEN))
		add(deny, unix.SYS_SENDMSG, anyBits(2, unix.MSG_FASTOPEN))
		add(deny, unix.SYS_SENDMMSG, anyBits(3, unix.MSG_FASTOPEN))
	}
	if c.Sockets != AnySockets || c.NoUnixSockets {
		// A ring makes and connects sockets without the system calls above.
		for _, nr := range []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER} {
			add(errnoVerdict(unix.ENOSYS), nr)
		}
	}
	if c.NoTerminalInput {
		const tioclinux = 0x541c // paste into the console
		add(errnoVerdict(unix.EPERM), unix.SYS_IOCTL, equals(1, unix.TIOCSTI))
		add(errnoVerdict(unix.EPERM), unix.SYS_IOCTL, equals(1, tioclinux))
	}
	return out
}

// program assembles the filter. What another entry of the kernel would run
// under other numbers (32-bit programs, x32) gets ENOSYS altogether.
func (c Config) program() ([]bpf.Instruction, error) {
	foreign := bpf.RetConstant{Val: errnoVerdict(unix.ENOSYS)}
	out := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		foreign,
		bpf.LoadAbsolute{Off: offNR, Size: 4},
	}
	if x32Bit != 0 {
		out = append(out, bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32Bit, SkipTrue: 1}, foreign)
	}
	for _, r := range c.rules() {
		block, err := r.block()
		if err != nil {
			return nil, err
		}
		out = append(out, block...)
	}
	return append(out, bpf.RetConstant{Val: allowVerdict}), nil
}

// block is one rule: each test that fails skips to behind it.
func (r rule) block() ([]bpf.Instruction, error) {
	tests := append([]test{{off: offNR, cond: bpf.JumpEqual, value: r.nr}}, r.tests...)
	length := 1
	for _, t := range tests {
		length += t.length()
	}
	var out []bpf.Instruction
	for _, t := range tests {
		out = append(out, bpf.LoadAbsolute{Off: t.off, Size: 4})
		if t.mask != 0 {
			out = append(out, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: t.mask})
		}
		rest := length - len(out) - 1
		if rest > 255 {
			return nil, fmt.Errorf("seccomp: a rule of %d instructions", length)
		}
		out = append(out, bpf.JumpIf{Cond: t.cond, Val: t.value, SkipFalse: uint8(rest)})
	}
	return append(out, bpf.RetConstant{Val: r.verdict}), nil
}

func (t test) length() int {
	if t.mask != 0 {
		return 3
	}
	return 2
}
