package main

import (
	"errors"
	"flag"
	"io"
	"regexp"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// newFlags makes the flags of one command. Errors come back from parse; the
// package flag prints nothing itself.
func newFlags(command string) *flag.FlagSet {
	f := flag.NewFlagSet(command, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return f
}

// helpWanted ends a command that was asked for its help text.
type helpWanted struct{ command string }

func (*helpWanted) Error() string { return "help wanted" }

// parse reads the flags and returns the other arguments.
func parse(f *flag.FlagSet, args []string) ([]string, error) {
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil, &helpWanted{f.Name()}
	case err != nil:
		return nil, &usageError{f.Name(), err.Error()}
	}
	return f.Args(), nil
}

// givenFlags returns the flags that the command line has, whatever their value.
func givenFlags(f *flag.FlagSet) map[string]bool {
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return given
}

// checkOperands refuses a flag behind the first name, where it would be taken
// for a name.
func checkOperands(command string, operands []string, what string) error {
	if len(operands) == 0 {
		return &usageError{command, "no " + what + " given"}
	}
	for _, o := range operands {
		if strings.HasPrefix(o, "-") {
			return &usageError{command, show(o) + ": options go before the first " + what}
		}
	}
	return nil
}

// A recordOptions are the options of install that go into the record.
type recordOptions struct {
	policyEnv, onMissing, argv0, report, log, profileDir string
}

func (o *recordOptions) register(f *flag.FlagSet) {
	f.StringVar(&o.policyEnv, "policy-env", "", "")
	f.StringVar(&o.onMissing, "on-missing", record.Pass.String(), "")
	f.StringVar(&o.argv0, "argv0", record.Keep.String(), "")
	f.StringVar(&o.report, "report", "", "")
	f.StringVar(&o.log, "log", "", "")
	f.StringVar(&o.profileDir, "profile-dir", "", "")
}

// variableName is what shells can set.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// record makes the part of a record that is the same for all names.
func (o *recordOptions) record() (record.Record, error) {
	var r record.Record
	bad := func(text string) (record.Record, error) { return r, &usageError{"install", text} }
	switch {
	case o.policyEnv != "" && !variableName.MatchString(o.policyEnv):
		return bad("--policy-env " + show(o.policyEnv) + ": is not a variable name")
	case o.policyEnv == "PATH" || o.policyEnv == "HOME" || strings.HasPrefix(o.policyEnv, "LD_"):
		return bad("--policy-env " + o.policyEnv + ": the program needs this variable, and the shim removes it")
	}
	switch o.onMissing {
	case record.Pass.String():
	case record.Refuse.String():
		return r, refused("--on-missing refuse", "is not supported by this version: a confined program's own children, which carry no policy, cannot be told from other callers yet")
	default:
		return bad("--on-missing " + show(o.onMissing) + ": must be pass or refuse")
	}
	switch o.argv0 {
	case record.Keep.String():
	case record.Real.String():
		r.Argv0 = record.Real
	default:
		return bad("--argv0 " + show(o.argv0) + ": must be keep or real")
	}
	r.PolicyEnv, r.Report, r.Log, r.ProfileDir = o.policyEnv, o.report, o.log, o.profileDir
	// The rules for paths are the record's own; the real path comes later.
	probe := r
	probe.Real = "/x"
	if err := probe.Validate(); err != nil {
		return bad(err.Error())
	}
	return r, nil
}
