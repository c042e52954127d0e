package main

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
	launched "github.com/sandbox-exec-shim/sandbox-exec-shim/shim"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

const explainHelp = `install-shim explain [--policy FILE|-] [--target PATH] [--json] [--all] [-- ARG...]

Says what a launch under the policy would hide, expose, freeze, leave writable and
make, and what this kernel can and cannot hold of it. Nothing is confined, made or
started. "probe" tries instead.

It is the plan of the user, directory and environment in which it is asked for.

  --policy FILE  the policy; - is standard input (default: the shim's variable)
  --target PATH  a shim, or the real program, or its name on PATH (default: the
                 first target of the policy's profile, else sh)
  --json         one JSON object, with the keys of a launch report
  --all          also list everything that stays open, with its access rights

Exit codes: 0 the launch would start, 1 it would not, 2 wrong usage.

Examples:

  install-shim explain --policy policy.json --target /usr/bin/bash

  install-shim explain --policy policy.json --target paperclip-runnerd -- \
    --state-dir /srv/instance/runtime/paperclip-runner/runner/one
`

// An explained target is how a launch would be made.
type explainedTarget struct {
	shim, real string
	rec        record.Record
}

func (a *admin) explain(args []string) error {
	var file, target string
	var asJSON, all bool
	f := newFlags("explain")
	f.StringVar(&file, "policy", "", "")
	f.StringVar(&target, "target", "", "")
	f.BoolVar(&asJSON, "json", false, "")
	f.BoolVar(&all, "all", false, "")
	rest, err := parse(f, args)
	if err != nil {
		return err
	}
	x, policy, err := a.plan("explain", file, target, rest)
	if err != nil {
		return err
	}
	stops := stopsOf(policy, x)
	if asJSON {
		return a.explainJSON(x, stops)
	}
	a.explainText(x, all)
	if stops != "" {
		a.say("the launch would stop: " + stops)
		return errSaid
	}
	return nil
}

// plan reads a policy and plans one launch of it.
func (a *admin) plan(command, file, target string, args []string) (*launched.Explanation, *policyText, error) {
	var at explainedTarget
	var err error
	named := target != ""
	if named {
		if at, err = a.explainedTarget(target); err != nil {
			return nil, nil, err
		}
	}
	policy, err := a.readPolicyText(command, file, load.Options{PolicyEnv: at.rec.PolicyEnv, ProfileDir: at.rec.ProfileDir})
	if err != nil {
		return nil, nil, err
	}
	if !named {
		if target = "sh"; len(policy.Targets) > 0 {
			target = policy.Targets[0]
		}
		if at, err = a.explainedTarget(target); err != nil {
			// Any program does: the target decides which templates apply.
			if at, err = a.explainedTarget("sh"); err != nil {
				return nil, nil, err
			}
			at.shim = target
		}
	}
	var src load.Source
	if path.IsAbs(file) {
		src.File = file
	}
	x, err := launched.Explain(policy.Policy, src, at.real, &launched.Call{
		Argv: append([]string{path.Base(target)}, args...), Envp: withoutVariable(a.environ, policy.opts.PolicyEnv),
		ExecFn: at.shim, Record: at.rec,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("the launch would stop: %w", err)
	}
	return x, policy, nil
}

// explainedTarget finds the shim and the program behind a name or path.
func (a *admin) explainedTarget(target string) (explainedTarget, error) {
	p := target
	if !strings.Contains(target, "/") {
		found := a.findings(target)
		if len(found) == 0 {
			return explainedTarget{}, refused(target, "%w", errNotOnPath)
		}
		p = found[0].path
	}
	p, err := absolute(p)
	if err != nil {
		return explainedTarget{}, refused(target, "%w", bare(err))
	}
	if is, rec := shimAt(p); is {
		if rec.Real == "" {
			return explainedTarget{}, refused(p, "is a shim without a record: it was copied there, not installed")
		}
		return explainedTarget{p, rec.Real, rec}, nil
	}
	if !executable(p) {
		return explainedTarget{}, refused(target, "is not an executable file")
	}
	return explainedTarget{"", p, record.Record{}}, nil
}

// stopsOf says what a required launch would stop for, or "".
func stopsOf(p *policyText, x *launched.Explanation) string {
	for _, g := range x.Report.NotEnforced {
		if !g.Limit && p.Required {
			return "cannot enforce " + g.What + ": " + g.Why
		}
	}
	return ""
}

func (a *admin) explainJSON(x *launched.Explanation, stops string) error {
	r := x.Report
	grants := make([]map[string]string, len(x.Grants))
	for i, g := range x.Grants {
		grants[i] = map[string]string{"path": g.Path, "access": g.Access.String()}
	}
	text, err := json.MarshalIndent(struct {
		Version     int                 `json:"version"`
		Starts      bool                `json:"starts"`
		Stops       string              `json:"stops,omitempty"`
		Target      string              `json:"target"`
		Hidden      []string            `json:"hidden"`
		Exposed     []string            `json:"exposed"`
		Made        []string            `json:"made"`
		Frozen      []string            `json:"frozen"`
		Writable    []string            `json:"sandbox_writable_dirs"`
		Warning     string              `json:"sandbox_warning,omitempty"`
		Dropped     []rules.Dropped     `json:"dropped"`
		Enforced    []rules.Enforcement `json:"enforced"`
		NotEnforced []rules.Gap         `json:"not_enforced"`
		Grants      []map[string]string `json:"grants"`
	}{
		1, stops == "", stops, r.Target, notNil(r.Hidden), notNil(r.Exposed), notNil(x.Made), notNil(r.Frozen), notNil(r.WritableDirs),
		r.Warning, notNil(r.Dropped), notNil(r.Enforced), notNil(r.NotEnforced), grants,
	}, "", "  ")
	if err != nil {
		return err
	}
	a.print(string(text) + "\n")
	if stops != "" {
		return errSaid
	}
	return nil
}

// notNil gives JSON a list also when it is empty.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (a *admin) explainText(x *launched.Explanation, all bool) {
	r := x.Report
	a.print("target " + show(r.Target) + "\n")
	for _, list := range []struct {
		what  string
		paths []string
	}{
		{"hidden", r.Hidden}, {"exposed", r.Exposed}, {"made", x.Made}, {"frozen", r.Frozen}, {"writable", r.WritableDirs},
	} {
		for _, p := range list.paths {
			a.print(list.what + " " + show(p) + "\n")
		}
	}
	for _, d := range r.Dropped {
		a.print("dropped " + d.Entry + ": " + d.Why + "\n")
	}
	for _, e := range r.Enforced {
		a.print("enforced " + e.What + " by " + e.By + "\n")
	}
	for _, g := range r.NotEnforced {
		kind := "not enforced"
		if g.Limit {
			kind = "limit"
		}
		line := kind + " " + g.What
		if g.Path != "" {
			line += " " + show(g.Path)
		}
		a.print(line + ": " + g.Why + "\n")
	}
	if all {
		for _, g := range x.Grants {
			a.print("granted " + show(g.Path) + " " + g.Access.String() + "\n")
		}
	} else if n := len(x.Grants); n > 0 {
		a.print(fmt.Sprintf("granted %d places (--all lists them)\n", n))
	}
	if r.Warning != "" {
		a.say("warning", r.Warning)
	}
}
