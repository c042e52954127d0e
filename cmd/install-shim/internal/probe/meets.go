package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/policies"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
)

// meets runs a command and sees whether a shim took the policy. A shim says so
// in its report; nothing else can.
func meets(ctx context.Context, v *voice.Caller, o *options) error {
	dir, err := tempDir(o.dir)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	written := dir + "/report"

	// Every variable that a shim could take the policy from.
	variables := []string{rules.DefaultPolicyEnv}
	var rec record.Record
	if o.target != "" {
		shim, err := installed(v, o.target)
		if err != nil {
			return err
		}
		if shim.IsShim {
			rec, variables = shim.Record, []string{shim.Record.PolicyEnv}
		}
	} else {
		for _, known := range shims.All(shims.PathDirs(v)) {
			if !slices.Contains(variables, known.Record.PolicyEnv) {
				variables = append(variables, known.Record.PolicyEnv)
			}
		}
	}
	from, file := v, o.policy
	if file == "" { // it asks for nothing but the report
		from, file = &voice.Caller{In: strings.NewReader(`{"version":1,"required":false}`)}, "-"
	}
	policy, err := policies.Read(from, "probe", file, rec)
	if err != nil {
		return err
	}
	policy.Report, policy.Log = rules.Destination{Path: written}, rules.LogConfig{}
	text, err := policies.Text(policy.Policy)
	if err != nil {
		return err
	}
	runErr := runCommand(ctx, o.timeout, "/bin/sh", func(cmd *exec.Cmd) {
		cmd.Args = []string{"/bin/sh", "-c", o.launch}
		cmd.Env = rules.Apply(v.Environ, rules.EnvChange{Unset: variables})
		for _, variable := range variables {
			cmd.Env = append(cmd.Env, variable+"="+text)
		}
		// Standard output is for the answer.
		cmd.Stdout, cmd.Stderr = v.Err, v.Err
	})
	switch {
	case errors.Is(runErr, errInterrupted):
		return runErr
	case errors.Is(runErr, context.DeadlineExceeded):
		v.Warn(o.launch, fmt.Sprintf("did not end within %v", o.timeout))
	}
	reports, err := readReports(written)
	met := err == nil
	if !met && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%sreport: %w", unavailable, err)
	}
	// Of several shims, the target's counts, else the first.
	var r *report.Report
	wanted := false
	for i := range reports {
		is := isTarget(v, o.target, reports[i])
		if i == 0 || is && !wanted {
			r, wanted = &reports[i], is
		}
	}
	if o.json {
		if err := v.PrintJSON(struct {
			Version int            `json:"version"`
			Meets   bool           `json:"meets_shim"`
			Report  *report.Report `json:"report,omitempty"`
		}{1, wanted, r}); err != nil {
			return err
		}
	} else if met {
		v.Print("meets a shim: argv[0] %s, real program %s\n", voice.Show(r.Argv0), voice.Show(r.Target))
	}
	switch {
	case wanted:
		return nil
	case met:
		v.Say(ineffective + "the policy went to the shim of " + voice.Show(r.Target) + ", not to that of " + voice.Show(o.target))
		return voice.ErrSaid
	}
	why := ""
	if exit, ok := errors.AsType[*exec.ExitError](runErr); ok {
		why = fmt.Sprintf(" (the command ended with %d)", exit.ExitCode())
	}
	v.Say(ineffective + "the command meets no shim that takes its policy from " + strings.Join(variables, " or ") + why)
	v.Hint("a caller that uses an absolute path or a PATH of its own passes a shim in a directory by; install in place")
	return voice.ErrSaid
}

// isTarget reports whether the shim that took the policy is that of the target.
func isTarget(v *voice.Caller, target string, r report.Report) bool {
	if target == "" {
		return true
	}
	if shim, err := installed(v, target); err == nil && shim.IsShim {
		return r.Target == shim.Record.Real
	}
	return strings.TrimSuffix(path.Base(r.Target), shims.Suffix) == path.Base(target)
}
