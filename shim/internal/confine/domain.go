package confine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/seccomp"
)

// A Domain is what the calling thread has entered. The proof goes by it, and so
// does the report.
type Domain struct {
	// Ruleset is in force; nil where none is.
	Ruleset *Ruleset
	// Filter is in force; empty where none can be loaded.
	Filter seccomp.Config
	// Capabilities is set where those that reach around the confinement were taken.
	Capabilities bool
	// Gaps are the capabilities that are still held.
	Gaps []rules.Gap
	// Warning says what was asked for and could not be entered, "" when all was.
	Warning string

	asked   *rules.Policy
	offered rules.Kernel
	// behind is set where the launcher had a filter of its own in force.
	behind bool
	// noRuleset says why a ruleset that was made is not in force.
	noRuleset string
}

// Enter confines the calling thread, which must be the one that calls execve, for
// that one alone survives: no_new_privs and capabilities, then the ruleset, nil for
// none, then the seccomp filter. k must be what the kernel offers, with the private
// /proc if there is one. step is told what begins. After an error nothing may be
// started.
func Enter(p *rules.Policy, k rules.Kernel, rs *Ruleset, step func(string)) (*Domain, error) {
	d := &Domain{asked: p, offered: k}
	step("dropping privileges")
	// Without it an unprivileged process may not restrict itself, and a set-id
	// program would leave the domain's purpose behind.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := d.dropCapabilities(); err != nil {
		return nil, err
	}
	if rs != nil {
		step("enforcing the ruleset")
		if err := d.restrict(rs); err != nil {
			return nil, err
		}
	}
	// Last, since nothing behind it needs a system call that it refuses.
	if k.NoSeccomp == "" {
		step("loading the seccomp filter")
		c := filterFor(p)
		d.behind = seccomp.Filtered()
		if err := seccomp.Load(c); err != nil {
			return nil, err
		}
		d.Filter = c
	}
	return d, nil
}

// Foresee is the domain that Enter would return, as far as it is known without
// entering it.
func Foresee(p *rules.Policy, k rules.Kernel) *Domain {
	d := &Domain{asked: p, offered: k, Capabilities: p.Capabilities != rules.CapabilitiesKeep}
	if p.UsesLandlock() && k.ABI > 0 {
		d.Ruleset = &Ruleset{fd: -1}
	}
	if k.NoSeccomp == "" {
		d.Filter = filterFor(p)
	}
	return d
}

func (d *Domain) dropCapabilities() error {
	if d.asked.Capabilities == rules.CapabilitiesKeep {
		if names := dangerousHeld(); names != "" {
			d.limit("kept as the policy says; these reach around the confinement: " + names)
		}
		return nil
	}
	if err := restrictCapabilities(); err != nil {
		if d.asked.Required {
			return err
		}
		d.Gaps = append(d.Gaps, rules.Gap{What: "capabilities", Why: err.Error()})
		d.Warning = "capabilities are kept: " + err.Error()
		return nil
	}
	d.Capabilities = true
	if unix.Geteuid() == 0 && boundingExceeds() {
		d.limit("without CAP_SETPCAP the bounding set stays as it is; no_new_privs keeps the program from gaining anything by it")
	}
	return nil
}

func (d *Domain) limit(why string) {
	d.Gaps = append(d.Gaps, rules.Gap{What: "capabilities", Why: why, Limit: true})
}

// restrict enters the ruleset. Where the kernel takes no more, whatever confined the
// caller holds as before.
func (d *Domain) restrict(rs *Ruleset) error {
	err := rs.restrict()
	if errors.Is(err, errTooManyLayers) && !d.asked.Required {
		d.noRuleset = err.Error()
		d.Warning = "this launch adds no confinement by Landlock: " + err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	d.Ruleset = rs
	return nil
}

// InForce is what the kernel offered, less what was not entered: what a policy gets
// of it is what holds.
func (d *Domain) InForce() rules.Kernel {
	k := d.offered
	switch {
	case d.noRuleset != "":
		k.ABI, k.Errata, k.Unavailable = 0, 0, d.noRuleset
	case d.Ruleset == nil && d.asked.ConfinesFiles() && k.ABI > 0:
		k.ABI, k.Errata, k.Unavailable = 0, 0, "no ruleset was enforced"
	}
	for _, c := range []*rules.Closure{&k.KernelFiles, &k.ControlGroups} {
		if c.By == rules.ByLandlock && k.ABI == 0 {
			*c = rules.Closure{Why: "Landlock is not available: " + k.Unavailable}
		}
	}
	if d.Filter.Empty() && k.NoSeccomp == "" {
		k.NoSeccomp = "no filter was loaded"
	}
	if !d.Capabilities && d.asked.Capabilities != rules.CapabilitiesKeep {
		c, err := readCapabilities()
		k.ProcCapabilities = err != nil || c.seeProcesses()
	}
	return k
}
