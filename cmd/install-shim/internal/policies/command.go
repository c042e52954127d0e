package policies

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/command"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// CheckCommandHelp is the help text of check-command.
const CheckCommandHelp = `install-shim check-command [options] COMMAND
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

// CheckCommand says which paths a shell command names.
func CheckCommand(v *voice.Caller, args []string) error {
	o := command.Options{Scope: command.ScopeWorkspace, Network: command.NetworkAllow}
	var policy string
	var asJSON bool
	var roots []string
	workspace := "."
	f := voice.NewFlags("check-command")
	f.Text(&policy, "policy")
	f.Text(&workspace, "workspace")
	f.Text(&o.Scope, "scope")
	f.Text(&o.Network, "network")
	f.Switch(&asJSON, "json")
	f.List(&roots, "root")
	rest, err := f.Read(args)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return f.Wrong("give one command, quoted, or -")
	}
	text := rest[0]
	if text == "-" {
		if policy == "-" {
			return f.Wrong("the policy and the command cannot both be standard input")
		}
		in, err := io.ReadAll(io.LimitReader(v.In, 1<<20))
		if err != nil {
			return fmt.Errorf("read the command: %w", voice.Bare(err))
		}
		text = string(in)
	}
	if policy != "" {
		for _, name := range []string{"scope", "network", "workspace"} {
			if f.Given(name) {
				return f.Wrong("--" + name + " stands in the policy")
			}
		}
		x, p, err := plan(v, f.Name(), policy, "", nil)
		if err != nil {
			return err
		}
		o.Scope, o.Roots, workspace = string(p.Scope), x.Report.WritableDirs, p.Workspace
		if p.Network.Mode == rules.NetworkDeny {
			o.Network = command.NetworkDeny
		}
	}
	for i, dir := range append([]string{workspace}, roots...) {
		real, err := realDir(dir)
		if err != nil {
			return voice.Refused(dir, "%w", err)
		}
		if i == 0 {
			o.Workspace = real
		} else {
			o.Roots = append(o.Roots, real)
		}
	}
	o.Dir = o.Workspace
	o.Resolve = func(path string) (string, error) {
		loc, err := pathcheck.Resolve(pathcheck.OS{}, path)
		return loc.Path, err
	}
	o.Lookup = func(name string) (string, bool) {
		value := v.Getenv(name)
		return value, value != ""
	}
	result, violation := command.Check(text, o)
	if _, refused := errors.AsType[command.Violation](violation); violation != nil && !refused {
		return f.Wrong(violation.Error())
	}
	if asJSON {
		err = checkedJSON(v, result, violation)
	} else {
		err = checkedTable(v, result)
	}
	if err == nil && violation != nil {
		v.Say(violation.Error())
		err = voice.ErrSaid
	}
	return err
}

// realDir returns the real location of a directory, "" being the current one.
func realDir(dir string) (string, error) {
	if dir == "" {
		dir = "."
	}
	dir, err := shims.FromCwd(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	return dir, voice.Bare(err)
}

func checkedJSON(v *voice.Caller, r command.Result, violation error) error {
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
	return v.PrintJSON(out)
}

func checkedTable(v *voice.Caller, r command.Result) error {
	w := v.Table()
	for _, n := range r.Paths {
		where := "inside"
		if n.Outside {
			where = "outside"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", where, n.Use, voice.Show(n.Path))
	}
	for _, o := range r.Opaque {
		fmt.Fprintf(w, "opaque\t%s\t%s\n", o.Why, voice.Show(o.Text))
	}
	return w.Flush()
}
