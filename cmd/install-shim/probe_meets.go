package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
)

// probeLaunch runs a command and sees whether a shim took the policy. A shim
// says so in its report; nothing else can.
func (a *admin) probeLaunch(ctx context.Context, o *probeOptions) error {
	parent := o.dir
	if parent == "" {
		parent = "/var/tmp"
	}
	dir, err := os.MkdirTemp(parent, "install-shim-probe-")
	if err != nil {
		return &hinted{fmt.Errorf("make a directory: %w", err), "name another place with --dir"}
	}
	defer os.RemoveAll(dir)
	file := dir + "/report"

	// Every variable that a shim could take the policy from.
	variables := []string{rules.DefaultPolicyEnv}
	opts := load.Options{}
	if o.target != "" {
		src, rec, err := a.installedFor(o.target)
		if err != nil {
			return err
		}
		if src != nil {
			variables = []string{rec.PolicyEnv}
			opts = load.Options{PolicyEnv: rec.PolicyEnv, ProfileDir: rec.ProfileDir}
		}
	} else {
		for _, known := range a.allShims(nil) {
			if !slices.Contains(variables, known.PolicyEnv) {
				variables = append(variables, known.PolicyEnv)
			}
		}
	}
	// It asks for nothing but the report.
	text := fmt.Sprintf(`{"version":1,"required":false,"report":%s}`, jsonString(file))
	if o.policy != "" {
		policy, err := a.readPolicyText("probe", o.policy, opts)
		if err != nil {
			return err
		}
		if !policy.versioned() {
			return &usageError{"probe", `--launch wants a policy with "version":1, which can name a report`}
		}
		if text, err = policy.with(map[string]any{"report": file, "log": nil}); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", o.launch)
	cmd.Env = rules.Apply(a.environ, rules.EnvChange{Unset: variables})
	for _, variable := range variables {
		cmd.Env = append(cmd.Env, variable+"="+text)
	}
	// Standard output is for the answer.
	cmd.Stdout, cmd.Stderr = a.err, a.err
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	runErr := cmd.Run()
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		a.warn(o.launch, fmt.Sprintf("did not end within %v", o.timeout))
	case ctx.Err() != nil:
		return errInterrupted
	}
	reports, err := allReports(file)
	met := err == nil
	if !met && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%sreport: %w", unavailable, err)
	}
	// Of several shims, the target's counts, else the first.
	var r report.Report
	wanted := false
	for i, one := range reports {
		is := a.isTarget(o.target, one)
		if i == 0 || is && !wanted {
			r, wanted = one, is
		}
	}
	if o.json {
		out, err := json.MarshalIndent(struct {
			Version int            `json:"version"`
			Meets   bool           `json:"meets_shim"`
			Report  *report.Report `json:"report,omitempty"`
		}{1, wanted, reportIf(met, r)}, "", "  ")
		if err != nil {
			return err
		}
		a.print(string(out) + "\n")
	} else if met {
		a.print(fmt.Sprintf("meets a shim: argv[0] %s, real program %s\n", show(r.Argv0), show(r.Target)))
	}
	switch {
	case wanted:
		return nil
	case met:
		a.say(ineffective + "the policy went to the shim of " + show(r.Target) + ", not to that of " + show(o.target))
		return errSaid
	}
	why := ""
	if exit, ok := errors.AsType[*exec.ExitError](runErr); ok {
		why = fmt.Sprintf(" (the command ended with %d)", exit.ExitCode())
	}
	a.say(ineffective + "the command meets no shim that takes its policy from " + strings.Join(variables, " or ") + why)
	a.hint("a caller that uses an absolute path or a PATH of its own passes a shim in a directory by; install in place")
	return errSaid
}

// isTarget reports whether the shim that took the policy is that of the target.
func (a *admin) isTarget(target string, r report.Report) bool {
	if target == "" {
		return true
	}
	_, rec, err := a.installedFor(target)
	if err == nil && rec.Real != "" {
		return r.Target == rec.Real
	}
	name := target[strings.LastIndexByte(target, '/')+1:]
	return strings.TrimSuffix(r.Target[strings.LastIndexByte(r.Target, '/')+1:], siblingSuffix) == name
}

func reportIf(met bool, r report.Report) *report.Report {
	if met {
		return &r
	}
	return nil
}

func jsonString(s string) string {
	text, _ := json.Marshal(s) // a string always can
	return string(text)
}
