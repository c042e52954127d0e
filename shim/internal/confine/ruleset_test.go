package confine

import (
	"errors"
	"slices"
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/seccomp"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/child"
)

// Denials of the program are logged where the policy asks, those of the shim never.
func TestAuditFlags(t *testing.T) {
	k := kernel(t, 7)
	for _, row := range []struct {
		audit bool
		abi   int
		want  uint32
	}{
		{false, k.ABI, ll.FlagRestrictSelfLogSameExecOff},
		{true, k.ABI, ll.FlagRestrictSelfLogSameExecOff | ll.FlagRestrictSelfLogNewExecOn},
		{true, 6, 0},
	} {
		rs, err := NewRuleset(&rules.Policy{Hidden: hide("/x"), Audit: row.audit}, rules.Kernel{ABI: row.abi}, nil)
		errnotest.Must(t, err)
		rs.Close()
		if rs.flags != row.want {
			t.Errorf("audit %v, ABI %d: flags %#x, want %#x", row.audit, row.abi, rs.flags, row.want)
		}
	}
}

// What a kernel does not know, or does wrong, is not asked of it: a ruleset of
// nothing else is none.
func TestRulesetAsksWhatTheKernelHas(t *testing.T) {
	k := kernel(t, 6)
	deny, ports := rules.Network{Mode: rules.NetworkDeny}, rules.Network{Mode: rules.NetworkPorts, ConnectTCP: []uint16{1}}
	for _, row := range []struct {
		name string
		p    rules.Policy
		k    rules.Kernel
		want bool
	}{
		{"nothing", rules.Policy{}, k, false},
		{"files", rules.Policy{Hidden: hide("/x")}, rules.Kernel{ABI: 1}, true},
		{"network", rules.Policy{Network: deny}, rules.Kernel{ABI: 4}, true},
		{"network, too old", rules.Policy{Network: deny}, rules.Kernel{ABI: 3}, false},
		{"ports", rules.Policy{Network: ports}, rules.Kernel{ABI: 4}, true},
		{"signals", rules.Policy{Isolate: rules.IsolateSignals}, rules.Kernel{ABI: 6, Errata: 1 << 1}, true},
		{"signals, without the erratum", rules.Policy{Isolate: rules.IsolateSignals}, rules.Kernel{ABI: 6, Errata: ^(1 << 1)}, false},
		{"signals, too old", rules.Policy{Isolate: rules.IsolateSignals}, rules.Kernel{ABI: 5, Errata: 1 << 1}, false},
		{"abstract sockets", rules.Policy{Isolate: rules.IsolateAbstractUnix}, rules.Kernel{ABI: 6}, true},
		{"abstract sockets, too old", rules.Policy{Isolate: rules.IsolateAbstractUnix}, rules.Kernel{ABI: 5}, false},
	} {
		rs, err := NewRuleset(&row.p, row.k, nil)
		if err != nil || rs != nil != row.want {
			t.Errorf("%s: %+v, %v", row.name, rs, err)
		}
		if rs != nil && rs.handled != 0 != row.p.ConfinesFiles() {
			t.Errorf("%s: handles %v", row.name, rs.handled)
		}
		rs.Close()
	}
	// The rights are those of the kernel, and of none that this program does not know.
	for abi := 1; abi <= k.ABI; abi++ {
		rs, err := NewRuleset(&rules.Policy{Hidden: hide("/x")}, rules.Kernel{ABI: abi}, nil)
		errnotest.Must(t, err)
		if rs.handled != plan.Handled(abi) || rs.withheld != 0 {
			t.Errorf("ABI %d: handles %v, withholds %v", abi, rs.handled, rs.withheld)
		}
		rs.Close()
	}
	errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_LANDLOCK_CREATE_RULESET}, unix.ENOMEM, func() {
		if rs, err := NewRuleset(&rules.Policy{Hidden: hide("/x")}, k, nil); !errors.Is(err, unix.ENOMEM) || rs != nil {
			t.Errorf("%v, %v", rs, err)
		}
	})
}

// freePorts returns two TCP ports that nobody has.
func freePorts(t *testing.T) (ports [2]int) {
	t.Helper()
	for i := range ports {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		errnotest.Must(t, err)
		defer unix.Close(fd)
		errnotest.Must(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
		name, err := unix.Getsockname(fd)
		errnotest.Must(t, err)
		ports[i] = name.(*unix.SockaddrInet4).Port
	}
	return ports
}

func TestPortsAreGranted(t *testing.T) {
	k := kernel(t, 4)
	bind := func(port int) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	connect := func(port int) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	ports := freePorts(t)
	free, other := ports[0], ports[1]
	type verdicts struct{ bindFree, bindOther, connectFree, connectOther error }
	for _, row := range []struct {
		name string
		n    rules.Network
		want verdicts
	}{
		{"deny", rules.Network{Mode: rules.NetworkDeny}, verdicts{unix.EACCES, unix.EACCES, unix.EACCES, unix.EACCES}},
		{"bind", rules.Network{Mode: rules.NetworkPorts, BindTCP: []uint16{uint16(free)}}, verdicts{nil, unix.EACCES, unix.ECONNREFUSED, unix.ECONNREFUSED}},
		{"connect", rules.Network{Mode: rules.NetworkPorts, ConnectTCP: []uint16{uint16(free)}}, verdicts{nil, nil, unix.ECONNREFUSED, unix.EACCES}},
		{"none", rules.Network{Mode: rules.NetworkPorts, ConnectTCP: []uint16{}, BindTCP: []uint16{}}, verdicts{unix.EACCES, unix.EACCES, unix.EACCES, unix.EACCES}},
	} {
		child.Thread(func() {
			p := &rules.Policy{Network: row.n, Capabilities: rules.CapabilitiesKeep}
			rs, err := NewRuleset(p, rules.Kernel{ABI: k.ABI, NoSeccomp: "not here"}, nil)
			if err == nil {
				_, err = Enter(p, rules.Kernel{ABI: k.ABI, NoSeccomp: "not here"}, rs, func(string) {})
			}
			if err != nil {
				t.Errorf("%s: %v", row.name, err)
				return
			}
			defer rs.Close()
			if got := (verdicts{bind(free), bind(other), connect(free), connect(other)}); got != row.want {
				t.Errorf("%s: %v, want %v", row.name, got, row.want)
			}
		})
	}
	errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_LANDLOCK_ADD_RULE}, unix.ENOMEM, func() {
		p := &rules.Policy{Network: rules.Network{Mode: rules.NetworkPorts, BindTCP: []uint16{1}}}
		if rs, err := NewRuleset(p, k, nil); !errors.Is(err, unix.ENOMEM) || rs != nil {
			t.Errorf("%v, %v", rs, err)
		}
	})
}

// A grant is a rule for what is handled, and counts for what the program needs only
// when it can be executed.
func TestGrant(t *testing.T) {
	k := kernel(t, 1)
	dir := stage(t)
	node := nodeAt(t, dir+"/ws")
	needed := []string{dir + "/ws/ld", "/bin/true"}
	rs, err := NewRuleset(&rules.Policy{Hidden: hide("/x")}, k, needed)
	errnotest.Must(t, err)
	defer rs.Close()
	grant := func(access plan.Access, n pathcheck.Node) error {
		return rs.Grant(plan.Grant{Path: dir + "/ws", Access: access}, n)
	}

	errnotest.Must(t, grant(plan.ReadFile, node))
	if !slices.Equal(rs.missing, needed) {
		t.Errorf("a grant that lets nothing run: missing %q", rs.missing)
	}
	errnotest.Must(t, grant(plan.ReadOnly, node))
	if !slices.Equal(rs.missing, needed[1:]) || needed[0] != dir+"/ws/ld" {
		t.Errorf("missing %q, needed %q", rs.missing, needed)
	}
	// A right that is not handled, or withheld, is no rule: the kernel would refuse it.
	for _, access := range []plan.Access{0, plan.ResolveUnix} {
		rs.handled, rs.withheld = plan.Handled(k.ABI)|access, access
		errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_LANDLOCK_ADD_RULE}, unix.EINVAL, func() {
			if err := grant(access, node); err != nil {
				t.Errorf("%v: %v", access, err)
			}
		})
	}
	for errno, want := range map[unix.Errno]error{unix.EBADFD: nil, unix.ENOMEM: unix.ENOMEM, unix.EBADF: unix.EBADF} {
		errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_LANDLOCK_ADD_RULE}, errno, func() {
			if err := grant(plan.ReadOnly, node); !errors.Is(err, want) {
				t.Errorf("%v: %v", errno, err)
			}
		})
	}
	if err := grant(plan.ReadOnly, nil); err == nil {
		t.Error("granted on no inode")
	}
	isolated, err := NewRuleset(&rules.Policy{Isolate: rules.IsolateUnixSockets}, k, nil)
	errnotest.Must(t, err)
	defer isolated.Close()
	if isolated.withheld != plan.ResolveUnix {
		t.Errorf("withheld: %v", isolated.withheld)
	}
}

// After Close the number may be somebody else's.
func TestRulesetIsClosedOnce(t *testing.T) {
	rs, err := NewRuleset(&rules.Policy{Hidden: hide("/x")}, kernel(t, 1), nil)
	errnotest.Must(t, err)
	fd := rs.fd
	rs.Close()
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != unix.EBADF {
		t.Fatalf("still open: %v", err)
	}
	errnotest.Must(t, unix.Dup3(2, fd, unix.O_CLOEXEC))
	defer unix.Close(fd)
	rs.Close()
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
		t.Errorf("that of another was closed: %v", err)
	}
}

func TestFilterOfAPolicy(t *testing.T) {
	for _, row := range []struct {
		p    rules.Policy
		want seccomp.Config
	}{
		{rules.Policy{}, seccomp.Config{}},
		{rules.Policy{Network: rules.Network{Mode: rules.NetworkAllow}}, seccomp.Config{}},
		{rules.Policy{Network: rules.Network{Mode: rules.NetworkDeny}}, seccomp.Config{Sockets: seccomp.LocalSockets}},
		{rules.Policy{Network: rules.Network{Mode: rules.NetworkPorts}}, seccomp.Config{Sockets: seccomp.TCPSockets}},
		{rules.Policy{Network: rules.Network{Mode: rules.NetworkPorts, UDP: true}}, seccomp.Config{Sockets: seccomp.TCPAndUDPSockets}},
		{rules.Policy{Isolate: rules.IsolateTTY}, seccomp.Config{NoTerminalInput: true}},
		{rules.Policy{Isolate: rules.IsolateUnixSockets}, seccomp.Config{NoUnixSockets: true}},
		{rules.Policy{Isolate: rules.IsolateSignals | rules.IsolateAbstractUnix | rules.IsolateProc}, seccomp.Config{}},
	} {
		if got := filterFor(&row.p); got != row.want {
			t.Errorf("%+v: %+v, want %+v", row.p.Network, got, row.want)
		}
	}
}
