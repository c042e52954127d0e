package shim

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/output"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
)

// openOutputs opens report and log before the confinement, which may hide
// where they are. A report that cannot be written stops a required launch; a
// log never stops one.
func (l *launch) openOutputs() (err error) {
	p := l.request.Policy
	if l.out, err = output.Open(p.Report, l.inherited); err != nil {
		if p.Required {
			return fail("report", err)
		}
		output.Say(output.Name(l.program.Name), "warning", "no report: "+err.Error())
	}
	if l.logTo, err = output.Open(p.Log.To, l.inherited); err != nil {
		l.request = l.request.with(rules.Gap{What: "log", Why: err.Error(), Limit: true})
		output.Say(output.Name(l.program.Name), "warning", "no log: "+err.Error())
	} else if l.logTo != nil && p.Log.Level != "" {
		l.log = output.NewLogger(p.Log.Level, l.logTo)
	}
	return nil
}

// writeReport writes what is about to be started.
func (l *launch) writeReport() error {
	r := l.report(nil)
	hidden, exposed := l.request.derived()
	l.log.Info("launch", "pid", r.PID, "target", r.Target, "mechanism", r.Mechanism, "hidden", list(r.Hidden), "exposed", list(r.Exposed),
		"run_hidden", list(hidden), "run_exposed", list(exposed))
	if l.out == nil {
		return nil
	}
	_, err := l.out.Write(r.Line())
	switch {
	case err == nil:
		return nil
	case l.request.Policy.Required:
		return fail("report", err)
	}
	output.Say(output.Name(l.program.Name), "warning", "no report: "+err.Error())
	return nil
}

// conclude writes the report of a launch that failed, if it came so far as to
// have one.
func (l *launch) conclude(f *failure) {
	l.log.Error("not started", "error", output.OneLine(f.Error()))
	if l.out != nil {
		// Nothing is left to do about an error here but to say the first one.
		_, _ = l.out.Write(l.report(f).Line())
	}
}

// report says what came of the launch, which failed unless f is nil. Nothing asks
// it: what was decided went by the values that it is made from.
func (l *launch) report(f *failure) *report.Report {
	r := &report.Report{
		Version: 1, Time: time.Now().UTC().Format(report.TimeFormat), Shim: l.call.Version, PID: unix.Getpid(),
		Target: l.program.Path, Outcome: report.OutcomeExec, Mechanism: report.MechanismNone, Network: string(rules.NetworkAllow),
		Precreated: l.precreated, Dropped: l.request.Dropped, Warning: strings.Join(l.warnings, "; "),
	}
	if f != nil {
		r.Outcome, r.Error = report.OutcomeError, output.OneLine(f.Error())
	}
	if len(l.call.Argv) > 0 {
		r.Argv0 = l.call.Argv[0]
	}
	for _, d := range l.closed {
		r.Descriptors = append(r.Descriptors, report.Descriptor(d))
	}
	if l.plan != nil {
		for _, h := range l.plan.Files.Hidden {
			r.Hidden = append(r.Hidden, h.Path)
		}
		for _, x := range l.plan.Files.Exposed {
			r.Exposed = append(r.Exposed, x.Path)
		}
	}
	r.Enforced, r.NotEnforced = l.enforced(), l.gaps()
	if l.domain != nil {
		l.reportDomain(r)
	} else if l.request.Policy.Confines() {
		r.Mechanism = report.MechanismUnavailable
	}
	r.ElapsedUS = time.Since(l.began).Microseconds()
	return r
}

// reportDomain adds what was entered. Only a domain freezes anything, or makes
// anything but its roots read-only.
func (l *launch) reportDomain(r *report.Report) {
	p, d := l.request.Policy, l.domain
	// The filter that every launch has is named where a key rests on it.
	landlock, filter := d.Ruleset != nil, !d.Filter.Empty() && p.UsesSeccomp()
	if p.UsesLandlock() && l.kernel.ABI > 0 {
		r.Landlock = &report.Landlock{ABI: l.kernel.ABI, Errata: l.kernel.Errata}
		if l.plan != nil {
			r.Landlock.Rules = l.plan.Rules
		}
	}
	switch {
	case landlock && filter:
		r.Mechanism = report.MechanismBoth
	case landlock:
		r.Mechanism = report.MechanismLandlock
	case p.UsesLandlock() && d.InForce().ABI == 0 && slices.ContainsFunc(r.NotEnforced, isMissing):
		r.Mechanism = report.MechanismUnavailable
	case filter:
		r.Mechanism = report.MechanismSeccomp
	}
	if landlock {
		r.Landlock.Layers = 1
		if l.plan != nil {
			r.Frozen, r.WritableDirs = l.plan.Frozen, l.plan.Files.WritableDirs()
		}
	}
	portsFree := slices.ContainsFunc(r.NotEnforced, func(g rules.Gap) bool {
		return isMissing(g) && (g.What == "connect-tcp" || g.What == "bind-tcp")
	})
	if filter && p.ConfinesNetwork() && !portsFree {
		r.Network = string(p.Network.Mode)
	}
}

// inForce is what the policy gets of the kernel: before the domain is entered, what
// it offers.
func (l *launch) inForce() rules.Kernel {
	if l.domain != nil {
		return l.domain.InForce()
	}
	return *l.kernel
}

// enforced is what holds.
func (l *launch) enforced() []rules.Enforcement {
	if l.domain == nil {
		return nil // nothing was entered
	}
	held, _ := rules.Assess(l.request.Policy, l.domain.InForce())
	if l.domain.Capabilities {
		held = append(held, rules.Enforcement{What: "capabilities", By: rules.ByCapabilities})
	}
	if l.checked.done {
		held = append(held, rules.Enforcement{What: "command", By: rules.ByCommandCheck})
	}
	return held
}

// gaps is what does not hold, as far as the launch has come.
func (l *launch) gaps() []rules.Gap {
	gaps := slices.Clone(l.request.gaps)
	if l.kernel != nil {
		_, more := rules.Assess(l.request.Policy, l.inForce())
		gaps = append(gaps, more...)
	}
	if l.namespace != nil {
		gaps = append(gaps, l.namespace.Gaps...)
	}
	if l.plan != nil {
		gaps = append(gaps, l.plan.Gaps...)
	}
	if l.domain != nil {
		gaps = append(gaps, l.domain.Gaps...)
	}
	if l.checked.unseen != "" {
		gaps = append(gaps, rules.Gap{What: "command", Why: l.checked.unseen, Limit: true})
	}
	return gaps
}

// list is never null in JSON.
func list(paths []string) []string { return append([]string{}, paths...) }
