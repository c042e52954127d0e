package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/command"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

const checkCommandHelp = `install-shim check-command [options] COMMAND
install-shim check-command [options] -

Says which paths a shell command names and whether they stay within the allowed
roots, before anything runs. This is advice, not a boundary: what cannot be told
from the text is listed as opaque and not refused. With - the command is read from
standard input.

  --policy FILE    take scope, network, workspace and roots from a policy
  --workspace DIR  the workspace (default: the current directory)
  --root DIR       one more allowed root; may be given more than once
  --scope SCOPE    workspace (default), local or unrestricted
  --network MODE   allow (default) or deny: refuse words like curl and nc
  --json           one JSON object

Exit codes: 0 nothing is refused, 1 the command is refused, 2 wrong usage.

Examples:

  install-shim check-command --workspace /srv/work 'cd sub && make >/tmp/log'
  install-shim check-command --policy policy.json 'curl example.com'
`

func (a *admin) checkCommand(args []string) error {
	var o command.Options
	var policy, workspace string
	var asJSON bool
	var roots []string
	f := newFlags("check-command")
	f.StringVar(&policy, "policy", "", "")
	f.StringVar(&workspace, "workspace", "", "")
	f.StringVar(&o.Scope, "scope", command.ScopeWorkspace, "")
	f.StringVar(&o.Network, "network", command.NetworkAllow, "")
	f.BoolVar(&asJSON, "json", false, "")
	f.Func("root", "", func(s string) error { roots = append(roots, s); return nil })
	rest, err := parse(f, args)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return &usageError{"check-command", "give one command, quoted, or -"}
	}
	text := rest[0]
	if text == "-" {
		if policy == "-" {
			return &usageError{"check-command", "the policy and the command cannot both be standard input"}
		}
		in, err := io.ReadAll(io.LimitReader(a.stdin, 1<<20))
		if err != nil {
			return fmt.Errorf("read the command: %w", bare(err))
		}
		text = string(in)
	}
	if policy != "" {
		given := givenFlags(f)
		for _, name := range []string{"scope", "network", "workspace"} {
			if given[name] {
				return &usageError{"check-command", "--" + name + " stands in the policy"}
			}
		}
		if workspace, err = a.optionsOf(&o, policy); err != nil {
			return err
		}
	}
	if o.Workspace, err = realDir(workspace); err != nil {
		return refused(workspace, "%w", bare(err))
	}
	o.Dir = o.Workspace
	for _, r := range roots {
		if r, err = realDir(r); err != nil {
			return refused(r, "%w", bare(err))
		}
		o.Roots = append(o.Roots, r)
	}
	o.Lookup = func(name string) (string, bool) {
		v := a.getenv(name)
		return v, v != ""
	}
	o.Resolve = func(path string) (string, error) {
		loc, err := pathcheck.Resolve(pathcheck.OS{}, path)
		return loc.Path, err
	}
	result, err := command.Check(text, o)
	if violation := command.Violation(""); err != nil && !errors.As(err, &violation) {
		return &usageError{"check-command", err.Error()}
	}
	return a.printChecked(result, err, asJSON)
}

// optionsOf takes the options from a policy, and returns its workspace.
func (a *admin) optionsOf(o *command.Options, policy string) (workspace string, err error) {
	x, p, err := a.plan("check-command", policy, "", nil)
	if err != nil {
		return "", err
	}
	o.Scope, o.Roots = string(p.Scope), x.Report.WritableDirs
	o.Network = command.NetworkAllow
	if p.Network.Mode == rules.NetworkDeny {
		o.Network = command.NetworkDeny
	}
	return p.Workspace, nil
}

// realDir returns the real location of a directory, "" being the current one.
func realDir(dir string) (string, error) {
	if dir == "" {
		dir = "."
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return dir, err
	}
	return filepath.EvalSymlinks(dir)
}

func (a *admin) printChecked(r command.Result, violation error, asJSON bool) error {
	if asJSON {
		type named struct {
			Text    string `json:"text"`
			Path    string `json:"path"`
			Use     string `json:"use"`
			Pos     int    `json:"pos"`
			Outside bool   `json:"outside"`
		}
		type opaque struct {
			Text string `json:"text"`
			Why  string `json:"why"`
			Pos  int    `json:"pos"`
		}
		out := struct {
			Version   int      `json:"version"`
			OK        bool     `json:"ok"`
			Violation string   `json:"violation,omitempty"`
			Paths     []named  `json:"paths"`
			Opaque    []opaque `json:"opaque"`
		}{1, violation == nil, "", []named{}, []opaque{}}
		if violation != nil {
			out.Violation = violation.Error()
		}
		for _, n := range r.Paths {
			out.Paths = append(out.Paths, named{n.Text, n.Path, string(n.Use), n.Pos, n.Outside})
		}
		for _, o := range r.Opaque {
			out.Opaque = append(out.Opaque, opaque{o.Text, o.Why, o.Pos})
		}
		text, err := json.MarshalIndent(out, "", "  ")
		if err != nil {
			return err
		}
		a.print(string(text) + "\n")
	} else {
		w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
		for _, n := range r.Paths {
			where := "inside"
			if n.Outside {
				where = "outside"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", where, n.Use, show(n.Path))
		}
		for _, o := range r.Opaque {
			fmt.Fprintf(w, "opaque\t%s\t%s\n", o.Why, show(o.Text))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if violation != nil {
		a.say(violation.Error())
		return errSaid
	}
	return nil
}
