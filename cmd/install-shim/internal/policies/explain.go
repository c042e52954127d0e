package policies

import (
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	launch "github.com/sandbox-exec-shim/sandbox-exec-shim/shim"
)

// ExplainHelp is the help text of explain.
const ExplainHelp = `install-shim explain [--policy FILE|-] [--target PATH] [--json] [--all] [-- ARG...]

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

// Explain says what a launch would do.
func Explain(v *voice.Caller, args []string) error {
	var file, target string
	var asJSON, all bool
	f := voice.NewFlags("explain")
	f.Text(&file, "policy")
	f.Text(&target, "target")
	f.Switch(&asJSON, "json")
	f.Switch(&all, "all")
	rest, err := f.Read(args)
	if err != nil {
		return err
	}
	x, policy, err := plan(v, "explain", file, target, rest)
	if err != nil {
		return err
	}
	return explain(v, policy, x, asJSON, all)
}

// explain prints a plan. It fails when the launch would not start.
func explain(v *voice.Caller, policy *Policy, x *launch.Explanation, asJSON, all bool) (err error) {
	stops := stopsOf(policy, x)
	if asJSON {
		err = explainJSON(v, x, stops)
	} else {
		explainText(v, x, all)
		if stops != "" {
			v.Say("the launch would stop: " + stops)
		}
	}
	if err == nil && stops != "" {
		err = voice.ErrSaid
	}
	return err
}

// stopsOf says what a required launch would stop for, or "".
func stopsOf(p *Policy, x *launch.Explanation) string {
	for _, g := range x.Report.NotEnforced {
		if !g.Limit && p.Required {
			return "cannot enforce " + g.What + ": " + g.Why
		}
	}
	return ""
}

func explainJSON(v *voice.Caller, x *launch.Explanation, stops string) error {
	r := x.Report
	grants := make([]map[string]string, len(x.Grants))
	for i, g := range x.Grants {
		grants[i] = map[string]string{"path": g.Path, "access": g.Access.String()}
	}
	return v.PrintJSON(struct {
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
		1, stops == "", stops, r.Target, voice.Listed(r.Hidden), voice.Listed(r.Exposed), voice.Listed(x.Made), voice.Listed(r.Frozen),
		voice.Listed(r.WritableDirs), r.Warning, voice.Listed(r.Dropped), voice.Listed(r.Enforced), voice.Listed(r.NotEnforced), grants,
	})
}

func explainText(v *voice.Caller, x *launch.Explanation, all bool) {
	r := x.Report
	v.Print("target %s\n", voice.Show(r.Target))
	for _, list := range []struct {
		what  string
		paths []string
	}{
		{"hidden", r.Hidden}, {"exposed", r.Exposed}, {"made", x.Made}, {"frozen", r.Frozen}, {"writable", r.WritableDirs},
	} {
		for _, p := range list.paths {
			v.Print("%s %s\n", list.what, voice.Show(p))
		}
	}
	printDropped(v, r.Dropped)
	for _, e := range r.Enforced {
		v.Print("enforced %s by %s\n", e.What, e.By)
	}
	for _, g := range r.NotEnforced {
		kind, at := "not enforced", ""
		if g.Limit {
			kind = "limit"
		}
		if g.Path != "" {
			at = " " + voice.Show(g.Path)
		}
		v.Print("%s %s%s: %s\n", kind, g.What, at, g.Why)
	}
	if all {
		for _, g := range x.Grants {
			v.Print("granted %s %s\n", voice.Show(g.Path), g.Access)
		}
	} else if n := len(x.Grants); n > 0 {
		v.Print("granted %d places (--all lists them)\n", n)
	}
	if r.Warning != "" {
		v.Say("warning", r.Warning)
	}
}

// printDropped lists the entries of templates that do not apply.
func printDropped(v *voice.Caller, dropped []rules.Dropped) {
	for _, d := range dropped {
		v.Print("dropped %s: %s\n", d.Entry, d.Why)
	}
}
