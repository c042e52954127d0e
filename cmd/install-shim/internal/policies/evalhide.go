package policies

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/evalhide"
)

// PolicyHelp is the help text of policy.
const PolicyHelp = `install-shim policy eval-hide --repo DIR --temp DIR --private DIR [options]

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

// Print prints a policy that is made from the command line.
func Print(v *voice.Caller, args []string) error {
	f := voice.NewFlags("policy")
	switch {
	case len(args) == 0:
		return f.Wrong("say which policy: eval-hide")
	case args[0] == "eval-hide":
		err := evalHide(v, f, args[1:])
		if _, help := errors.AsType[*voice.HelpWanted](err); err != nil && !help {
			v.Print(noPolicy)
		}
		return err
	case voice.IsHelp(args[0]):
		return &voice.HelpWanted{Command: f.Name()}
	default:
		return f.Wrong("unknown kind of policy " + voice.Show(args[0]))
	}
}

func evalHide(v *voice.Caller, f voice.Flags, args []string) error {
	var e evalhide.Attempt
	f.Text(&e.Repo, "repo")
	f.Text(&e.Temp, "temp")
	f.Text(&e.Private, "private")
	f.Text(&e.SharedTemp, "shared-temp")
	f.Text(&e.Evidence, "evidence")
	f.Text(&e.RunnerTemp, "runner-temp")
	f.Text(&e.Instance, "instance")
	f.Switch(&e.Required, "required")
	f.List(&e.Hide, "hide")
	if err := f.ReadAll(args); err != nil {
		return err
	}
	for _, name := range []string{"repo", "temp", "private"} {
		if !f.Given(name) {
			return f.Wrong("give --" + name + " DIR")
		}
	}
	if e.SharedTemp == "" {
		e.SharedTemp = v.Getenv("TMPDIR")
	}
	if e.SharedTemp != "" && !path.IsAbs(e.SharedTemp) {
		return f.Wrong("the shared temp directory " + voice.Show(e.SharedTemp) + " is not absolute")
	}
	out, err := evalhide.Policy(e)
	if _, ok := errors.AsType[*evalhide.UnhideableError](err); ok {
		return voice.Hinted(err, evalhide.UnhideableHint)
	}
	if err != nil {
		return err
	}
	evalWarnings(v, e, out)
	if out.Text == nil {
		v.Say("nothing to hide: no policy")
		return nil
	}
	if len(out.Text)+len(rules.DefaultPolicyEnv)+2 > MaxString {
		v.Warn("policy", "is longer than an environment variable can hold: put it into a file and set "+rules.DefaultPolicyEnv+"=@/absolute/file")
	}
	v.Print("%s\n", out.Text)
	return nil
}

// evalWarnings says where the policy holds less than was asked for.
func evalWarnings(v *voice.Caller, e evalhide.Attempt, out *evalhide.Result) {
	if len(out.Unhideable) > 0 {
		v.Say("warning", (&evalhide.UnhideableError{Paths: out.Unhideable}).Error())
		v.Hint(evalhide.UnhideableHint)
	}
	for _, field := range out.Skipped {
		why := "is blank or relative, and is skipped"
		if field == "instance" && path.IsAbs(e.Instance) {
			why = "lies in the shared temp directory, and is skipped: no state of other sessions is hidden"
		}
		v.Warn("--"+field, why)
	}
	if !path.IsAbs(e.Repo) {
		return
	}
	repo := path.Clean(e.Repo)
	if top := checkoutAbove(repo); top != "" {
		v.Warn(repo, "lies in the checkout "+voice.Show(top)+", whose store stays readable: it holds "+voice.Show(path.Join(repo, "tests"))+", too")
	}
	others, err := evalhide.WorkTrees(repo)
	if err != nil {
		v.Warn(repo, fmt.Sprintf("its other work trees are not known: %v", err))
	}
	for _, other := range others {
		if !slices.ContainsFunc(out.Hidden, func(h string) bool { return pathcheck.Within(h, path.Join(other, "tests")) }) {
			v.Warn(other, "is another work tree of the same repository, and stays readable: use --hide")
		}
	}
}

// checkoutAbove returns the checkout that dir lies in, when it is not the top
// of one itself.
func checkoutAbove(dir string) string {
	for d := dir; ; d = path.Dir(d) {
		if _, err := os.Lstat(path.Join(d, ".git")); err == nil && d != dir {
			return d
		} else if err == nil || d == "/" {
			return ""
		}
	}
}
