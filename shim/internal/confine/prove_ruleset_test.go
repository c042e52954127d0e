package confine

import (
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
)

// Outside of a domain the proof of ports and signals finds the contrary; with the
// kernel's answer in one, and only with that, it holds.
func TestPortsAndSignalsAreProved(t *testing.T) {
	none := rules.Network{Mode: rules.NetworkPorts, ConnectTCP: []uint16{}, BindTCP: []uint16{}}
	for _, row := range []struct {
		name  string
		do    func() error
		call  uintptr
		good  unix.Errno
		other unix.Errno
	}{
		{"bind", func() error { return provePorts(ll.AccessNetBindTCP, none) }, unix.SYS_BIND, unix.EACCES, unix.EADDRINUSE},
		{"connect", func() error { return provePorts(ll.AccessNetConnectTCP, none) }, unix.SYS_CONNECT, unix.EACCES, unix.ECONNREFUSED},
		{"signals", func() error { return proveSignals(ll.ScopeSignal) }, unix.SYS_KILL, unix.EPERM, unix.EINVAL},
	} {
		if err := row.do(); err == nil {
			t.Errorf("%s: the contrary is not found", row.name)
		}
		errnotest.Answering(t, errnotest.Call{Nr: row.call}, row.good, func() {
			if err := row.do(); err != nil {
				t.Errorf("%s: %v", row.name, err)
			}
		})
		errnotest.Answering(t, errnotest.Call{Nr: row.call}, row.other, func() {
			if err := row.do(); err == nil {
				t.Errorf("%s: %v is no denial", row.name, row.other)
			}
		})
	}
	// What is not handled, or listed, is not tried.
	if err := provePorts(0, none); err != nil {
		t.Error(err)
	}
	if err := proveSignals(ll.ScopeAbstractUnixSocket); err != nil {
		t.Error(err)
	}
	listed := rules.Network{Mode: rules.NetworkPorts, BindTCP: []uint16{1024}}
	if err := provePorts(ll.AccessNetBindTCP, listed); err == nil {
		t.Error("a port beside the listed one is not tried")
	}
}

// A domain that should have a ruleset and has none proves nothing.
func TestMissingRulesetIsFound(t *testing.T) {
	k := rules.Kernel{ABI: 7, Errata: 7}
	for _, p := range []*rules.Policy{
		{Hidden: []rules.Entry{{Path: "/x"}}},
		{Isolate: rules.IsolateSignals},
		{Isolate: rules.IsolateAbstractUnix},
		{Network: rules.Network{Mode: rules.NetworkDeny}},
		{Scope: rules.ScopeWorkspace},
	} {
		if d := (&Domain{asked: p, offered: k}); !d.wantsRuleset() || d.Prove(nil, "/bin/true") == nil {
			t.Errorf("%+v: a ruleset is not missed", p)
		}
		if d := (&Domain{asked: p, offered: rules.Kernel{Unavailable: "none"}}); d.wantsRuleset() {
			t.Errorf("%+v: a ruleset is missed where there is no Landlock", p)
		}
	}
	if d := (&Domain{asked: &rules.Policy{Isolate: rules.IsolateTTY}, offered: k}); d.wantsRuleset() {
		t.Error("a ruleset is missed that was not asked for")
	}
}
