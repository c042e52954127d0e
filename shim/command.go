//go:build !nocommandcheck

package shim

import (
	"fmt"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/command"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// noCommandCheck says why this binary cannot check commands: it can.
const noCommandCheck = ""

// checkCommand reads the command string of a shell and refuses the launch when
// it names what the policy does not allow. It comes after the plan, which knows
// where the writable roots really are, and before anything is confined.
func (l *launch) checkCommand(pl *rules.Plan) error {
	if !l.policy.ChecksCommand() {
		return nil
	}
	text, ok, err := shellCommand(l.target.name, absolute(cwd(), l.target.path), l.start.Argv)
	switch {
	case err != nil:
		return fail("command", err)
	case !ok:
		l.unchecked("the program is no shell that was given a command string")
		return nil
	}
	var lost scarcity
	result, err := command.Check(text, l.commandOptions(pl, &lost))
	switch {
	case lost.err != nil:
		return fail("command", lost.err)
	case err != nil:
		return &failure{code: exitRefused, what: "refused", err: err}
	}
	l.report.Enforced = append(l.report.Enforced, rules.Enforcement{What: "command", By: rules.ByCommandCheck})
	if n := len(result.Opaque); n > 0 {
		l.unchecked(fmt.Sprintf("parts of the command are opaque: %d, the first at byte %d (%s)", n, result.Opaque[0].Pos, result.Opaque[0].Why))
	}
	return nil
}

// unchecked reports what the check could not see.
func (l *launch) unchecked(why string) {
	l.report.NotEnforced = append(l.report.NotEnforced, rules.Gap{What: "command", Why: why, Limit: true})
}

// shellCommand returns the command string of a target that is a shell; ok is false
// if it is none. The name by which the program was called may be sh where the file
// is that of another shell.
func shellCommand(name, path string, argv []string) (text string, ok bool, err error) {
	loc, err := pathcheck.Resolve(pathcheck.OS{}, path)
	if err != nil {
		return "", false, fmt.Errorf("%q: %w", path, err)
	}
	file := base(loc.Path)
	names := []string{file, name, base(path)}
	if strings.HasPrefix(file, "busybox") {
		names = []string{applet(argv)}
	}
	for _, name := range names {
		if i, ok := command.ShellCommand(argv, name); ok {
			return argv[i], true, nil
		}
	}
	return "", false, nil
}

// applet returns the name under which busybox finds its shell in argv. Its sh
// and bash are its ash.
func applet(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	switch name := strings.TrimPrefix(base(argv[0]), "-"); {
	case strings.HasPrefix(name, "busybox"):
		return "busybox"
	case name == "sh", name == "bash":
		return "ash"
	default:
		return name
	}
}

// commandOptions notes in lost what the check would take for an answer.
func (l *launch) commandOptions(pl *rules.Plan, lost *scarcity) command.Options {
	here := cwd()
	o := command.Options{
		Scope: string(l.policy.Scope), Network: command.NetworkAllow,
		Workspace: l.policy.Workspace, Dir: here,
		Lookup: func(name string) (string, bool) { return getenv(l.env, name) },
		Resolve: func(path string) (string, error) {
			loc, err := pathcheck.Resolve(pathcheck.OS{}, path)
			lost.note(err)
			return loc.Path, err
		},
	}
	if l.policy.Network.Mode == rules.NetworkDeny {
		o.Network = command.NetworkDeny
	}
	// One that is hidden is no root of the plan; the texts still name it.
	if o.Workspace == "" {
		o.Workspace = here
	}
	if pl == nil {
		return o
	}
	for _, r := range pl.Roots {
		switch {
		case r.Key == "workspace":
			o.Workspace = r.Path
		case r.Listed:
			o.Roots = append(o.Roots, r.Path)
		}
	}
	for _, x := range pl.Exposed {
		o.Roots = append(o.Roots, x.Path)
	}
	return o
}
