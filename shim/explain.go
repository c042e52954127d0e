package shim

import (
	"path"
	"slices"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/confine"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/planner"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/target"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
)

// An Explanation says what a launch would do.
type Explanation struct {
	// Report is what the launch would report, as far as that can be known
	// without making it: nothing of it was tried, and Enforced is what this
	// kernel is able to hold.
	Report report.Report
	// Grants is everything that stays open, in the order of the walk, where the
	// policy confines files.
	Grants []plan.Grant
	// Made are directories and files that the launch would make first. Those of
	// them that are exposed are not among the grants.
	Made []string
}

// Explain is a launch of p that stops before it changes anything: nothing is
// confined, made, written or started. Of c it uses Argv and Envp, without the policy
// variable, and ExecFn as the path of the shim. program is the absolute path of the
// real program. It is the plan of this process: its user, capabilities, current
// directory and mounts.
//
// The error is that with which the launch would stop before it has looked at what
// holds; a guarantee that cannot be given is no error, but a gap of the report.
func Explain(p *rules.Policy, source load.Source, program string, c *Call) (*Explanation, error) {
	l := newLaunch(c)
	l.self = target.Self{Path: c.ExecFn, Invoked: c.ExecFn}
	name := l.self.Name()
	if name == "" {
		name = path.Base(program)
	}
	l.program = target.At(program, name)
	l.request = newRequest(p, source, c.Envp)
	var err error
	if l.request, err = l.resolve(); err != nil {
		return nil, err
	}
	p = l.request.Policy
	l.namespace = &confine.Namespace{Kernel: confine.AskKernel()}
	if p.Confines() {
		l.namespace = confine.ForeseeNamespace(p, l.namespace.Kernel, l.protected)
	}
	kernel := l.namespace.Kernel
	l.kernel = &kernel
	l.request = l.request.guarding(l.namespace.Guard)
	x := &Explanation{}
	l.request, x.Made = l.request.unmade()
	if l.request.Policy.ConfinesFiles() {
		in := l.input()
		in.Dry = true
		var sink plan.Recorder
		l.plan, err = planner.Make(in, func([]string) (plan.Sink, error) {
			sink.Grants = nil
			return &sink, nil
		})
		if err != nil {
			return nil, planFailure(err)
		}
		defer l.plan.Close()
		x.Grants, x.Made = sink.Grants, append(x.Made, l.plan.Made...)
		for _, text := range append(l.plan.Files.Warnings, l.plan.Files.CwdFrozen()) {
			if text != "" {
				l.warnings = append(l.warnings, text)
			}
		}
	}
	if l.checked, err = l.checkCommand(); err != nil {
		return nil, err
	}
	if l.request.Policy.Confines() {
		l.domain = confine.Foresee(l.request.Policy, kernel)
	}
	x.Report = *l.report(nil)
	if l.plan != nil { // also where no kernel would hold it
		x.Report.Frozen, x.Report.WritableDirs = l.plan.Frozen, l.plan.Files.WritableDirs()
	}
	return x, nil
}

// unmade returns what the launch would make, and the request without what is exposed
// and does not exist before that.
func (r *request) unmade() (*request, []string) {
	var made []string
	missing := func(path string) bool {
		loc, err := pathcheck.Resolve(pathcheck.OS{}, path)
		return err == nil && !loc.Exists && !loc.Denied
	}
	p := *r.Policy
	for _, e := range p.Precreate {
		if missing(e.Path) {
			made = append(made, e.Path)
		}
	}
	p.Exposed = slices.DeleteFunc(slices.Clone(p.Exposed), func(e rules.Entry) bool {
		if !missing(e.Path) {
			return false
		}
		if e.Derived != nil && e.Derived.Kind != rules.KindNone {
			made = append(made, e.Path)
			return true
		}
		return slices.ContainsFunc(p.Precreate, func(m rules.Entry) bool { return pathcheck.Within(e.Path, m.Path) })
	})
	more := *r
	more.Policy = &p
	return &more, made
}
