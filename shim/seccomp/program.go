package seccomp

import "golang.org/x/sys/unix"

// A Config says what the filter takes away.
type Config struct {
	// Sockets says which sockets can be made. All but AnySockets also forbid the
	// ioctls by which a device reaches a network.
	Sockets Sockets
	// NoUnixSockets forbids socket(AF_UNIX), and socketpair for datagrams;
	// other pairs stay.
	NoUnixSockets bool
	// NoTerminalInput forbids the ioctls that put input into a terminal.
	NoTerminalInput bool
	// NoKeyrings forbids the system calls on the kernel's keyrings, of which one
	// starts a program outside (request_key(2)).
	NoKeyrings bool
	// NoFileIoctls forbids the ioctls that reach beyond a descriptor's own file.
	NoFileIoctls bool
	// NoLimitsOfOthers forbids to set the resource limits of a process by its number,
	// and the priority of a process group or of a user.
	NoLimitsOfOthers bool
	// Mark, unless it is 0, answers [Marked], and [InForce] for this number.
	Mark uint32
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

// null compares all 64 bits of an argument that is a pointer.
func null(n uint32) []test { return []test{equals(n, 0), {arg(n) + 4, 0, unix.BPF_JEQ, 0}} }

// ofType compares the type of a socket, without SOCK_CLOEXEC and SOCK_NONBLOCK,
// which share its word.
func ofType(kind uint32) test          { return test{arg(1), 0xf, unix.BPF_JEQ, kind} }
func anyBits(n, bits uint32) test      { return test{arg(n), 0, unix.BPF_JSET, bits} }
func errnoVerdict(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

const allowVerdict = unix.SECCOMP_RET_ALLOW

// A rule gives its verdict for one system call when all its tests hold and, unless
// spans is nil, the second argument is an ioctl number among them. The first rule
// that does decides.
type rule struct {
	nr      uint32
	tests   []test
	spans   []span
	verdict uint32
}

// numbers are those of the system calls that every entry of the kernel has.
type numbers struct{ addKey, requestKey, keyctl, ioctl, prlimit, setpriority, ioprioSet uint32 }

var native = numbers{
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_IOCTL,
	unix.SYS_PRLIMIT64, unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET,
}

// everywhere are the rules for each entry of the kernel.
func (c Config) everywhere(n numbers) []rule {
	var out []rule
	add := func(verdict uint32, nr uint32, tests ...test) { out = append(out, rule{nr, tests, nil, verdict}) }
	deny := errnoVerdict(unix.EPERM)

	if c.NoTerminalInput {
		const tioclinux = 0x541c // paste into the console
		add(deny, n.ioctl, equals(1, unix.TIOCSTI))
		add(deny, n.ioctl, equals(1, tioclinux))
	}
	if c.NoFileIoctls {
		out = append(out, rule{nr: n.ioctl, spans: fileIoctls, verdict: deny})
	}
	if c.Sockets != AnySockets {
		out = append(out, rule{nr: n.ioctl, spans: networkIoctls, verdict: deny})
	}
	if c.NoKeyrings {
		for _, nr := range []uint32{n.addKey, n.requestKey, n.keyctl} {
			add(deny, nr)
		}
	}
	if c.NoLimitsOfOthers {
		// Without a number it is the caller's own limit, without a new one a question.
		add(allowVerdict, n.prlimit, equals(0, 0))
		add(allowVerdict, n.prlimit, null(2)...)
		add(deny, n.prlimit)
		add(deny, n.setpriority, equals(0, unix.PRIO_PGRP))
		add(deny, n.setpriority, equals(0, unix.PRIO_USER))
		add(deny, n.ioprioSet, equals(0, ioprioWhoPgrp))
		add(deny, n.ioprioSet, equals(0, ioprioWhoUser))
	}
	return out
}

// What ioprio_set(2) takes by (linux/ioprio.h).
const (
	ioprioWhoPgrp = 2
	ioprioWhoUser = 3
)

// only64 reports whether the filter refuses the entries for other programs
// altogether: there, sockets are made by a call that has its arguments in memory.
func (c Config) only64() bool { return c.Sockets != AnySockets || c.NoUnixSockets }

// rules is the policy of the filter for the entry of this architecture, in the order
// in which it is asked. Those of one system call stand together.
func (c Config) rules() []rule {
	var out []rule
	add := func(verdict uint32, nr uint32, tests ...test) { out = append(out, rule{nr, tests, nil, verdict}) }
	deny := errnoVerdict(unix.EACCES)

	if c.Mark != 0 {
		add(errnoVerdict(markAnswer), unix.SYS_PRCTL, equals(0, markQuestion))
		add(errnoVerdict(markAnswer), unix.SYS_PRCTL, equals(0, proofQuestion), equals(1, c.Mark))
	}
	if c.NoUnixSockets {
		add(deny, unix.SYS_SOCKET, equals(0, unix.AF_UNIX))
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
	}
	if c.NoUnixSockets {
		// A datagram socket of a pair can send to any address; SOCK_RAW is
		// another name of it (unix(7)).
		add(deny, unix.SYS_SOCKETPAIR, equals(0, unix.AF_UNIX), ofType(unix.SOCK_DGRAM))
		add(deny, unix.SYS_SOCKETPAIR, equals(0, unix.AF_UNIX), ofType(unix.SOCK_RAW))
	}
	if c.Sockets != AnySockets {
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
	if c.only64() {
		// A ring makes and connects sockets without the system calls above.
		for _, nr := range []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER} {
			add(errnoVerdict(unix.ENOSYS), nr)
		}
	}
	return append(out, c.everywhere(native)...)
}
