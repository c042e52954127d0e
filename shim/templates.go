package shim

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// expand resolves the policy's templates from what the program will be given.
func (l *launch) expand() error {
	v := rules.Values{
		Argv: l.start.Argv, Env: l.env, Cwd: cwd(),
		// Behind a shim in place, the real program has another name.
		Names: []string{base(l.me.invoked), l.target.name, strings.TrimSuffix(base(l.target.path), record.InPlaceSuffix)},
	}
	p, dropped, err := l.policy.Expand(v)
	if err != nil {
		return fail("policy", err)
	}
	if !l.policy.Applies(v.Names) {
		l.report.NotEnforced = append(l.report.NotEnforced, rules.Gap{
			What: "run-scope", Limit: true,
			Why: fmt.Sprintf("%q is none of the targets of the profile %q, so its templates do not apply", l.target.name, p.Profile),
		})
	}
	l.policy, l.report.Dropped = p, dropped
	return nil
}

// choose leaves out the entries of templates that may not open what they name,
// before anything is made of them.
func (l *launch) choose() error {
	if !l.policy.Derives() {
		return nil
	}
	l.step.is("choosing the entries of this launch")
	var err error
	for range maxPlans {
		if err = l.chooseOnce(); !errors.Is(err, pathcheck.ErrChanged) {
			break
		}
	}
	if err != nil {
		return fail("policy", err)
	}
	return nil
}

func (l *launch) chooseOnce() error {
	watch, _, err := watchMounts()
	if err != nil {
		return err
	}
	defer watch.close()
	mounts, err := watch.read()
	if err != nil {
		return err
	}
	tree := pathcheck.Keep(pathcheck.OS{})
	defer tree.Release()
	p, dropped, err := plan.Choose(l.policy, facts(l.env, l.target, mounts, l.policy), tree)
	if err == nil {
		err = tree.Err()
	}
	if err != nil {
		return err
	}
	l.policy, l.report.Dropped = p, append(l.report.Dropped, dropped...)
	return nil
}

// runScope returns the places that templates hid and exposed, as they stand in
// the policy of this launch.
func (l *launch) runScope() (hidden, exposed []string) {
	for _, e := range l.policy.Hidden {
		if e.Derived != nil {
			hidden = append(hidden, e.Path)
		}
	}
	for _, e := range l.policy.Exposed {
		if e.Derived != nil {
			exposed = append(exposed, e.Path)
		}
	}
	return hidden, exposed
}
