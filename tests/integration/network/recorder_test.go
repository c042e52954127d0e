package network

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A recorder keeps everything that reaches it over the loopback device.
type recorder struct {
	port    int
	netlink uint32
	sinks   []sink

	mu    sync.Mutex
	got   bytes.Buffer
	again chan struct{}
	count int
}

// A sink is one way in; ping sends it something.
type sink struct {
	name string
	ping func(text []byte) error
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{again: make(chan struct{}, 1)}
	l4, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.port = l4.Addr().(*net.TCPAddr).Port
	port := strconv.Itoa(r.port)
	r.stream(t, "tcp4", "127.0.0.1:"+port, l4)
	if l6, err := net.Listen("tcp6", "[::1]:"+port); err == nil {
		r.stream(t, "tcp6", "[::1]:"+port, l6)
	}
	for _, network := range []string{"udp4", "udp6"} {
		address := map[string]string{"udp4": "127.0.0.1:", "udp6": "[::1]:"}[network] + port
		if c, err := net.ListenPacket(network, address); err == nil {
			t.Cleanup(func() { c.Close() })
			go r.packets(func(b []byte) (int, error) { n, _, err := c.ReadFrom(b); return n, err })
			r.sinks = append(r.sinks, sink{network, func(text []byte) error { return dial(network, address, text) }})
		}
	}
	r.socket(t, "udplite", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, &unix.SockaddrInet4{Port: r.port, Addr: [4]byte{127, 0, 0, 1}})
	r.socket(t, "icmp", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	r.socket(t, "netlink", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_USERSOCK, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	const experiment = 0xb588 // 0x88b5 in network order
	r.socket(t, "packet", unix.AF_PACKET, unix.SOCK_DGRAM, experiment, &unix.SockaddrLinklayer{Protocol: experiment, Ifindex: 1, Halen: 6})
	return r
}

func dial(network, address string, text []byte) error {
	c, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write(text)
	return err
}

func (r *recorder) stream(t *testing.T, network, address string, l net.Listener) {
	t.Cleanup(func() { l.Close() })
	r.sinks = append(r.sinks, sink{network, func(text []byte) error { return dial(network, address, text) }})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			// One after the other, so that what came before a ping is
			// recorded before it. A client may wait for the end.
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			line, _ := bufio.NewReader(c).ReadBytes('\n')
			r.record(line)
			c.Close()
		}
	}()
}

func (r *recorder) packets(read func([]byte) (int, error)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := read(buf)
		if err != nil {
			return
		}
		r.record(buf[:n])
	}
}

// socket adds a sink that the net package does not know. What this kernel
// lacks, the control rows name.
func (r *recorder) socket(t *testing.T, name string, family, kind, protocol int, at unix.Sockaddr) {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return
	}
	if err := unix.Bind(fd, at); err != nil {
		unix.Close(fd)
		return
	}
	to := at
	if name == "netlink" {
		own, err := unix.Getsockname(fd)
		if err != nil {
			t.Fatal(err)
		}
		r.netlink = own.(*unix.SockaddrNetlink).Pid
		to = own
	}
	go r.packets(func(b []byte) (int, error) {
		for {
			n, _, err := unix.Recvfrom(fd, b, 0)
			if err != unix.EINTR {
				return n, err
			}
		}
	})
	r.sinks = append(r.sinks, sink{name, func(text []byte) error {
		ping, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			return err
		}
		defer unix.Close(ping)
		switch name {
		case "icmp":
			text = append([]byte{8, 0, 0, 0, 0, 0, 0, 0}, text...)
		case "netlink":
			text = append([]byte{byte(16 + len(text)), 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, text...)
		}
		return unix.Sendto(ping, text, 0, to)
	}})
}

func (r *recorder) record(data []byte) {
	r.mu.Lock()
	r.got.Write(data)
	r.mu.Unlock()
	select {
	case r.again <- struct{}{}:
	default:
	}
}

func (r *recorder) has(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Contains(r.got.Bytes(), []byte(text))
}

// arrived reports whether a token came, once everything that was sent before
// the call is recorded.
func (r *recorder) arrived(t *testing.T, token string) bool {
	t.Helper()
	for _, s := range r.sinks {
		r.count++
		ping := fmt.Sprintf("ping %s %d end", s.name, r.count)
		if err := s.ping([]byte(ping + "\n")); err != nil {
			t.Fatalf("ping %s: %v", s.name, err)
		}
		for timeout := time.After(time.Minute); !r.has(ping); {
			select {
			case <-r.again:
			case <-timeout:
				t.Fatalf("the recorder's %s does not answer", s.name)
			}
		}
	}
	return r.has(token)
}
