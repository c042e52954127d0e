package shim

import (
	"errors"
	"fmt"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// knownABI is the newest Landlock ABI whose rights this program knows. A newer
// kernel is used as if it had this one: what it adds stays unhandled.
const knownABI = 9

// probeLandlock asks the kernel for its Landlock ABI. Landlock can be absent
// (ENOSYS), switched off at boot (EOPNOTSUPP), or kept away by a container's
// seccomp profile (EPERM); all three mean that it is not available.
func probeLandlock() rules.Kernel {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return rules.Kernel{Unavailable: unavailable(err)}
	}
	k := rules.Kernel{ABI: abi}
	if errata, err := ll.LandlockGetErrata(); err == nil {
		k.Errata = errata
	}
	return k
}

func unavailable(err error) string {
	switch {
	case errors.Is(err, unix.ENOSYS):
		return "this kernel has no Landlock"
	case errors.Is(err, unix.EOPNOTSUPP):
		return "Landlock is switched off on this kernel"
	case errors.Is(err, unix.EPERM):
		return "the system call is not permitted here"
	default:
		return err.Error()
	}
}

// unavailableHint says what can be done about it.
func unavailableHint(k rules.Kernel) string {
	switch k.Unavailable {
	case "this kernel has no Landlock":
		return "Landlock needs Linux 5.13 or newer, built with CONFIG_SECURITY_LANDLOCK; a container's seccomp profile may also hide it"
	case "Landlock is switched off on this kernel":
		return `add "landlock" to the kernel's lsm= boot parameter`
	case "the system call is not permitted here":
		return "a container's seccomp profile probably forbids the landlock_* system calls"
	default:
		return ""
	}
}

// A ruleset is the one Landlock ruleset of a launch, and the sink of the
// compiler. Rights that the kernel does not know are left out of what it
// handles and of each rule.
type ruleset struct {
	fd      int
	handled rules.Access
	// needed holds the real paths of what must be granted for the program to
	// start; granted those of them that a rule covers.
	needed  []string
	granted map[string]bool
}

// newRuleset makes an empty ruleset: enforced like this, it denies everything.
func newRuleset(k rules.Kernel) (*ruleset, error) {
	handled := rules.Handled(min(k.ABI, knownABI))
	fd, err := ll.LandlockCreateRuleset(&ll.RulesetAttr{HandledAccessFS: uint64(handled)}, 0)
	if err != nil {
		return nil, fmt.Errorf("create the Landlock ruleset: %w", err)
	}
	return &ruleset{fd: fd, handled: handled, granted: map[string]bool{}}, nil
}

// Grant adds a rule on the inode that the compiler looked at.
func (rs *ruleset) Grant(g rules.Grant, n pathcheck.Node) error {
	fd, ok := pathcheck.FD(n)
	if !ok {
		return errors.New("not a node of this file system")
	}
	access := g.Access & rs.handled
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
		if pathcheck.Within(g.Path, path) && access&rules.Execute != 0 {
			rs.granted[path] = true
		}
	}
	return nil
}

// restrict puts the calling thread into the domain of the ruleset. It must be
// the thread that calls execve, for that one alone survives.
func (rs *ruleset) restrict() error {
	err := ll.LandlockRestrictSelf(rs.fd, 0)
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
