package shim

import (
	"errors"
	"slices"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/confine"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/planner"
)

// confine is everything between a request and a proven domain.
func (l *launch) confine() error {
	p := l.request.Policy

	// Ask the kernel; the namespace comes before anything else looks at mounts.
	l.step.is("entering namespaces")
	var err error
	if l.namespace, err = confine.EnterNamespace(p, confine.AskKernel(), l.protected); err != nil {
		return fail("namespace", err)
	}
	kernel := l.namespace.Kernel
	l.kernel = &kernel
	l.request = l.request.guarding(l.namespace.Guard)
	p = l.request.Policy
	if err := l.demand(l.gaps(), confine.Hint(kernel)); err != nil {
		return err
	}

	// Precreate, before the walk, so that it sees what was made.
	if err := l.precreate(); err != nil {
		return err
	}

	// Plan and walk.
	ruleset, err := l.makePlan(kernel)
	defer ruleset.Close()
	if err != nil {
		return planFailure(err)
	}
	defer l.plan.Close()

	// Check the command, before anything of this process is changed.
	l.step.is("checking the command")
	if l.checked, err = l.checkCommand(); err != nil {
		return err
	}

	// Close descriptors: what the launcher left open is judged by the plan, and
	// before it could be of use to anybody.
	var files *plan.Plan
	if l.plan != nil {
		files = l.plan.Files
	}
	if l.closed, err = confine.CloseDescriptors(l.foreign(), p, files, l.namespace); err != nil {
		return fail("descriptors", err)
	}

	// Enter. The walk came before: it may have needed a capability that is gone now.
	if l.domain, err = confine.Enter(p, kernel, ruleset, l.step.is); err != nil {
		return fail("confinement", err)
	}
	l.warn(l.domain.Warning)
	if l.domain.Ruleset != nil && files != nil {
		l.warn(files.CwdFrozen())
	}

	// Prove, and once more demand, by what was entered.
	l.step.is("proving the confinement")
	if err := l.domain.Prove(l.plan, l.program.Path); err != nil {
		return fail(confine.Doubt(err), err)
	}
	if err := l.namespace.Prove(l.domain.InForce()); err != nil {
		return fail(confine.Doubt(err), err)
	}
	return l.stopFor(l.gaps(), "")
}

// precreate makes the directories and files that the policy asks for.
func (l *launch) precreate() (err error) {
	l.step.is("making the directories to precreate")
	if l.precreated, err = planner.Precreate(l.request.Policy); err != nil {
		return fail("policy", err)
	}
	return nil
}

// makePlan plans, where the policy confines files, and returns the ruleset with its
// grants; nil where there is nothing for this kernel's Landlock.
func (l *launch) makePlan(k rules.Kernel) (rs *confine.Ruleset, err error) {
	p := l.request.Policy
	if !p.ConfinesFiles() {
		if p.UsesLandlock() && k.ABI > 0 {
			return confine.NewRuleset(p, k, nil)
		}
		return nil, nil
	}
	var sink func([]string) (plan.Sink, error)
	if k.ABI > 0 {
		sink = func(needed []string) (plan.Sink, error) {
			rs.Close() // that of a plan that was given up
			rs, err = confine.NewRuleset(p, k, needed)
			return rs, err
		}
	}
	if l.plan, err = planner.Make(l.input(), sink); err != nil {
		return rs, err
	}
	for _, text := range l.plan.Files.Warnings {
		l.warn(text)
	}
	return rs, nil
}

// foreign is what the launcher left open for the program: not the descriptors that
// were taken for the report and the log. One that the policy names for them and that
// could not be taken is judged like every other.
func (l *launch) foreign() []int {
	return slices.DeleteFunc(slices.Clone(l.inherited), func(fd int) bool {
		return l.out.Takes(fd) || l.logTo.Takes(fd)
	})
}

// demand stops a required launch for a guarantee that cannot be given; another
// one goes on with a warning.
func (l *launch) demand(gaps []rules.Gap, hint string) error {
	if err := l.stopFor(gaps, hint); err != nil {
		return err
	}
	var lost []string
	for _, g := range gaps {
		if isMissing(g) {
			lost = append(lost, g.What+" ("+g.Why+")")
		}
	}
	if lost != nil {
		l.warn("not enforced: " + strings.Join(lost, ", "))
	}
	return nil
}

// isMissing tells a guarantee that is not given from a limit.
func isMissing(g rules.Gap) bool { return !g.Limit }

// stopFor is the error of a required launch for the first guarantee among gaps.
func (l *launch) stopFor(gaps []rules.Gap, hint string) error {
	for _, g := range gaps {
		if isMissing(g) && l.request.Policy.Required {
			return &failure{
				code: exitShim, what: "cannot enforce " + g.What, err: errors.New(g.Why + `; the policy is "required"`), hint: hint,
			}
		}
	}
	return nil
}

// A commandResult is what the command check has found.
type commandResult struct {
	// done is set where a command string was read and names nothing that is not
	// allowed; unseen says what of it could not be seen, or "".
	done   bool
	unseen string
}
