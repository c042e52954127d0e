package seccomp

import (
	"errors"

	"golang.org/x/sys/unix"
)

// A Config says what the filter takes away.
type Config struct {
	// Sockets says which sockets can be made.
	Sockets Sockets
	// NoUnixSockets forbids socket(AF_UNIX), and socketpair for datagrams;
	// other pairs stay.
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
	jump  uint16 // unix.BPF_JEQ or unix.BPF_JSET
	value uint32
}

func equals(n, value uint32) test { return test{arg(n), 0, unix.BPF_JEQ, value} }

// ofType compares the type of a socket, without SOCK_CLOEXEC and SOCK_NONBLOCK,
// which share its word.
func ofType(kind uint32) test          { return test{arg(1), 0xf, unix.BPF_JEQ, kind} }
func anyBits(n, bits uint32) test      { return test{arg(n), 0, unix.BPF_JSET, bits} }
func errnoVerdict(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

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
		// A datagram socket of a pair can send to any address; SOCK_RAW is
		// another name of it (unix(7)).
		add(deny, unix.SYS_SOCKETPAIR, equals(0, unix.AF_UNIX), ofType(unix.SOCK_DGRAM))
		add(deny, unix.SYS_SOCKETPAIR, equals(0, unix.AF_UNIX), ofType(unix.SOCK_RAW))
	}
	if c.Sockets != AnySockets {
		add(allowVerdict, unix.SYS_SOCKET, equals(0, unix.AF_UNIX))
		add(allowVerdict, unix.SYS_SOCKET, equals(0, unix.AF_NETLINK), equals(2, unix.NETLINK_ROUTE))
		for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
			if c.Sockets >= TCPSockets {
				add(allowVerdict, unix.SYS_SOCKET, equals(0, family), ofType(unix.SOCK_STREAM), equals(2, 0))
				add(allowVerdict, unix.SYS_SOCKET, equals(0, family), ofType(unix.SOCK_STREAM), equals(2, unix.IPPROTO_TCP))
			}
			if c.Sockets >= TCPAndUDPSockets {
				add(allowVerdict, unix.SYS_SOCKET, equals(0, family), ofType(unix.SOCK_DGRAM), equals(2, 0))
				add(allowVerdict, unix.SYS_SOCKET, equals(0, family), ofType(unix.SOCK_DGRAM), equals(2, unix.IPPROTO_UDP))
			}
		}
		add(deny, unix.SYS_SOCKET)
		// AF_TIPC has pairs, too, and they can send to any address.
		add(allowVerdict, unix.SYS_SOCKETPAIR, equals(0, unix.AF_UNIX))
		add(deny, unix.SYS_SOCKETPAIR)
	}
	if c.Sockets == TCPSockets || c.Sockets == TCPAndUDPSockets {
		// Fast open connects within send, where Landlock does not look.
		add(deny, unix.SYS_SENDTO, anyBits(3, unix.MSG_FASTOPEN))
		add(deny, unix.SYS_SENDMSG, anyBits(2, unix.MSG_FASTOPEN))
		add(deny, unix.SYS_SENDMMSG, anyBits(3, unix.MSG_FASTOPEN))
		// The protocol "smc" would make another socket of a TCP one.
		add(deny, unix.SYS_SETSOCKOPT, equals(1, unix.IPPROTO_TCP), equals(2, unix.TCP_ULP))
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

// The four instructions of which the filter is made (linux/bpf_common.h). A
// jump counts the instructions that it skips.
func load(off uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off}
}

func and(mask uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask}
}

func jump(op uint16, value uint32, skipTrue, skipFalse uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: skipTrue, Jf: skipFalse, K: value}
}

func give(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}

// program assembles the filter. What another entry of the kernel would run
// under other numbers (32-bit programs, x32) gets ENOSYS altogether.
func (c Config) program() ([]unix.SockFilter, error) {
	foreign := give(errnoVerdict(unix.ENOSYS))
	out := []unix.SockFilter{
		load(offArch),
		jump(unix.BPF_JEQ, auditArch, 1, 0),
		foreign,
	}
	if x32Bit != 0 {
		out = append(out, load(offNR), jump(unix.BPF_JSET, x32Bit, 0, 1), foreign)
	}
	for _, r := range c.rules() {
		block, err := r.block()
		if err != nil {
			return nil, err
		}
		out = append(out, block...)
	}
	return append(out, give(allowVerdict)), nil
}

var errLongRule = errors.New("seccomp: a rule is longer than a jump")

// block is one rule: each test that fails skips to behind it.
func (r rule) block() ([]unix.SockFilter, error) {
	tests := append([]test{{offNR, 0, unix.BPF_JEQ, r.nr}}, r.tests...)
	length := 1
	for _, t := range tests {
		length += t.length()
	}
	if length > 256 {
		return nil, errLongRule
	}
	var out []unix.SockFilter
	for _, t := range tests {
		out = append(out, load(t.off))
		if t.mask != 0 {
			out = append(out, and(t.mask))
		}
		out = append(out, jump(t.jump, t.value, 0, uint8(length-len(out)-1)))
	}
	return append(out, give(r.verdict)), nil
}

func (t test) length() int {
	if t.mask != 0 {
		return 3
	}
	return 2
}
