package shim

import (
	"slices"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/planner"
)

// A request is what was asked of one launch.
type request struct {
	Policy *rules.Policy
	Source load.Source
	// Env is the environment that the program gets.
	Env []string
	// Dropped and gaps are what of the policy does not apply to this launch, or
	// cannot be had from this binary.
	Dropped []rules.Dropped
	gaps    []rules.Gap
}

func policyEnv(c *Call) string {
	if c.Record.PolicyEnv != "" {
		return c.Record.PolicyEnv
	}
	return rules.DefaultPolicyEnv
}

// takePolicy returns the value of the policy's variable and the environment without it.
func takePolicy(c *Call) (value string, env []string, err error) {
	value, _, env, err = rules.Pick(c.Envp, policyEnv(c))
	if err != nil {
		return "", nil, fail("policy", err)
	}
	return value, env, nil
}

// decode reads the policy. Report and log of the record are for a policy that names
// none.
func decode(c *Call, value string, env []string) (*request, error) {
	p, source, err := load.Policy(value, load.Options{PolicyEnv: policyEnv(c), ProfileDir: c.Record.ProfileDir})
	if err != nil {
		return nil, fail("policy in "+policyEnv(c), err)
	}
	if p.Report.IsZero() && c.Record.Report != "" {
		p.Report = rules.Destination{Path: c.Record.Report}
	}
	if p.Log.To.IsZero() && c.Record.Log != "" {
		p.Log = rules.LogConfig{Level: "info", To: rules.Destination{Path: c.Record.Log}}
	}
	return newRequest(p, source, env), nil
}

// newRequest makes a request of a policy and the launcher's environment without the
// policy's variable.
func newRequest(p *rules.Policy, source load.Source, env []string) *request {
	r := &request{Policy: p, Source: source, Env: rules.Apply(env, p.Env)}
	r.Env = rules.Apply(r.Env, p.ToolchainEnv(r.Env))
	if p.CommandCheck && noCommandCheck != "" {
		r.gaps = []rules.Gap{{What: "command", Why: noCommandCheck}}
	}
	return r
}

// resolve puts paths in the place of the templates.
func (l *launch) resolve() (*request, error) {
	r := *l.request
	p, dropped, gaps, err := planner.Resolve(l.input(), l.call.Argv)
	if err != nil {
		return l.request, fail("policy", err)
	}
	r.Policy, r.Dropped, r.gaps = p, dropped, append(gaps, r.gaps...)
	return &r, nil
}

// input is what the plan is made from.
func (l *launch) input() planner.Input {
	r := l.request
	return planner.Input{
		Policy: r.Policy, Source: r.Source, Env: r.Env, Outer: l.call.Envp, Self: l.self, Program: l.program,
		Report: r.Policy.Report.Path, ReadOnly: l.namespace.Sealed(), Step: l.step.is, Debug: l.log.Debug,
	}
}

// protected is what mounts of this launch are to protect.
func (l *launch) protected() []string { return planner.Protected(l.input()) }

// guarding is the request with a ruleset over files, for what no mount closes.
func (r *request) guarding(guard bool) *request {
	if !guard {
		return r
	}
	more, p := *r, *r.Policy
	p.GuardKernel = true
	more.Policy = &p
	return &more
}

// with is the request with one more gap.
func (r *request) with(gap rules.Gap) *request {
	more := *r
	more.gaps = append(slices.Clone(r.gaps), gap)
	return &more
}

// derived returns the places that templates hid and exposed, as they stand in
// the policy of this launch.
func (r *request) derived() (hidden, exposed []string) {
	for _, e := range r.Policy.Hidden {
		if e.Derived != nil {
			hidden = append(hidden, e.Path)
		}
	}
	for _, e := range r.Policy.Exposed {
		if e.Derived != nil {
			exposed = append(exposed, e.Path)
		}
	}
	return hidden, exposed
}
