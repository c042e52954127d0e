package planner

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// Resolve puts paths in the place of the policy's templates, from the arguments
// and the environment that the program gets, and leaves out those that may not
// open what they name, before anything is made of them. The input's policy is left
// as it is. gaps says of a program for which the templates do not apply.
func Resolve(in Input, argv []string) (p *rules.Policy, dropped []rules.Dropped, gaps []rules.Gap, err error) {
	v := rules.Values{
		Argv: argv, Env: in.Env, Cwd: Cwd(),
		// Behind a shim in place, the real program has another name.
		Names: []string{in.Self.Name(), in.Program.Name, strings.TrimSuffix(baseOf(in.Program.Path), record.InPlaceSuffix)},
	}
	if p, dropped, err = in.Policy.Expand(v); err != nil {
		return nil, nil, nil, err
	}
	if !in.Policy.Applies(v.Names) {
		gaps = append(gaps, rules.Gap{
			What: "run-scope", Limit: true,
			Why: fmt.Sprintf("%q is none of the targets of the profile %q, so its templates do not apply", in.Program.Name, p.Profile),
		})
	}
	if !p.Derives() {
		return p, dropped, gaps, nil
	}
	in.Policy = p
	in.Step("choosing the entries of this launch")
	for n := 1; ; n++ {
		chosen, more, err := in.choose()
		if n == maxPlans || !errors.Is(err, pathcheck.ErrChanged) {
			return chosen, append(dropped, more...), gaps, err
		}
	}
}

func (in *Input) choose() (*rules.Policy, []rules.Dropped, error) {
	mounts, err := MountTable(nil)
	if err != nil && !errors.Is(err, errNoProc) {
		return nil, nil, err
	}
	tree := pathcheck.Keep(pathcheck.OS{})
	defer tree.Release()
	p, dropped, err := plan.Choose(in.Policy, in.facts(mounts), tree)
	if err == nil {
		err = tree.Err()
	}
	return p, dropped, err
}

func baseOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
