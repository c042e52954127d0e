package confine

import (
	"time"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/seccomp"
)

// filterFor says what of a policy that confines is the seccomp filter's.
func filterFor(p *rules.Policy) seccomp.Config {
	c := seccomp.Config{
		NoUnixSockets:    p.Isolate.Has(rules.IsolateUnixSockets),
		NoTerminalInput:  p.Isolate.Has(rules.IsolateTTY),
		NoLimitsOfOthers: p.Isolate.Has(rules.IsolateSignals),
		NoFileIoctls:     p.ConfinesFiles(),
		NoKeyrings:       true,
		Mark:             uint32(time.Now().UnixNano()) | 1,
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
