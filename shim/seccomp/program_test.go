package seccomp

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// A call is one system call as a filter sees it.
type call struct {
	arch, nr uint32
	args     [6]uint64
}

// run interprets the filter of c, and machineOf does for many calls, with the machine of another package. That
// machine reads words most significant byte first, and the kernel as the
// processor does, so the words are put down the other way round.
func run(t *testing.T, c Config, in call) uint32 {
	t.Helper()
	return machineOf(t, c)(in)
}

func machineOf(t *testing.T, c Config) func(call) uint32 {
	t.Helper()
	program, err := c.program()
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]bpf.RawInstruction, len(program))
	for i, ins := range program {
		raw[i] = bpf.RawInstruction{Op: ins.Code, Jt: ins.Jt, Jf: ins.Jf, K: ins.K}
	}
	instructions, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("an instruction that is none")
	}
	vm, err := bpf.NewVM(instructions)
	if err != nil {
		t.Fatal(err)
	}
	return func(in call) uint32 {
		words := []uint32{in.nr, in.arch, 0, 0}
		for _, a := range in.args {
			words = append(words, uint32(a), uint32(a>>32))
		}
		data := make([]byte, 0, 64)
		for _, w := range words {
			data = binary.BigEndian.AppendUint32(data, w)
		}
		verdict, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(verdict)
	}
}

func args(list ...uint64) (a [6]uint64) {
	copy(a[:], list)
	return a
}

// What is compared is 32 bits wide; the kernel ignores what stands above, and
// so must the filter.
const dirt = 0xdeadbeef_00000000

func TestProgram(t *testing.T) {
	const (
		allow  = unix.SECCOMP_RET_ALLOW
		eacces = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
		eperm  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		enosys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
		mark   = unix.SECCOMP_RET_ERRNO | 3999

		cloexec  = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
		stream   = unix.SOCK_STREAM
		dgram    = unix.SOCK_DGRAM
		raw      = unix.SOCK_RAW
		mptcp    = 262
		fastopen = unix.MSG_FASTOPEN
		quiet    = unix.MSG_NOSIGNAL
	)
	configs := []Config{
		{Sockets: LocalSockets},
		{Sockets: TCPSockets},
		{Sockets: TCPAndUDPSockets},
		{NoUnixSockets: true},
		{NoTerminalInput: true},
		{Mark: 7},
		{Sockets: LocalSockets, NoUnixSockets: true, NoTerminalInput: true, Mark: 7},
	}
	type verdicts [7]uint32 // by config
	all := func(v uint32) verdicts { return verdicts{v, v, v, v, v, v, v} }
	// What only an open network leaves.
	network := verdicts{eacces, eacces, eacces, allow, allow, allow, eacces}
	tcp := verdicts{eacces, allow, allow, allow, allow, allow, eacces}
	udp := verdicts{eacces, eacces, allow, allow, allow, allow, eacces}
	unixSocket := verdicts{allow, allow, allow, eacces, allow, allow, eacces}
	ring := verdicts{enosys, enosys, enosys, enosys, allow, allow, enosys}
	sendFast := verdicts{allow, eacces, eacces, allow, allow, allow, allow}
	terminal := verdicts{allow, allow, allow, allow, eperm, allow, eperm}

	for _, row := range []struct {
		name string
		nr   uint32
		args [6]uint64
		want verdicts
	}{
		{"read", unix.SYS_READ, args(0), all(allow)},
		{"unix stream", unix.SYS_SOCKET, args(unix.AF_UNIX, stream|cloexec), unixSocket},
		{"unix dgram, dirty", unix.SYS_SOCKET, args(dirt|unix.AF_UNIX, dirt|dgram), unixSocket},
		{"unix pair", unix.SYS_SOCKETPAIR, args(unix.AF_UNIX, stream|cloexec), all(allow)},
		{"unix seqpacket pair", unix.SYS_SOCKETPAIR, args(unix.AF_UNIX, unix.SOCK_SEQPACKET), all(allow)},
		{"unix dgram pair", unix.SYS_SOCKETPAIR, args(dirt|unix.AF_UNIX, dirt|dgram|cloexec), unixSocket},
		{"unix raw pair", unix.SYS_SOCKETPAIR, args(unix.AF_UNIX, raw), unixSocket},
		{"TIPC pair", unix.SYS_SOCKETPAIR, args(unix.AF_TIPC, dgram), network},
		{"route netlink", unix.SYS_SOCKET, args(unix.AF_NETLINK, raw|cloexec, dirt), all(allow)},
		{"netfilter netlink", unix.SYS_SOCKET, args(unix.AF_NETLINK, raw, unix.NETLINK_NETFILTER), network},
		{"sock_diag netlink", unix.SYS_SOCKET, args(unix.AF_NETLINK, raw, unix.NETLINK_SOCK_DIAG), network},
		{"TCP", unix.SYS_SOCKET, args(unix.AF_INET, stream), tcp},
		{"TCP, dirty", unix.SYS_SOCKET, args(dirt|unix.AF_INET, dirt|stream, dirt), tcp},
		{"TCP by number, v6", unix.SYS_SOCKET, args(unix.AF_INET6, stream|cloexec, unix.IPPROTO_TCP), tcp},
		{"MPTCP", unix.SYS_SOCKET, args(unix.AF_INET, stream, mptcp), network},
		{"MPTCP, v6", unix.SYS_SOCKET, args(unix.AF_INET6, stream, mptcp), network},
		{"SCTP stream", unix.SYS_SOCKET, args(unix.AF_INET, stream, unix.IPPROTO_SCTP), network},
		{"SCTP seqpacket", unix.SYS_SOCKET, args(unix.AF_INET, unix.SOCK_SEQPACKET, 0), network},
		{"DCCP", unix.SYS_SOCKET, args(unix.AF_INET, unix.SOCK_DCCP, 0), network},
		{"UDP", unix.SYS_SOCKET, args(unix.AF_INET, dgram|cloexec), udp},
		{"UDP by number, v6", unix.SYS_SOCKET, args(unix.AF_INET6, dgram, unix.IPPROTO_UDP), udp},
		{"UDP-Lite", unix.SYS_SOCKET, args(unix.AF_INET, dgram, unix.IPPROTO_UDPLITE), network},
		{"ICMP", unix.SYS_SOCKET, args(unix.AF_INET, dgram, unix.IPPROTO_ICMP), network},
		{"ICMPv6", unix.SYS_SOCKET, args(unix.AF_INET6, dgram, unix.IPPROTO_ICMPV6), network},
		{"raw", unix.SYS_SOCKET, args(unix.AF_INET, raw, unix.IPPROTO_RAW), network},
		{"raw TCP", unix.SYS_SOCKET, args(unix.AF_INET, raw, unix.IPPROTO_TCP), network},
		{"packet", unix.SYS_SOCKET, args(unix.AF_PACKET, raw, 3), network},
		{"old packet", unix.SYS_SOCKET, args(unix.AF_INET, unix.SOCK_PACKET, 3), network},
		{"vsock", unix.SYS_SOCKET, args(unix.AF_VSOCK, stream), network},
		{"SMC", unix.SYS_SOCKET, args(unix.AF_SMC, stream), network},
		{"ALG", unix.SYS_SOCKET, args(unix.AF_ALG, unix.SOCK_SEQPACKET), network},
		{"XDP", unix.SYS_SOCKET, args(unix.AF_XDP, raw), network},
		{"key", unix.SYS_SOCKET, args(unix.AF_KEY, raw, 2), network},
		{"Bluetooth", unix.SYS_SOCKET, args(unix.AF_BLUETOOTH, raw), network},
		{"no family", unix.SYS_SOCKET, args(0), network},
		{"family of all ones", unix.SYS_SOCKET, args(1<<64 - 1), network},
		{"sendto", unix.SYS_SENDTO, args(3, 0, 0, quiet, fastopen, fastopen), all(allow)},
		{"sendto, fast open", unix.SYS_SENDTO, args(3, 0, 0, quiet|fastopen), sendFast},
		{"sendmsg, fast open, dirty", unix.SYS_SENDMSG, args(3, 0, dirt|fastopen), sendFast},
		{"sendmmsg, fast open", unix.SYS_SENDMMSG, args(3, 0, 1, fastopen), sendFast},
		{"sendmsg", unix.SYS_SENDMSG, args(3, fastopen, quiet, fastopen), all(allow)},
		{"setsockopt", unix.SYS_SETSOCKOPT, args(3, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT), all(allow)},
		{"setsockopt, another protocol above TCP", unix.SYS_SETSOCKOPT, args(3, unix.IPPROTO_TCP, unix.TCP_ULP), sendFast},
		{"setsockopt, the same number elsewhere", unix.SYS_SETSOCKOPT, args(3, unix.SOL_SOCKET, unix.TCP_ULP), all(allow)},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, args(1), ring},
		{"io_uring_enter", unix.SYS_IO_URING_ENTER, args(1), ring},
		{"io_uring_register", unix.SYS_IO_URING_REGISTER, args(1), ring},
		{"TIOCSTI", unix.SYS_IOCTL, args(0, unix.TIOCSTI), terminal},
		{"TIOCSTI, dirty", unix.SYS_IOCTL, args(0, dirt|unix.TIOCSTI), terminal},
		{"TIOCLINUX", unix.SYS_IOCTL, args(0, 0x541c), terminal},
		{"TCGETS", unix.SYS_IOCTL, args(0, unix.TCGETS), all(allow)},
		{"prctl", unix.SYS_PRCTL, args(unix.PR_GET_NO_NEW_PRIVS), all(allow)},
		{"the mark", unix.SYS_PRCTL, args(markQuestion), verdicts{allow, allow, allow, allow, allow, mark, mark}},
		{"the proof", unix.SYS_PRCTL, args(proofQuestion, 7), verdicts{allow, allow, allow, allow, allow, mark, mark}},
		{"the proof of another filter", unix.SYS_PRCTL, args(proofQuestion, 8), all(allow)},
		{"TUNSETIFF", unix.SYS_IOCTL, args(3, unix.TUNSETIFF), verdicts{eperm, eperm, eperm, allow, allow, allow, eperm}},
	} {
		t.Run(row.name, func(t *testing.T) {
			for i, c := range configs {
				in := call{auditArch, row.nr, row.args}
				if got := run(t, c, in); got != row.want[i] {
					t.Errorf("%+v: got %#x, want %#x", c, got, row.want[i])
				}
				// The same number by another entry is another call.
				in.arch = auditArch32
				if got := run(t, c, in); c.wants()&noRing != 0 && got != enosys {
					t.Errorf("%+v, 32-bit entry: got %#x", c, got)
				}
				in.arch = unix.AUDIT_ARCH_S390X
				if got := run(t, c, in); got != enosys {
					t.Errorf("%+v, entry of another machine: got %#x", c, got)
				}
				if x32Bit == 0 {
					continue
				}
				in.arch, in.nr = auditArch, row.nr|x32Bit
				if got := run(t, c, in); got != enosys {
					t.Errorf("%+v, x32: got %#x", c, got)
				}
			}
		})
	}
}

// A number that no call has must not slip past the test for x32.
func TestProgramOddNumbers(t *testing.T) {
	if x32Bit == 0 {
		t.Skip("this machine has no x32")
	}
	for _, nr := range []uint32{x32Bit, x32Bit | 512, 1<<32 - 1} {
		if got := run(t, Config{Mark: 7}, call{arch: auditArch, nr: nr}); got != unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS) {
			t.Errorf("number %#x: %#x", nr, got)
		}
	}
}

func TestLongFilter(t *testing.T) {
	var list []rule
	for n, long := range map[int]bool{100: false, 254: false, 255: true, 300: true} {
		for len(list) < n {
			list = append(list, rule{wants: marked, call: 1, errno: unix.EPERM})
		}
		a := &assembler{}
		a.calls(marked, list[:n], nil)
		if a.long != long {
			t.Errorf("%d rules of one call: long %v", n, a.long)
		}
	}
}

// A filter is loaded at every start, and each instruction is compiled.
func TestLength(t *testing.T) {
	all := Config{Sockets: TCPAndUDPSockets, NoUnixSockets: true, NoTerminalInput: true, NoKeyrings: true, NoFileIoctls: true, NoLimitsOfOthers: true, Mark: 1}
	for _, c := range []Config{{NoKeyrings: true, Mark: 1}, {NoKeyrings: true, NoFileIoctls: true, Mark: 1}, all} {
		program, err := c.program()
		if err != nil || len(program) > 300 {
			t.Errorf("%+v: %d instructions, %v", c, len(program), err)
		}
		t.Logf("%+v: %d instructions", c, len(program))
	}
}

func TestEmpty(t *testing.T) {
	if !(Config{}).Empty() {
		t.Error("the zero Config asks for something")
	}
	for _, c := range []Config{{Sockets: LocalSockets}, {NoUnixSockets: true}, {NoTerminalInput: true}, {NoKeyrings: true}, {NoFileIoctls: true}, {NoLimitsOfOthers: true}, {Mark: 7}} {
		if c.Empty() {
			t.Errorf("%+v asks for nothing", c)
		}
	}
}
