// Package policies holds the commands that read, print and plan policies, and
// run, which launches one.
package policies

import (
	"fmt"
	"io"
	"os"
	"path"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
	launch "github.com/sandbox-exec-shim/sandbox-exec-shim/shim"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// A Policy is a policy as a command got it.
type Policy struct {
	*rules.Policy
	// Variable is the one that carries policies.
	Variable string
	// Environ is the caller's environment without it.
	Environ []string
	// source is where the text stood.
	source load.Source
}

// Read reads the policy of a command from a file, from standard input for "-",
// or from the variable for "", as a shim with the record would. Every command
// that needs a policy gets it here.
func Read(v *voice.Caller, command, file string, rec record.Record) (*Policy, error) {
	r := &Policy{Variable: rec.PolicyEnv}
	if r.Variable == "" {
		r.Variable = rules.DefaultPolicyEnv
	}
	opts := load.Options{PolicyEnv: r.Variable, ProfileDir: rec.ProfileDir}
	value, _, rest, err := rules.Pick(v.Environ, r.Variable)
	r.Environ = rest
	switch {
	case file != "":
		var text []byte
		if text, err = readAll(v, file); err == nil {
			r.Policy, err = opts.Parse(text)
		}
		if path.IsAbs(file) {
			r.source.File = file
		}
	case err != nil:
		return nil, err
	case rules.Blank(value):
		return nil, &voice.UsageError{Command: command, Msg: "no policy: give --policy FILE, or set " + r.Variable}
	default:
		r.Policy, r.source, err = load.Policy(value, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return r, nil
}

// readAll reads the text of a policy from a file or a pipe.
func readAll(v *voice.Caller, file string) ([]byte, error) {
	in := v.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, voice.Refused(file, "open: %w", voice.Bare(err))
		}
		defer f.Close()
		in = f
	}
	const most = 1 << 20 // rules refuses what is longer
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, voice.Refused(file, "read: %w", voice.Bare(err))
	}
	return text, nil
}

// plan reads a policy and plans one launch of it, the one way in which a command
// gets a plan.
func plan(v *voice.Caller, command, file, target string, args []string) (*launch.Explanation, *Policy, error) {
	var at shims.File
	var err error
	named := target != ""
	if named {
		if at, err = program(v, target); err != nil {
			return nil, nil, err
		}
	}
	policy, err := Read(v, command, file, at.Record)
	if err != nil {
		return nil, nil, err
	}
	shim := ""
	if !named {
		target = "sh"
		if len(policy.Targets) > 0 {
			target = policy.Targets[0]
		}
		if at, err = program(v, target); err != nil {
			// Any program does: the name decides which templates apply.
			shim = target
			if at, err = program(v, "sh"); err != nil {
				return nil, nil, err
			}
		}
	}
	real := at.Path
	if at.IsShim {
		shim, real = at.Path, at.Record.Real
	}
	x, err := launch.Explain(policy.Policy, policy.source, real, &launch.Call{
		Argv: append([]string{path.Base(target)}, args...), Envp: policy.Environ, ExecFn: shim, Record: at.Record,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("the launch would stop: %w", err)
	}
	return x, policy, nil
}

// program finds the installed shim, or the program, behind a name or path.
func program(v *voice.Caller, target string) (shims.File, error) {
	at, err := shims.Find(v, target)
	switch {
	case err != nil:
		return at, err
	case at.IsShim && at.Record.Real == "":
		return at, shims.NoRecord(at.Path)
	case !at.IsShim && !shims.Executable(at.Path):
		return at, voice.Refused(target, "is not an executable file")
	}
	return at, nil
}

// Text is a policy as a shim takes it.
func Text(p *rules.Policy) (string, error) {
	text, err := rules.Format(p)
	if err != nil {
		return "", fmt.Errorf("policy: %w", err)
	}
	return string(text), nil
}
