package main

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

var (
	loop4  = [4]byte{127, 0, 0, 1}
	loop6  = [16]byte{15: 1}
	mapped = [16]byte{10: 255, 11: 255, 12: 127, 15: 1}
)

func (w *w) tcp4() unix.Sockaddr { return &unix.SockaddrInet4{Port: w.TCP, Addr: loop4} }
func (w *w) tcp6() unix.Sockaddr { return &unix.SockaddrInet6{Port: w.TCP, Addr: loop6} }
func (w *w) udp4() unix.Sockaddr { return &unix.SockaddrInet4{Port: w.UDP, Addr: loop4} }

// Reaching a network, by sockets whose other end listens.
func init() {
	const mptcp = 262
	add(network,
		attempt{Name: "tcp", do: func(w *w) error { return connect(unix.AF_INET, unix.SOCK_STREAM, 0, w.tcp4()) }},
		attempt{Name: "tcp6", do: func(w *w) error { return connect(unix.AF_INET6, unix.SOCK_STREAM, 0, w.tcp6()) }},
		attempt{Name: "tcp-mapped", do: func(w *w) error {
			return connect(unix.AF_INET6, unix.SOCK_STREAM, 0, &unix.SockaddrInet6{Port: w.TCP, Addr: mapped})
		}},
		attempt{Name: "mptcp", do: func(w *w) error { return connect(unix.AF_INET, unix.SOCK_STREAM, mptcp, w.tcp4()) }},
		attempt{Name: "mptcp6", do: func(w *w) error { return connect(unix.AF_INET6, unix.SOCK_STREAM, mptcp, w.tcp6()) }},
		attempt{Name: "tcp-fast-open-sendto", do: func(w *w) error {
			return socket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) error {
				return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, w.tcp4())
			})
		}},
		attempt{Name: "tcp-fast-open-sendmsg", do: func(w *w) error {
			return socket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) error {
				return unix.Sendmsg(fd, []byte("x"), nil, w.tcp4(), unix.MSG_FASTOPEN)
			})
		}},
		attempt{Name: "tcp-fast-open-connect", do: func(w *w) error {
			return socket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) error {
				if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1); err != nil {
					return setup(err)
				}
				return unix.Connect(fd, w.tcp4())
			})
		}},
		attempt{Name: "tcp-bind", do: func(*w) error {
			return socket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) error {
				return unix.Bind(fd, &unix.SockaddrInet4{Addr: loop4})
			})
		}},
		attempt{Name: "tcp-listen-unbound", do: func(*w) error {
			return socket(unix.AF_INET, unix.SOCK_STREAM, 0, func(fd int) error { return unix.Listen(fd, 1) })
		}},
		attempt{Name: "udp", do: func(w *w) error { return sendTo(unix.AF_INET, unix.SOCK_DGRAM, 0, w.udp4()) }},
		attempt{Name: "udp-connect", do: func(w *w) error { return connect(unix.AF_INET, unix.SOCK_DGRAM, 0, w.udp4()) }},
		attempt{Name: "udp6", do: func(w *w) error {
			return sendTo(unix.AF_INET6, unix.SOCK_DGRAM, 0, &unix.SockaddrInet6{Port: w.UDP, Addr: mapped})
		}},
		attempt{Name: "udp-lite", Rare: "UDP-Lite", do: func(w *w) error {
			err := sendTo(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, w.udp4())
			if errors.Is(err, unix.EPROTONOSUPPORT) {
				return missing("UDP-Lite")
			}
			return err
		}},
		attempt{Name: "ping", do: func(*w) error {
			return socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP, func(fd int) error {
				echo := []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0}
				return unix.Sendto(fd, echo, 0, &unix.SockaddrInet4{Addr: loop4})
			})
		}},
		attempt{Name: "raw", Root: true, do: func(*w) error {
			return sendTo(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW, &unix.SockaddrInet4{Addr: loop4})
		}},
		attempt{Name: "raw6", Root: true, do: func(*w) error {
			return sendTo(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_UDP, &unix.SockaddrInet6{Addr: loop6})
		}},
		attempt{Name: "packet", Root: true, do: func(*w) error { return frame(unix.SOCK_RAW) }},
		attempt{Name: "packet-datagram", Root: true, do: func(*w) error { return frame(unix.SOCK_DGRAM) }},
		attempt{Name: "socket-diagnosis", do: func(*w) error { return onlySocket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG) }},
		attempt{Name: "netlink-to-outside", do: func(*w) error { return onlySocket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_USERSOCK) }},
		attempt{Name: "netlink-events", do: func(*w) error {
			return onlySocket(unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_KOBJECT_UEVENT)
		}},
		attempt{Name: "netlink-generic", do: func(*w) error { return onlySocket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC) }},
		attempt{Name: "netlink-audit", Rare: "audit", do: func(*w) error { return onlySocket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT) }},
		attempt{Name: "netlink-netfilter", Rare: "netfilter", do: func(*w) error {
			return onlySocket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)
		}},
		attempt{Name: "routes", Root: true, do: setLink},
		attempt{Name: "route-message-to-outside", Root: true, do: func(w *w) error {
			return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE, func(fd int) error {
				return unix.Sendto(fd, make([]byte, 32), unix.MSG_DONTWAIT, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: uint32(w.PID)})
			})
		}},
		attempt{Name: "tap-of-the-user", Needs: "/dev/net/tun", do: tap},
		attempt{Name: "network-in-user-namespace", inside: true, do: func(*w) error {
			return onlySocket(unix.AF_INET, unix.SOCK_STREAM, 0)
		}},
		attempt{Name: "tcp-32-bit", Needs: "the entry for 32-bit programs", do: socket32},
		attempt{Name: "socket-pair-of-packets", Rare: "AF_TIPC", do: func(*w) error {
			p, err := unix.Socketpair(unix.AF_TIPC, unix.SOCK_DGRAM, 0)
			if errors.Is(err, unix.EAFNOSUPPORT) {
				return missing("AF_TIPC")
			}
			_ = p
			return err
		}},
		attempt{Name: "setns-network", Root: true, do: func(w *w) error {
			fd, err := open(w.of("ns/net"), unix.O_RDONLY)
			if err != nil {
				return w.unseen(err)
			}
			return unix.Setns(fd, unix.CLONE_NEWNET)
		}},
	)
	for _, f := range []struct {
		name           string
		family         int
		kind, protocol int
		root           bool
	}{
		{"ax25", unix.AF_AX25, unix.SOCK_DGRAM, 0, false},
		{"ipx", unix.AF_IPX, unix.SOCK_DGRAM, 0, false},
		{"appletalk", unix.AF_APPLETALK, unix.SOCK_DGRAM, 0, false},
		{"x25", unix.AF_X25, unix.SOCK_SEQPACKET, 0, false},
		{"key", unix.AF_KEY, unix.SOCK_RAW, 2, true},
		{"rds", unix.AF_RDS, unix.SOCK_SEQPACKET, 0, false},
		{"pppox", unix.AF_PPPOX, unix.SOCK_STREAM, 0, false},
		{"can", unix.AF_CAN, unix.SOCK_RAW, 1, false},
		{"tipc", unix.AF_TIPC, unix.SOCK_DGRAM, 0, false},
		{"bluetooth", unix.AF_BLUETOOTH, unix.SOCK_RAW, 1, false},
		{"rxrpc", unix.AF_RXRPC, unix.SOCK_DGRAM, unix.AF_INET, false},
		{"phonet", unix.AF_PHONET, unix.SOCK_DGRAM, 0, false},
		{"alg", unix.AF_ALG, unix.SOCK_SEQPACKET, 0, false},
		{"nfc", unix.AF_NFC, unix.SOCK_SEQPACKET, 1, false},
		{"vsock", unix.AF_VSOCK, unix.SOCK_STREAM, 0, false},
		{"kcm", unix.AF_KCM, unix.SOCK_DGRAM, 0, false},
		{"qipcrtr", unix.AF_QIPCRTR, unix.SOCK_DGRAM, 0, false},
		{"smc", unix.AF_SMC, unix.SOCK_STREAM, 0, false},
		{"xdp", unix.AF_XDP, unix.SOCK_RAW, 0, true},
		{"mctp", unix.AF_MCTP, unix.SOCK_DGRAM, 0, false},
		{"sctp", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, false},
		{"dccp", unix.AF_INET, unix.SOCK_DCCP, unix.IPPROTO_DCCP, false},
		{"l2tp", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_L2TP, false},
	} {
		add(network, attempt{Name: "family-" + f.name, Root: f.root, Rare: "sockets of the family " + f.name, do: func(*w) error {
			err := onlySocket(f.family, f.kind, f.protocol)
			for _, e := range []error{unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT, unix.ENOSYS, unix.EINVAL} {
				if errors.Is(err, e) {
					return missing(f.name)
				}
			}
			return err
		}})
	}
}

// socket makes a socket for f.
func socket(family, kind, protocol int, f func(int) error) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fd)
}

func onlySocket(family, kind, protocol int) error {
	return socket(family, kind, protocol, func(int) error { return nil })
}

func connect(family, kind, protocol int, to unix.Sockaddr) error {
	return socket(family, kind, protocol, func(fd int) error { return unix.Connect(fd, to) })
}

// sendTo sends a packet that is an empty header to a raw socket.
func sendTo(family, kind, protocol int, to unix.Sockaddr) error {
	packet := make([]byte, 40)
	packet[0], packet[8], packet[9] = 0x45, 64, 253
	return socket(family, kind, protocol, func(fd int) error { return unix.Sendto(fd, packet, 0, to) })
}

// frame sends a frame of an experimental kind on the loopback interface.
func frame(kind int) error {
	const network = 0xb588 // 0x88b5 in the order of the network
	return socket(unix.AF_PACKET, kind, network, func(fd int) error {
		return unix.Sendto(fd, make([]byte, 60), 0, &unix.SockaddrLinklayer{Protocol: network, Ifindex: 1, Halen: 6})
	})
}

// setLink sends a request that changes nothing of the loopback interface and
// that only CAP_NET_ADMIN may make.
func setLink(*w) error {
	return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE, func(fd int) error {
		const request, ack = 1, 4
		msg := struct {
			Header unix.NlMsghdr
			Info   unix.IfInfomsg
		}{
			unix.NlMsghdr{Len: 32, Type: unix.RTM_SETLINK, Flags: request | ack, Seq: 1},
			unix.IfInfomsg{Index: 1},
		}
		if err := unix.Sendto(fd, unsafe.Slice((*byte)(unsafe.Pointer(&msg)), 32), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return setup(err)
		}
		buf := make([]byte, 4096)
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil || n < 20 {
			return fmt.Errorf("no answer: %v", err)
		}
		if e := *(*int32)(unsafe.Pointer(&buf[16])); e != 0 {
			return unix.Errno(-e)
		}
		return nil
	})
}

// tap sends a frame by an interface that needs no socket.
func tap(w *w) error {
	if w.Tap == "" {
		return missing("/dev/net/tun")
	}
	fd, err := open("/dev/net/tun", unix.O_RDWR)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq(w.Tap)
	if err != nil {
		return setup(err)
	}
	ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		return err
	}
	_, err = unix.Write(fd, make([]byte, 60))
	return err
}
