package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
)

// Exit codes of run, those of a launch.
const (
	exitRunFailed   = 125
	exitRunRefused  = 126
	exitRunNotFound = 127
)

// A runError ends run with a code of its own.
type runError struct {
	code int
	err  error
}

func (e *runError) Error() string { return e.err.Error() }
func (e *runError) Unwrap() error { return e.err }

// run becomes a shim, which becomes the command. It returns only when that
// did not happen.
func (a *admin) run(args []string) int {
	err := a.launch(args)
	if a.finish(err) == exitOK {
		return exitOK // the help text
	}
	if r, ok := errors.AsType[*runError](err); ok {
		return r.code
	}
	return exitRunFailed
}

func (a *admin) launch(args []string) error {
	var policyFile, shimPath string
	var own runFlags
	f := newFlags("run")
	own.register(f)
	f.StringVar(&policyFile, "policy", "", "")
	f.StringVar(&shimPath, "shim", "", "")
	command, err := parse(f, args)
	if err != nil {
		return err
	}
	if len(command) == 0 {
		return &usageError{"run", "no command given"}
	}
	if own.given && policyFile != "" {
		return &usageError{"run", "--policy goes without --required, --hide, --expose, --set and --unset"}
	}
	policy, rest, err := a.policyFor(policyFile, &own)
	if err != nil {
		return err
	}
	src, err := loadShim(shimPath)
	if err != nil {
		return err
	}
	if src.recorded {
		return refused(src.path, "is an installed shim, which always starts its own program: run needs a bare one")
	}
	program, err := a.commandPath(command[0])
	if err != nil {
		return err
	}
	if policy.Program != "" && policy.Program != program {
		return fmt.Errorf("policy: program: names %s, but the command is %s", show(policy.Program), show(program))
	}
	policy.Program = program
	text, err := rules.Format(policy)
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	variable := rules.DefaultPolicyEnv + "=" + string(text)
	if len(variable) >= maxString {
		return &hinted{
			fmt.Errorf("policy: has %d bytes, more than an environment variable can hold", len(variable)),
			"an installed shim can read it from a file: " + rules.DefaultPolicyEnv + "=@/absolute/file",
		}
	}
	err = unix.Exec(src.path, command, append(rest, variable))
	return refused(src.path, "execve: %w", err)
}

// maxString is the kernel's MAX_ARG_STRLEN, with the terminating NUL.
const maxString = 128 << 10

// policyFor takes the policy from the flags, or reads it from a file, from
// standard input for "-", or from the policy variable for "". It also returns the
// environment without that variable.
func (a *admin) policyFor(file string, own *runFlags) (*rules.Policy, []string, error) {
	value, _, rest, err := rules.Pick(a.environ, rules.DefaultPolicyEnv)
	var policy *rules.Policy
	switch {
	case own.given:
		policy, err = own.policy()
	case file == "" && err != nil:
		return nil, nil, err
	case file == "" && rules.Blank(value):
		return nil, nil, &usageError{"run", "no policy: give --policy FILE, or set " + rules.DefaultPolicyEnv}
	case file == "":
		policy, _, err = load.Policy(value, load.Options{})
	default:
		policy, err = a.readPolicy(file)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("policy: %w", err)
	}
	return policy, rest, nil
}

func (a *admin) readPolicy(file string) (*rules.Policy, error) {
	text, err := a.readAll(file)
	if err != nil {
		return nil, err
	}
	return rules.Parse(text)
}

// readAll reads the text of a policy from a file, or from standard input for "-".
func (a *admin) readAll(file string) ([]byte, error) {
	in := a.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("%s: open: %w", show(file), bare(err))
		}
		defer f.Close()
		in = f
	}
	const maxText = 1 << 20 // rules refuses what is longer
	text, err := io.ReadAll(io.LimitReader(in, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("%s: read: %w", show(file), bare(err))
	}
	return text, nil
}

// commandPath returns the absolute path of the real program that a command
// means. Where the command leads to an installed shim, that is the program
// behind it.
func (a *admin) commandPath(command string) (string, error) {
	notFound := func(err error) error { return &runError{exitRunNotFound, err} }
	if !strings.Contains(command, "/") {
		if command == "" {
			return "", notFound(refused(command, "%w", errNotOnPath))
		}
		for _, f := range a.findings(command) {
			if !f.shim {
				return f.path, nil
			}
			if f.rec.InPlace {
				return f.rec.Real, nil
			}
		}
		return "", notFound(refused(command, "%w", errNotOnPath))
	}
	p, err := absolute(command)
	if err != nil {
		return "", notFound(refused(command, "%w", bare(err)))
	}
	if is, rec := shimAt(p); is && rec.Real != "" {
		return rec.Real, nil
	}
	var st unix.Stat_t
	if err := unix.Stat(p, &st); errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return "", notFound(refused(command, "%w", err))
	} else if err != nil {
		return "", &runError{exitRunRefused, refused(command, "%w", err)}
	}
	if !executable(p) {
		return "", &runError{exitRunRefused, refused(command, "is not an executable file")}
	}
	return p, nil
}
