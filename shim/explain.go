package shim

import (
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// An Explanation says what a launch would do.
type Explanation struct {
	// Report is what the launch would report, as far as that can be known
	// without making it: nothing of it was tried, and Enforced is what this
	// kernel is able to hold.
	Report Report
	// Grants is everything that stays open, in the order of the walk, where the
	// policy confines files.
	Grants []plan.Grant
	// Made are directories and files that the launch would make first. Those of
	// them that are exposed are not among the grants.
	Made []string
}

// Explain plans a launch of p without making it: nothing is confined, made,
// written or started. Of s it uses Argv and Envp, without the policy variable,
// and ExecFn as the path of the shim. target is the absolute path of the real
// program. It is the plan of this process: its user, capabilities, current
// directory and mounts.
//
// The error is that with which the launch would stop.
func Explain(p *rules.Policy, source load.Source, target string, s *Start) (*Explanation, error) {
	l := &launch{start: s, began: time.Now(), log: hclog.NewNullLogger(), policy: p, source: source}
	l.me = self{path: s.ExecFn, invoked: s.ExecFn}
	l.target.path, l.target.name = target, base(s.ExecFn)
	l.target.head, _ = readHead(target) // nil where it cannot be read, as in a launch
	if l.target.name == "" {
		l.target.name = base(target)
	}
	l.report = newReport(s, l.target)
	l.env = rules.Apply(s.Envp, p.Env)
	l.env = rules.Apply(l.env, p.ToolchainEnv(l.env))
	x := &Explanation{}
	if err := l.expand(); err != nil {
		return nil, err
	}
	if err := l.choose(); err != nil {
		return nil, err
	}
	kernel := probe()
	foreseeProc(l.policy, &kernel)
	l.report.Enforced, l.report.NotEnforced = assess(l.policy, kernel, l.report.NotEnforced)
	x.Made = l.leaveOutUnmade()

	var plan *plan.Plan
	if l.policy.ConfinesFiles() {
		var err error
		if plan, err = l.planOnly(x); err != nil {
			return nil, err
		}
	}
	if err := l.checkCommand(plan); err != nil {
		return nil, err
	}
	x.Report = *l.report
	return x, nil
}

// leaveOutUnmade returns what the launch would make, and takes out of the policy
// what is exposed and does not exist before that.
func (l *launch) leaveOutUnmade() []string {
	var made []string
	missing := func(path string) bool {
		loc, err := pathcheck.Resolve(pathcheck.OS{}, path)
		return err == nil && !loc.Exists && !loc.Denied
	}
	for _, e := range l.policy.Precreate {
		if missing(e.Path) {
			made = append(made, e.Path)
		}
	}
	p := *l.policy
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
	l.policy = &p
	return made
}

// planOnly plans as a launch does, and grants nothing.
func (l *launch) planOnly(x *Explanation) (*plan.Plan, error) {
	watch, noMounts, err := watchMounts()
	if err != nil {
		return nil, fail("plan", err)
	}
	defer watch.close()
	mounts, err := watch.read()
	if err != nil {
		return nil, fail("plan", err)
	}
	known := l.known(mounts)
	tree := pathcheck.Keep(pathcheck.OS{})
	missing, err := l.missingDirs(known, tree)
	tree.Release()
	if err != nil {
		return nil, planFailure(err)
	}
	for _, dir := range missing {
		x.Made = append(x.Made, dir.Path)
	}
	tree = pathcheck.Keep(foresee(pathcheck.OS{}, missing))
	defer tree.Release()
	c := &confinement{}
	if err := l.look(c, known, tree); err != nil {
		return nil, planFailure(err)
	}
	var sink plan.Recorder
	tally, err := c.plan.Walk(tree, &sink)
	if err == nil {
		err = tree.Err()
	}
	if err != nil {
		return nil, planFailure(err)
	}
	x.Grants = sink.Grants
	warnings := c.plan.Warnings
	c.plan.Warnings = nil // describe says them, and this is no launch
	l.describe(c, tally, noMounts)
	l.report.Frozen, l.report.WritableDirs = c.frozen, c.plan.WritableDirs()
	for _, text := range append(warnings, c.plan.CwdFrozen()) {
		if text != "" {
			l.report.warn(text)
		}
	}
	return c.plan, nil
}
