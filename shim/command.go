//go:build !nocommandcheck

package shim

import (
	"fmt"
	"os"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/command"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// noCommandCheck says why this binary cannot check commands: it can.
const noCommandCheck = ""

// checkCommand reads the command string of a shell and refuses the launch when
// it names what the policy does not allow. It comes after the plan, which knows
// where the writable roots really are, and before anything is confined.
func (l *launch) checkCommand(pl *plan.Plan) error {
	if !l.policy.ChecksCommand() {
		return nil
	}
	shell, text, err := shellCommand(l.target.name, absolute(cwd(), l.target.path), l.start.Argv)
	switch {
	case err != nil:
		return fail("command", err)
	case shell == "":
		l.unchecked("the program is no shell that was given a command string")
		return nil
	}
	var lost scarcity
	result, err := command.Check(text, l.commandOptions(shell, pl, &lost))
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

// shellCommand returns the command string of a target that is a shell, and the
// name of the shell that will read it, "" if it is none. The name by which the
// program was called may be sh where the file is that of another shell.
func shellCommand(name, path string, argv []string) (shell, text string, err error) {
	loc, err := pathcheck.Resolve(pathcheck.OS{}, path)
	if err != nil {
		return "", "", fmt.Errorf("%q: %w", path, err)
	}
	file := base(loc.Path)
	names := []string{file, name, base(path)}
	if strings.HasPrefix(file, "busybox") {
		names = []string{applet(argv)}
	}
	for _, name := range names {
		if text, ok := command.ShellCommand(argv, name); ok {
			return name, text, nil
		}
	}
	return "", "", nil
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
func (l *launch) commandOptions(shell string, pl *plan.Plan, lost *scarcity) command.Options {
	here := cwd()
	lookup := func(name string) (string, bool) { return getenv(l.env, name) }
	home, _ := lookup("HOME")
	o := command.Options{
		Scope: string(l.policy.Scope), Network: command.NetworkAllow,
		Dir: here, Home: absolute(here, home), Shell: shell,
		HomeOf: homeOf, Lookup: lookup,
		Resolve: func(path string) (string, error) {
			loc, err := pathcheck.Resolve(pathcheck.OS{}, path)
			lost.note(err)
			return loc.Path, err
		},
	}
	if l.policy.Network.Mode == rules.NetworkDeny {
		o.Network = command.NetworkDeny
	}
	if pl == nil {
		return o
	}
	// One that is hidden is no root of the plan; the texts still name it.
	if o.Workspace = l.policy.Workspace; o.Workspace == "" {
		o.Workspace = here
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

// homeOf looks a user up in /etc/passwd (passwd(5)). Accounts from elsewhere
// are not known.
func homeOf(user string) (string, bool) {
	data, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return "", false
	}
	return homeIn(string(data), user)
}

func homeIn(passwd, user string) (string, bool) {
	for line := range strings.Lines(passwd) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(f) == 7 && f[0] == user && strings.HasPrefix(f[5], "/") {
			return f[5], true
		}
	}
	return "", false
}
