package confine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/seccomp"
)

// filterFor says what of a policy is the seccomp filter's.
func filterFor(p *rules.Policy) seccomp.Config {
	c := seccomp.Config{
		NoUnixSockets:   p.Isolate.Has(rules.IsolateUnixSockets),
		NoTerminalInput: p.Isolate.Has(rules.IsolateTTY),
	}
	switch p.Network.Mode {
	case rules.NetworkDeny:
		c.Sockets = seccomp.LocalSockets
	case rules.NetworkPorts:
		c.Sockets = seccomp.TCPSockets
		if p.Network.UDP {
			c.Sockets = seccomp.TCPAndUDPSockets
		}
	}
	return c
}

// proveFilter tries what a filter is there to refuse.
func proveFilter(c seccomp.Config) error {
	type try struct {
		what string
		do   func() error
		want error
	}
	socket := func(family, kind int) func() error {
		return func() error {
			fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}
	}
	var tries []try
	if c.Sockets == seccomp.LocalSockets {
		tries = append(tries, try{"a TCP socket", socket(unix.AF_INET, unix.SOCK_STREAM), unix.EACCES})
	}
	if c.Sockets != seccomp.AnySockets {
		tries = append(tries, try{"a packet socket", socket(unix.AF_PACKET, unix.SOCK_RAW), unix.EACCES})
	}
	if c.Sockets == seccomp.LocalSockets || c.Sockets == seccomp.TCPSockets {
		tries = append(tries, try{"a UDP socket", socket(unix.AF_INET, unix.SOCK_DGRAM), unix.EACCES})
	}
	if c.NoUnixSockets {
		tries = append(tries, try{"a unix socket", socket(unix.AF_UNIX, unix.SOCK_STREAM), unix.EACCES})
	}
	if c.NoTerminalInput {
		// Without the filter the kernel finds that -1 is no descriptor.
		tries = append(tries, try{"terminal input", func() error {
			return unix.IoctlSetInt(-1, unix.TIOCSTI, 0)
		}, unix.EPERM})
	}
	for _, t := range tries {
		if err := t.do(); !errors.Is(err, t.want) {
			return fmt.Errorf("%s: expected %w, got %w", t.what, t.want, orNone(err))
		}
	}
	return nil
}

var errNone = errors.New("no error")

func orNone(err error) error {
	if err == nil {
		return errNone
	}
	return err
}
