// Command send tries to send a token off its process in one way, and says
// "sent" or the errno that stopped it.
//
//	send WAY TOKEN PORT NETLINK-PORT-ID RING
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch/ring"
)

const inherited = 20

var (
	token   []byte
	port    int
	netlink uint32
	rings   string

	local4 = [4]byte{127, 0, 0, 1}
	local6 = [16]byte{15: 1}
)

func main() {
	if len(os.Args) != 6 || ways[os.Args[1]] == nil {
		fmt.Println("usage")
		os.Exit(2)
	}
	token, rings = []byte(os.Args[2]+"\n"), os.Args[5]
	port, _ = strconv.Atoi(os.Args[3])
	n, _ := strconv.Atoi(os.Args[4])
	netlink = uint32(n)
	err := ways[os.Args[1]]()
	var errno unix.Errno
	switch {
	case err == nil:
		fmt.Println("sent")
	case errors.As(err, &errno):
		fmt.Println(unix.ErrnoName(errno))
	default:
		fmt.Println(err)
	}
}

func addr4() *unix.SockaddrInet4 { return &unix.SockaddrInet4{Port: port, Addr: local4} }
func addr6() *unix.SockaddrInet6 { return &unix.SockaddrInet6{Port: port, Addr: local6} }

var ways = map[string]func() error{
	"tcp4": func() error { return connect(unix.AF_INET, unix.SOCK_STREAM, 0, addr4()) },
	"tcp4-tcp": func() error {
		return connect(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP, addr4())
	},
	"tcp6": func() error { return connect(unix.AF_INET6, unix.SOCK_STREAM, 0, addr6()) },
	"tcp6-mapped": func() error {
		return connect(unix.AF_INET6, unix.SOCK_STREAM, 0, &unix.SockaddrInet6{Port: port, Addr: [16]byte{10: 255, 11: 255, 12: 127, 15: 1}})
	},
	"tcp-after-exec": func() error { return again("tcp4") },
	"tcp-bound":      bound,
	"bind":           func() error { return onlyBind(port) },
	"bind-any":       func() error { return onlyBind(0) },
	"listen":         listen,
	"mptcp4":         func() error { return connect(unix.AF_INET, unix.SOCK_STREAM, 262, addr4()) },
	"mptcp6":         func() error { return connect(unix.AF_INET6, unix.SOCK_STREAM, 262, addr6()) },
	"sctp":           func() error { return connect(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, addr4()) },
	"sctp-seqpacket": func() error { return connect(unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP, addr4()) },
	"dccp":           func() error { return connect(unix.AF_INET, unix.SOCK_DCCP, unix.IPPROTO_DCCP, addr4()) },
	"smc":            func() error { return connect(unix.AF_SMC, unix.SOCK_STREAM, 0, addr4()) },
	"vsock": func() error {
		return connect(unix.AF_VSOCK, unix.SOCK_STREAM, 0, &unix.SockaddrVM{CID: 1, Port: uint32(port)})
	},
	"tipc": func() error { return onlySocket(unix.AF_TIPC, unix.SOCK_DGRAM, 0) },
	"alg":  func() error { return onlySocket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) },

	"fastopen-sendto":   func() error { return fastOpen("sendto") },
	"fastopen-sendmsg":  func() error { return fastOpen("sendmsg") },
	"fastopen-sendmmsg": func() error { return fastOpen("sendmmsg") },
	"fastopen-connect":  fastOpenConnect,

	"udp4-sendto":   func() error { return sendTo(unix.AF_INET, unix.SOCK_DGRAM, 0, addr4(), token) },
	"udp4-connect":  func() error { return connect(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDP, addr4()) },
	"udp4-sendmsg":  udpSendmsg,
	"udp4-sendmmsg": udpSendmmsg,
	"udp6-sendto":   func() error { return sendTo(unix.AF_INET6, unix.SOCK_DGRAM, 0, addr6(), token) },
	"udplite":       func() error { return sendTo(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, addr4(), token) },
	"icmp":          icmp,
	"raw-udp":       func() error { return sendTo(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW, addr4(), udpPacket()) },
	"packet":        packet,
	"netlink": func() error {
		return sendTo(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_USERSOCK, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: netlink}, netlinkMessage())
	},

	"int80": int80,
	"x32":   x32,

	"ring":           func() error { return byRing(ring.New(0)) },
	"ring-inherited": func() error { return byRing(ring.Inherited(inherited, rings)) },

	"ring-sqpoll": polled,

	// Descriptor 0 or 20 is a socket of the launcher.
	"write-0":    func() error { return write(0) },
	"write-20":   func() error { return write(inherited) },
	"sendto-20":  func() error { return unix.Sendto(inherited, token, 0, addr4()) },
	"connect-20": func() error { return connectFD(inherited, addr4()) },
	"accept-20":  accept,
}

func write(fd int) error {
	_, err := unix.Write(fd, token)
	return err
}

func onlySocket(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func connect(family, kind, protocol int, to unix.Sockaddr) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err != nil {
		return err
	}
	return connectFD(fd, to)
}

func connectFD(fd int, to unix.Sockaddr) error {
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	return write(fd)
}

// bound connects from a port that was bound before.
func bound() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: local4}); err != nil {
		return err
	}
	return connectFD(fd, addr4())
}

// accept sends to whoever connects to an inherited listener.
func accept() error {
	fd, _, err := unix.Accept4(inherited, unix.SOCK_CLOEXEC)
	if err != nil {
		return err
	}
	return write(fd)
}

func again(way string) error {
	os.Args[1] = way
	return unix.Exec("/proc/self/exe", os.Args, os.Environ())
}

func sendTo(family, kind, protocol int, to unix.Sockaddr, data []byte) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err != nil {
		return err
	}
	return unix.Sendto(fd, data, 0, to)
}

func raw4() []byte {
	a := make([]byte, 16)
	binary.NativeEndian.PutUint16(a, unix.AF_INET)
	binary.BigEndian.PutUint16(a[2:], uint16(port))
	copy(a[4:], local4[:])
	return a
}

type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
	_   uint32
}

// message is a msghdr that sends the token to a.
func message(a []byte) unix.Msghdr {
	iov := &unix.Iovec{Base: &token[0], Len: uint64(len(token))}
	return unix.Msghdr{Name: &a[0], Namelen: uint32(len(a)), Iov: iov, Iovlen: 1}
}

func send(call string, fd, flags int) error {
	a := raw4()
	var errno syscall.Errno
	switch call {
	case "sendto":
		_, _, errno = unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&token[0])), uintptr(len(token)),
			uintptr(flags), uintptr(unsafe.Pointer(&a[0])), uintptr(len(a)))
	case "sendmsg":
		m := message(a)
		_, _, errno = unix.Syscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&m)), uintptr(flags))
	case "sendmmsg":
		m := mmsghdr{hdr: message(a)}
		_, _, errno = unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&m)), 1, uintptr(flags), 0, 0)
	}
	if errno != 0 {
		return errno
	}
	return nil
}

func fastOpen(call string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return send(call, fd, unix.MSG_FASTOPEN)
}

func fastOpenConnect() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1); err != nil {
		return err
	}
	return connectFD(fd, addr4())
}

func udpSendmsg() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return send("sendmsg", fd, 0)
}

func udpSendmmsg() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return send("sendmmsg", fd, 0)
}

// udpPacket is an IP packet with the token in a UDP datagram.
func udpPacket() []byte {
	udp := make([]byte, 8, 8+len(token))
	binary.BigEndian.PutUint16(udp, 9)
	binary.BigEndian.PutUint16(udp[2:], uint16(port))
	binary.BigEndian.PutUint16(udp[4:], uint16(8+len(token)))
	udp = append(udp, token...)
	ip := make([]byte, 20, 20+len(udp))
	ip[0], ip[8], ip[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(ip[2:], uint16(20+len(udp)))
	copy(ip[12:], local4[:])
	copy(ip[16:], local4[:])
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	return append(ip, udp...)
}

func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		low := byte(0)
		if i+1 < len(b) {
			low = b[i+1]
		}
		sum += uint32(b[i])<<8 | uint32(low)
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// packet sends a frame of a type that is for experiments (IEEE 802).
func packet() error {
	const experiment = 0xb588 // 0x88b5 in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(fd, token, 0, &unix.SockaddrLinklayer{Protocol: experiment, Ifindex: 1, Halen: 6})
}

func icmp() error {
	echo := append([]byte{8, 0, 0, 0, 0, 0, 0, 0}, token...)
	binary.BigEndian.PutUint16(echo[2:], checksum(echo))
	return sendTo(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP, addr4(), echo)
}

func netlinkMessage() []byte {
	m := make([]byte, 16, 16+len(token))
	binary.NativeEndian.PutUint32(m, uint32(16+len(token)))
	binary.NativeEndian.PutUint16(m[4:], 16)
	return append(m, token...)
}

func byRing(r *ring.Ring, err error) error {
	if err != nil {
		return err
	}
	fd, err := r.Do(ring.OpSocket, unix.AF_INET, unix.SOCK_STREAM, nil, 0)
	if err != nil {
		return err
	}
	a := raw4()
	if _, err := r.Do(ring.OpConnect, fd, uint64(len(a)), unsafe.Pointer(&a[0]), 0); err != nil {
		return err
	}
	_, err = r.Do(ring.OpSend, fd, 0, unsafe.Pointer(&token[0]), uint32(len(token)))
	return err
}

// polled makes the launcher's own ring send what the launcher holds.
func polled() error {
	var fd int32
	var addr uintptr
	var length uint32
	var text string
	if _, err := fmt.Sscanf(rings, "%d,%d,%d,%s", &fd, &addr, &length, &text); err != nil {
		return err
	}
	r, err := ring.Inherited(inherited, text)
	if err != nil {
		return err
	}
	_, err = r.DoAt(ring.OpSend, fd, 0, addr, length)
	return err
}
