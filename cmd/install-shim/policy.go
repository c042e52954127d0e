package main

import (
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/evalhide"
)

const policyHelp = `install-shim policy eval-hide --repo DIR --temp DIR --private DIR [options]

Prints a policy, one line of JSON, that hides from an agent what would give away
how it is graded:

  in the checkout (--repo)       tests, .git with all that a .git file leads to,
                                 .manual-private-trusted
  in the temporary root (--temp) artifacts-private, control,
                                 selected-private-inputs, playwright-transform-cache
  --private DIR                  the directory itself

  --evidence DIR     hidden as well where it can be
  --runner-temp DIR  likewise
  --hide PATH        hide more; may be given more than once
  --instance DIR     the runner's instance: adds the profile paperclip-runner,
                     unless DIR lies in the shared temp directory
  --shared-temp DIR  where programs make temporary files (default: $TMPDIR,
                     else /tmp); nothing in it can be hidden
  --required         a path that cannot be hidden is an error, and a launch that
                     cannot be confined fails

A path cannot be hidden when it is or holds the checkout or the temporary root,
or when it is, holds or lies in the shared temp directory. Without --required
that is a warning, and the rest is hidden. Blank and relative paths are skipped,
with a warning where the policy needs them. With nothing to hide, nothing is
printed, and a shim then confines nothing.

After an error standard output holds a text that is no policy, so that a shim
refuses to start anything with it: export X="$(...)" drops the exit code.

Exit codes: 0 printed, 1 refused, 2 wrong usage.

Examples:

  export SANDBOX_EXEC_SHIM_POLICY="$(install-shim policy eval-hide --required \
    --repo /srv/project --temp /var/tmp/attempts --private /srv/private)"

  # A project that keeps its graders elsewhere.
  install-shim policy eval-hide --repo "$PWD" --temp /var/tmp/attempts \
    --private /srv/private --hide "$PWD/spec" --hide "$PWD/answers.json"
`

// noPolicy is what stands in place of a policy after an error. Anything but
// JSON would do; nothing at all would mean that the launch is not confined.
const noPolicy = "no policy: install-shim policy failed, see what it said on standard error\n"

// policy prints a policy.
func (a *admin) policy(args []string) error {
	if len(args) == 0 {
		return &usageError{"policy", "say which policy: eval-hide"}
	}
	switch args[0] {
	case "eval-hide":
		err := a.evalHide(args[1:])
		if _, help := errors.AsType[*helpWanted](err); err != nil && !help {
			a.print(noPolicy)
		}
		return err
	case "-h", "-help", "--help":
		return &helpWanted{"policy"}
	default:
		return &usageError{"policy", "unknown kind of policy " + show(args[0])}
	}
}

func (a *admin) evalHide(args []string) error {
	var e evalhide.Attempt
	f := newFlags("policy")
	f.StringVar(&e.Repo, "repo", "", "")
	f.StringVar(&e.Temp, "temp", "", "")
	f.StringVar(&e.Private, "private", "", "")
	f.StringVar(&e.SharedTemp, "shared-temp", "", "")
	f.StringVar(&e.Evidence, "evidence", "", "")
	f.StringVar(&e.RunnerTemp, "runner-temp", "", "")
	f.StringVar(&e.Instance, "instance", "", "")
	f.BoolVar(&e.Required, "required", false, "")
	f.Func("hide", "", func(s string) error { e.Hide = append(e.Hide, s); return nil })
	rest, err := parse(f, args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return &usageError{"policy", show(rest[0]) + ": unexpected"}
	}
	given := givenFlags(f)
	for _, name := range []string{"repo", "temp", "private"} {
		if !given[name] {
			return &usageError{"policy", "give --" + name + " DIR"}
		}
	}
	if e.SharedTemp == "" {
		e.SharedTemp = a.getenv("TMPDIR")
	}
	if e.SharedTemp != "" && !path.IsAbs(e.SharedTemp) {
		return &usageError{"policy", "the shared temp directory " + show(e.SharedTemp) + " is not absolute"}
	}
	out, err := evalhide.Policy(e)
	if err != nil {
		if _, ok := errors.AsType[*evalhide.UnhideableError](err); ok {
			return &hinted{err, evalhide.UnhideableHint}
		}
		return err
	}
	a.evalWarnings(e, out)
	if out.Text == nil {
		a.say("nothing to hide: no policy")
		return nil
	}
	if len(out.Text)+len(rules.DefaultPolicyEnv)+2 > maxString {
		a.warn("policy", "is longer than an environment variable can hold: put it into a file and set "+rules.DefaultPolicyEnv+"=@/absolute/file")
	}
	a.print(string(out.Text) + "\n")
	return nil
}

// evalWarnings says where the policy holds less than was asked for.
func (a *admin) evalWarnings(e evalhide.Attempt, out *evalhide.Result) {
	if len(out.Unhideable) > 0 {
		a.say("warning", (&evalhide.UnhideableError{Paths: out.Unhideable}).Error())
		a.hint(evalhide.UnhideableHint)
	}
	for _, field := range out.Skipped {
		why := "is blank or relative, and is skipped"
		if field == "instance" && path.IsAbs(e.Instance) {
			why = "lies in the shared temp directory, and is skipped: no state of other sessions is hidden"
		}
		a.warn("--"+field, why)
	}
	if !path.IsAbs(e.Repo) {
		return
	}
	repo := path.Clean(e.Repo)
	if top := checkoutAbove(repo); top != "" {
		a.warn(repo, "lies in the checkout "+show(top)+", whose store stays readable: it holds "+show(path.Join(repo, "tests"))+", too")
	}
	others, err := evalhide.WorkTrees(repo)
	if err != nil {
		a.warn(repo, fmt.Sprintf("its other work trees are not known: %v", err))
	}
	for _, other := range others {
		if !hides(out.Hidden, path.Join(other, "tests")) {
			a.warn(other, "is another work tree of the same repository, and stays readable: use --hide")
		}
	}
}

// checkoutAbove returns the checkout that dir lies in, when it is not the top
// of one itself.
func checkoutAbove(dir string) string {
	for d := dir; ; d = path.Dir(d) {
		if _, err := os.Lstat(path.Join(d, ".git")); err == nil {
			if d == dir {
				return ""
			}
			return d
		}
		if d == "/" {
			return ""
		}
	}
}

func hides(hidden []string, p string) bool {
	for _, h := range hidden {
		if pathcheck.Within(h, p) {
			return true
		}
	}
	return false
}
