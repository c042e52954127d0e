//go:build !nocommandcheck

package shim

import (
	"fmt"
	"path"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/command"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/planner"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/target"
)

// noCommandCheck says why this binary cannot check commands: it can.
const noCommandCheck = ""

// checkCommand reads the command string of a shell and refuses the launch when
// it names what the policy does not allow. It comes after the plan, which knows
// where the writable roots really are, and before anything is confined.
func (l *launch) checkCommand() (commandResult, error) {
	if !l.request.Policy.ChecksCommand() {
		return commandResult{}, nil
	}
	text, ok, err := shellCommand(l.program.Name, pathcheck.Absolute(planner.Cwd(), l.program.Path), l.call.Argv)
	switch {
	case err != nil:
		return commandResult{}, fail("command", err)
	case !ok:
		return commandResult{unseen: "the program is no shell that was given a command string"}, nil
	}
	var lost error
	result, err := command.Check(text, l.commandOptions(&lost))
	switch {
	case lost != nil:
		return commandResult{}, fail("command", lost)
	case err != nil:
		return commandResult{}, &failure{code: exitRefused, what: "refused", err: err}
	}
	out := commandResult{done: true}
	if n := len(result.Opaque); n > 0 {
		out.unseen = fmt.Sprintf("parts of the command are opaque: %d, the first at byte %d (%s)", n, result.Opaque[0].Pos, result.Opaque[0].Why)
	}
	return out, nil
}

// shellCommand returns the command string of a target that is a shell; ok is false
// if it is none. The name by which the program was called may be sh where the file
// is that of another shell.
func shellCommand(name, at string, argv []string) (text string, ok bool, err error) {
	loc, err := pathcheck.Resolve(pathcheck.OS{}, at)
	if err != nil {
		return "", false, fmt.Errorf("%q: %w", at, err)
	}
	file := path.Base(loc.Path)
	names := []string{file, name, path.Base(at)}
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
	switch name := strings.TrimPrefix(path.Base(argv[0]), "-"); {
	case strings.HasPrefix(name, "busybox"):
		return "busybox"
	case name == "sh", name == "bash":
		return "ash"
	default:
		return name
	}
}

// commandOptions notes in lost that descriptors or memory ran out, which the check
// would take for an answer.
func (l *launch) commandOptions(lost *error) command.Options {
	p, here := l.request.Policy, planner.Cwd()
	o := command.Options{
		Scope: string(p.Scope), Network: command.NetworkAllow, Workspace: p.Workspace, Dir: here,
		Lookup: func(name string) (string, bool) { return target.Getenv(l.request.Env, name) },
		Resolve: func(path string) (string, error) {
			loc, err := pathcheck.Resolve(pathcheck.OS{}, path)
			if pathcheck.Exhausted(err) {
				*lost = err
			}
			return loc.Path, err
		},
	}
	if p.Network.Mode == rules.NetworkDeny {
		o.Network = command.NetworkDeny
	}
	// One that is hidden is no root of the plan; the texts still name it.
	if o.Workspace == "" {
		o.Workspace = here
	}
	if l.plan == nil {
		return o
	}
	for _, r := range l.plan.Files.Roots {
		switch {
		case r.Key == "workspace":
			o.Workspace = r.Path
		case r.Listed:
			o.Roots = append(o.Roots, r.Path)
		}
	}
	for _, x := range l.plan.Files.Exposed {
		o.Roots = append(o.Roots, x.Path)
	}
	return o
}
