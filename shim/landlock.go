package shim

import (
	"errors"
	"fmt"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// knownABI is the newest Landlock ABI whose rights this program knows. A newer
// kernel is used as if it had this one: what it adds stays unhandled.
const knownABI = 9

// A ruleset is the one Landlock ruleset of a launch, and the sink of the
// compiler. Rights that the kernel does not know are left out of what it
// handles and of each rule.
type ruleset struct {
	fd      int
	handled plan.Access
	// withheld is what no rule grants.
	withheld plan.Access
	// flags are for restrict.
	flags uint32
	// needed holds the real paths of what must be granted for the program to
	// start; granted those of them that a rule covers.
	needed  []string
	granted map[string]bool
}

// newRuleset makes the ruleset of p without rules: enforced like this, it denies
// everything that it handles.
func newRuleset(p *rules.Policy, k rules.Kernel) (*ruleset, error) {
	abi := min(k.ABI, knownABI)
	attr := ll.RulesetAttr{}
	rs := &ruleset{granted: map[string]bool{}}
	if p.ConfinesFiles() {
		rs.handled = plan.Handled(abi)
		attr.HandledAccessFS = uint64(rs.handled)
	}
	if p.Isolate.Has(rules.IsolateUnixSockets) {
		rs.withheld = plan.ResolveUnix
	}
	if abi >= 7 {
		// What the shim itself tries is no news.
		rs.flags = ll.FlagRestrictSelfLogSameExecOff
		if p.Audit {
			rs.flags |= ll.FlagRestrictSelfLogNewExecOn
		}
	}
	if abi >= 4 {
		attr.HandledAccessNet = handledNetwork(p.Network)
	}
	if abi >= 6 {
		if p.Isolate.Has(rules.IsolateAbstractUnix) {
			attr.Scoped |= ll.ScopeAbstractUnixSocket
		}
		if p.Isolate.Has(rules.IsolateSignals) && k.HasSignalScope() {
			attr.Scoped |= ll.ScopeSignal
		}
	}
	if attr == (ll.RulesetAttr{}) {
		return nil, errNothingHandled
	}
	fd, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return nil, fmt.Errorf("create the Landlock ruleset: %w", err)
	}
	rs.fd = fd
	if abi >= 4 {
		if err := rs.grantPorts(p.Network); err != nil {
			rs.close()
			return nil, err
		}
	}
	return rs, nil
}

// errNothingHandled says that this kernel's Landlock has no verb for anything
// that the policy asks of it.
var errNothingHandled = errors.New("nothing that this kernel's Landlock knows")

// handledNetwork returns the rights that are denied unless a port is granted.
func handledNetwork(n rules.Network) uint64 {
	var handled uint64
	if n.Mode == rules.NetworkDeny || n.Mode == rules.NetworkPorts && n.ConnectTCP != nil {
		handled |= ll.AccessNetConnectTCP
	}
	if n.Mode == rules.NetworkDeny || n.Mode == rules.NetworkPorts && n.BindTCP != nil {
		handled |= ll.AccessNetBindTCP
	}
	return handled
}

func (rs *ruleset) grantPorts(n rules.Network) error {
	if n.Mode != rules.NetworkPorts {
		return nil
	}
	for _, list := range []struct {
		access uint64
		ports  []uint16
	}{{ll.AccessNetConnectTCP, n.ConnectTCP}, {ll.AccessNetBindTCP, n.BindTCP}} {
		for _, port := range list.ports {
			err := ll.LandlockAddNetPortRule(rs.fd, &ll.NetPortAttr{AllowedAccess: list.access, Port: uint64(port)}, 0)
			if err != nil {
				return fmt.Errorf("add a Landlock rule for port %d: %w", port, err)
			}
		}
	}
	return nil
}

// Grant adds a rule on the inode that the compiler looked at.
func (rs *ruleset) Grant(g plan.Grant, n pathcheck.Node) error {
	fd, ok := pathcheck.FD(n)
	if !ok {
		return errors.New("not a node of this file system")
	}
	access := g.Access & rs.handled &^ rs.withheld
	if access == 0 {
		return nil
	}
	err := ll.LandlockAddPathBeneathRule(rs.fd, &ll.PathBeneathAttr{AllowedAccess: uint64(access), ParentFd: fd}, 0)
	if errors.Is(err, unix.EBADFD) {
		return nil // an internal file system such as nsfs, for which no rule is needed
	}
	if err != nil {
		return fmt.Errorf("add a Landlock rule: %w", err)
	}
	for _, path := range rs.needed {
		if pathcheck.Within(g.Path, path) && access&plan.Execute != 0 {
			rs.granted[path] = true
		}
	}
	return nil
}

// restrict puts the calling thread into the domain of the ruleset. It must be
// the thread that calls execve, for that one alone survives.
func (rs *ruleset) restrict() error {
	err := ll.LandlockRestrictSelf(rs.fd, rs.flags)
	if errors.Is(err, unix.E2BIG) {
		return errTooManyLayers
	}
	if err != nil {
		return fmt.Errorf("enforce the Landlock ruleset: %w", err)
	}
	return nil
}

func (rs *ruleset) close() { unix.Close(rs.fd) }

// errTooManyLayers is the kernel's limit of 16 nested domains (landlock(7)).
var errTooManyLayers = errors.New("16 Landlock domains are stacked already, the kernel takes no more")
