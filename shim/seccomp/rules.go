package seccomp

import "golang.org/x/sys/unix"

// A rule gives its verdict for one system call when all its tests hold. It is there
// when the filter wants all of what it is for.
type rule struct {
	wants wants
	call  uint16
	// errno is the verdict; 0 allows.
	errno unix.Errno
	tests [3]test
	// spans, unless it is nil, must have the second argument, an ioctl number.
	spans *[]span
}

// A test compares the low half of an argument. The arguments are 64 bits; what is
// compared is 32 bits wide in the kernel too, which ignores the high half.
type test struct {
	arg   uint8
	how   how
	value uint32
}

type how uint8

const (
	nothing how = iota
	is
	high // the same for the high half
	kind // of a socket, without SOCK_CLOEXEC and SOCK_NONBLOCK, which share its word
	has  // one of these bits
	own  // is the number of [Config.Mark]
)

// network are the rules for system calls that only the entry of this architecture is
// asked about: the entries for other programs are closed where they are wanted. The
// first rule that holds decides. Those of one system call stand together.
var network = []rule{
	{marked, unix.SYS_PRCTL, markAnswer, [3]test{{0, is, markQuestion}}, nil},
	{marked, unix.SYS_PRCTL, markAnswer, [3]test{{0, is, proofQuestion}, {1, own, 0}}, nil},

	{noUnix, unix.SYS_SOCKET, unix.EACCES, [3]test{{0, is, unix.AF_UNIX}}, nil},
	{noNetwork, unix.SYS_SOCKET, 0, [3]test{{0, is, unix.AF_UNIX}}, nil},
	{noNetwork, unix.SYS_SOCKET, 0, [3]test{{0, is, unix.AF_NETLINK}, {2, is, unix.NETLINK_ROUTE}}, nil},
	{ports, unix.SYS_SOCKET, 0, [3]test{{0, is, unix.AF_INET}, {1, kind, unix.SOCK_STREAM}, {2, is, 0}}, nil},
	{ports, unix.SYS_SOCKET, 0, [3]test{{0, is, unix.AF_INET}, {1, kind, unix.SOCK_STREAM}, {2, is, unix.IPPROTO_TCP}}, nil},
	{ports, unix.SYS_SOCKET, 0, [3]test{{0, is, unix.AF_INET6}, {1, kind, unix.SOCK_STREAM}, {2, is, 0}}, nil},
	{ports, unix.SYS_SOCKET, 0, [3]test{{0, is, unix.AF_INET6}, {1, kind, unix.SOCK_STREAM}, {2, is, unix.IPPROTO_TCP}}, nil},
	{udp, unix.SYS_SOCKET, 0, [3]test{{0, is, unix.AF_INET}, {1, kind, unix.SOCK_DGRAM}, {2, is, 0}}, nil},
	{udp, unix.SYS_SOCKET, 0, [3]test{{0, is, unix.AF_INET}, {1, kind, unix.SOCK_DGRAM}, {2, is, unix.IPPROTO_UDP}}, nil},
	{udp, unix.SYS_SOCKET, 0, [3]test{{0, is, unix.AF_INET6}, {1, kind, unix.SOCK_DGRAM}, {2, is, 0}}, nil},
	{udp, unix.SYS_SOCKET, 0, [3]test{{0, is, unix.AF_INET6}, {1, kind, unix.SOCK_DGRAM}, {2, is, unix.IPPROTO_UDP}}, nil},
	{noNetwork, unix.SYS_SOCKET, unix.EACCES, [3]test{}, nil},

	// A datagram socket of a pair can send to any address; SOCK_RAW is another name
	// of it (unix(7)). AF_TIPC has pairs, too, and they can.
	{noUnix, unix.SYS_SOCKETPAIR, unix.EACCES, [3]test{{0, is, unix.AF_UNIX}, {1, kind, unix.SOCK_DGRAM}}, nil},
	{noUnix, unix.SYS_SOCKETPAIR, unix.EACCES, [3]test{{0, is, unix.AF_UNIX}, {1, kind, unix.SOCK_RAW}}, nil},
	{noNetwork, unix.SYS_SOCKETPAIR, 0, [3]test{{0, is, unix.AF_UNIX}}, nil},
	{noNetwork, unix.SYS_SOCKETPAIR, unix.EACCES, [3]test{}, nil},

	// Fast open connects within send, where Landlock does not look.
	{ports, unix.SYS_SENDTO, unix.EACCES, [3]test{{3, has, unix.MSG_FASTOPEN}}, nil},
	{ports, unix.SYS_SENDMSG, unix.EACCES, [3]test{{2, has, unix.MSG_FASTOPEN}}, nil},
	{ports, unix.SYS_SENDMMSG, unix.EACCES, [3]test{{3, has, unix.MSG_FASTOPEN}}, nil},
	// The protocol "smc" would make another socket of a TCP one.
	{ports, unix.SYS_SETSOCKOPT, unix.EACCES, [3]test{{1, is, unix.IPPROTO_TCP}, {2, is, unix.TCP_ULP}}, nil},

	// A ring makes and connects sockets without the system calls above.
	{noRing, unix.SYS_IO_URING_SETUP, unix.ENOSYS, [3]test{}, nil},
	{noRing, unix.SYS_IO_URING_ENTER, unix.ENOSYS, [3]test{}, nil},
	{noRing, unix.SYS_IO_URING_REGISTER, unix.ENOSYS, [3]test{}, nil},
}

// ioctls are the rules for ioctl, whose numbers are the same everywhere.
var ioctls = []rule{
	{noInput, ioctl, unix.EPERM, [3]test{{1, is, unix.TIOCSTI}}, nil},
	{noInput, ioctl, unix.EPERM, [3]test{{1, is, tioclinux}}, nil},
	{noFiles, ioctl, unix.EPERM, [3]test{}, &fileIoctls},
	{noNetwork, ioctl, unix.EPERM, [3]test{}, &networkIoctls},
}

// everywhere are the other rules for each entry; call is an index of its numbers.
var everywhere = []rule{
	{noKeyrings, addKey, unix.EPERM, [3]test{}, nil},
	{noKeyrings, requestKey, unix.EPERM, [3]test{}, nil},
	{noKeyrings, keyctl, unix.EPERM, [3]test{}, nil},

	// Without a number it is the caller's own limit, without a new one a question.
	{noLimits, prlimit, 0, [3]test{{0, is, 0}}, nil},
	{noLimits, prlimit, 0, [3]test{{2, is, 0}, {2, high, 0}}, nil},
	{noLimits, prlimit, unix.EPERM, [3]test{}, nil},
	{noLimits, setpriority, unix.EPERM, [3]test{{0, is, unix.PRIO_PGRP}}, nil},
	{noLimits, setpriority, unix.EPERM, [3]test{{0, is, unix.PRIO_USER}}, nil},
	{noLimits, ioprioSet, unix.EPERM, [3]test{{0, is, ioprioWhoPgrp}}, nil},
	{noLimits, ioprioSet, unix.EPERM, [3]test{{0, is, ioprioWhoUser}}, nil},
}

const (
	tioclinux = 0x541c // paste into the console
	// What ioprio_set(2) takes by (linux/ioprio.h).
	ioprioWhoPgrp = 2
	ioprioWhoUser = 3
)

// The system calls of everywhere.
const (
	addKey = iota
	requestKey
	keyctl
	ioctl
	prlimit
	setpriority
	ioprioSet
	calls
)

type numbers [calls]uint16

var native = numbers{
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_IOCTL,
	unix.SYS_PRLIMIT64, unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET,
}
