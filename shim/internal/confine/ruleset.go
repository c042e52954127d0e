package confine

import (
	"errors"
	"fmt"
	"slices"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// knownABI is the newest Landlock ABI whose rights this program knows. A newer
// kernel is used as if it had this one: what it adds stays unhandled.
const knownABI = 9

// A Ruleset is the one Landlock ruleset of a launch, and takes the grants of its
// plan. Rights that the kernel does not know are left out of what it handles and of
// each rule.
type Ruleset struct {
	fd      int
	handled plan.Access
	// withheld is what no rule grants.
	withheld plan.Access
	// ports and scopes are handled, too (linux/landlock.h).
	ports, scopes uint64
	// flags are those of landlock_restrict_self(2).
	flags uint32
	// missing holds the real paths of what must be granted for the program to
	// start and is not yet.
	missing []string
}

// NewRuleset makes the ruleset of p without rules: enforced like this, it denies
// everything that it handles. needed are the real paths of what the program needs to
// start. It returns nil where this kernel's Landlock knows nothing of what is asked.
func NewRuleset(p *rules.Policy, k rules.Kernel, needed []string) (*Ruleset, error) {
	abi := min(k.ABI, knownABI)
	attr := ll.RulesetAttr{}
	rs := &Ruleset{missing: slices.Clone(needed)}
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
		return nil, nil
	}
	rs.ports, rs.scopes = attr.HandledAccessNet, attr.Scoped
	fd, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return nil, fmt.Errorf("create the Landlock ruleset: %w", err)
	}
	rs.fd = fd
	if abi >= 4 {
		if err := rs.grantPorts(p.Network); err != nil {
			rs.Close()
			return nil, err
		}
	}
	return rs, nil
}

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

func (rs *Ruleset) grantPorts(n rules.Network) error {
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

// Grant adds a rule on the inode that the walk looked at.
func (rs *Ruleset) Grant(g plan.Grant, n pathcheck.Node) error {
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
	if access&plan.Execute != 0 {
		rs.missing = slices.DeleteFunc(rs.missing, func(path string) bool { return pathcheck.Within(g.Path, path) })
	}
	return nil
}

// restrict puts the calling thread into the domain of the ruleset. It must be
// the thread that calls execve, for that one alone survives.
func (rs *Ruleset) restrict() error {
	err := ll.LandlockRestrictSelf(rs.fd, rs.flags)
	if errors.Is(err, unix.E2BIG) {
		return errTooManyLayers
	}
	if err != nil {
		return fmt.Errorf("enforce the Landlock ruleset: %w", err)
	}
	return nil
}

// Close closes the descriptor. It may be called on nil, and when the ruleset is in
// force.
func (rs *Ruleset) Close() {
	if rs != nil && rs.fd >= 0 {
		unix.Close(rs.fd)
		rs.fd = -1
	}
}

// errTooManyLayers is the kernel's limit of 16 nested domains (landlock(7)).
var errTooManyLayers = errors.New("16 Landlock domains are stacked already, the kernel takes no more")
