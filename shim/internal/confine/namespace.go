package confine

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/planner"
)

// A Namespace is the mount namespace of a launch, and what stands in it: whatever its
// policy needs that no ruleset gives. A launch that needs nothing of it, or may not make
// one (CAP_SYS_ADMIN), stays where it is.
type Namespace struct {
	// Kernel is what the kernel offers, with what came of the namespace.
	Kernel rules.Kernel
	// Guard is set where a ruleset over files must close what no mount closes.
	Guard bool
	// ReadOnly are the paths that mounts keep from being changed.
	ReadOnly []string
	// Gaps is what of the namespace the program can undo.
	Gaps []rules.Gap

	policy *rules.Policy
	// dry is set for one that is only foreseen.
	dry bool
	// entered is set once mounts are this launch's own.
	entered bool
	// covered are the paths on which it has mounted.
	covered []string
	was     outside
}

// outside is what the proof compares with.
type outside struct {
	ipc      string // the link of the IPC namespace
	terminal string // the name of a terminal that is not the launch's
}

// errNoAdmin is why a launch makes no namespace.
var errNoAdmin = errors.New("it needs CAP_SYS_ADMIN")

// EnterNamespace puts the calling thread into namespaces of its own, as far as p asks for
// what only they give. protected gives the paths of [planner.Protected]. It comes before
// everything that looks at mounts: what is mounted outside later still arrives inside,
// nothing inside gets out.
//
// An error says that this thread stands where its namespace does not reach: nothing may
// be started.
func EnterNamespace(p *rules.Policy, k rules.Kernel, protected func() []string) (*Namespace, error) {
	n := &Namespace{Kernel: k, policy: p}
	return n, n.enter(protected)
}

// ForeseeNamespace is EnterNamespace as far as it is known without doing it.
func ForeseeNamespace(p *rules.Policy, k rules.Kernel, protected func() []string) *Namespace {
	n := &Namespace{Kernel: k, policy: p, dry: true}
	_ = n.enter(protected) // it goes nowhere
	return n
}

// enter is the order of the namespace. Each step that fails leaves what it was to
// replace, and its promise unkept.
func (n *Namespace) enter(protected func() []string) error {
	p := n.policy
	root := planner.Power() == 0
	c, err := readCapabilities()
	n.Kernel.ProcCapabilities = p.Isolate.Has(rules.IsolateProc) && (err != nil || p.Capabilities == rules.CapabilitiesKeep && c.seeProcesses())
	if err == nil && c.effective&(1<<unix.CAP_SYS_ADMIN) == 0 {
		err = errNoAdmin
	}

	// A ruleset that splits "/" grants /proc and /sys for reading.
	byRuleset := n.Kernel.ABI > 0 && (len(p.Hidden) > 0 || p.Scope == rules.ScopeWorkspace)
	kernel := root && !byRuleset
	tabled := p.Isolate&(rules.IsolateProc|rules.IsolateTTY|rules.IsolateIPC) != 0
	var paths []string
	if err == nil {
		paths = protected()
	}
	if err == nil && (kernel || tabled || len(paths) > 0) {
		err = n.own()
	}
	var table pathcheck.Mounts
	if err == nil && tabled {
		table, err = planner.MountTable(nil)
	}
	// The private /proc first: what is made read-only stands on it.
	n.proc(table, err)
	n.kernelFiles(root, byRuleset, err)
	n.protect(paths, err)
	n.Kernel.Terminals = n.step(rules.IsolateTTY, rules.ByMountNamespace, err, func() error { return n.terminals(table) })
	n.Kernel.IPC = n.step(rules.IsolateIPC, rules.ByIPCNamespace, err, func() error { return n.ipc(table) })
	if p.Capabilities == rules.CapabilitiesKeep && n.entered {
		n.Gaps = append(n.Gaps, rules.Gap{
			What: "namespace", Limit: true,
			Why: "CAP_SYS_ADMIN is kept, with which the program can undo the read-only mounts of its namespace",
		})
	}
	return n.comeBack()
}

// comeBack goes to the current directory by its path, where that has been mounted over:
// it would be the way to what is beneath.
func (n *Namespace) comeBack() error {
	if len(n.covered) == 0 {
		return nil
	}
	dir, err := unix.Getwd()
	if err != nil || !slices.ContainsFunc(n.covered, func(point string) bool { return pathcheck.Within(point, dir) }) {
		return nil // a directory without a path is none of a place that has one
	}
	if err := unix.Chdir(dir); err != nil {
		return fmt.Errorf("go to the current directory again: %w", err)
	}
	return nil
}

// own makes the mount namespace.
func (n *Namespace) own() error {
	if n.dry {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	// Before anything is mounted, or it would be mounted outside, too.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("take / out of the propagation of mounts: %w", err)
	}
	n.entered = true
	return nil
}

// step does what an element of "isolate" asks for, or says why it cannot be done.
func (n *Namespace) step(what rules.Isolation, by string, unable error, do func() error) rules.Closure {
	if !n.policy.Isolate.Has(what) {
		return rules.Closure{}
	}
	err := unable
	if err == nil && !n.dry {
		err = do()
	}
	if err != nil {
		return rules.Closure{Why: err.Error()}
	}
	return rules.Closure{By: by}
}

// proc puts the private /proc into its place, for a domain to show itself in.
func (n *Namespace) proc(table pathcheck.Mounts, unable error) {
	k := &n.Kernel
	if !n.policy.Isolate.Has(rules.IsolateProc) {
		return
	}
	err := unable
	switch {
	case k.ABI == 0:
		err = errors.New("Landlock is not available: " + k.Unavailable)
	case err != nil:
	case n.dry:
		_, _, k.ProcElsewhere, err = findProc(table)
	default:
		k.ProcElsewhere, err = privateProc(table)
	}
	if k.PrivateProc = err == nil; err != nil {
		k.NoPrivateProc = err.Error()
	}
}

// kernelFiles closes the files that act on the kernel itself to root, and the control
// groups to whoever may not signal: by a ruleset that is made anyway, by mounts, or by
// a ruleset that is made for them.
func (n *Namespace) kernelFiles(root, byRuleset bool, unable error) {
	k, signals := &n.Kernel, n.policy.Isolate.Has(rules.IsolateSignals)
	set := func(c rules.Closure) {
		if root {
			k.KernelFiles = c
		}
		if signals {
			k.ControlGroups = c
		}
	}
	if !root && !signals {
		return
	}
	if byRuleset {
		set(rules.Closure{By: rules.ByLandlock})
		return
	}
	table, err := planner.MountTable(actsOnKernel)
	if root && unable == nil {
		if unable = err; err == nil && !n.dry {
			unable = n.closeKernelFiles(table)
		}
		if unable == nil {
			set(rules.Closure{By: rules.ByMountNamespace})
			return
		}
	}
	switch {
	case err == nil && kernelFilesClosed(table, root):
		set(rules.Closure{By: rules.ByMountNamespace}) // of whoever made this one
	case k.ABI > 0:
		n.Guard = true
		set(rules.Closure{By: rules.ByLandlock})
	case unable != nil:
		set(rules.Closure{Why: "no read-only mounts: " + unable.Error() + ", and Landlock is not available: " + k.Unavailable})
	default:
		set(rules.Closure{Why: "Landlock is not available: " + k.Unavailable})
	}
}

// protect mounts what the next launch rests on read-only.
func (n *Namespace) protect(paths []string, unable error) {
	for _, path := range paths {
		if unable == nil && (n.dry || n.bindReadOnly(path) == nil) {
			n.ReadOnly = append(n.ReadOnly, path)
		}
	}
}

// Sealed is ReadOnly as far as the program cannot undo it.
func (n *Namespace) Sealed() []string {
	if n == nil || n.policy == nil || n.policy.Capabilities == rules.CapabilitiesKeep {
		return nil
	}
	return n.ReadOnly
}
