package shim

import (
	"errors"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/output"
)

// Exit codes of a launch that did not become its program. 126 and 127 are
// those of a shell (bash(1), EXIT STATUS).
const (
	exitShim     = 125 // the shim could not do its job
	exitRefused  = 126 // refused, or the program could not be executed
	exitNotFound = 127 // the program was not found
)

// A failure ends the launch before the program was started.
type failure struct {
	code int
	// what is the step that ended it, a few plain words.
	what string
	err  error
	// hint is a second line, or "".
	hint string
}

func (f *failure) Error() string {
	if f.err == nil {
		return f.what
	}
	return f.what + ": " + f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// fail makes a failure of the shim itself.
func fail(what string, err error) *failure { return &failure{code: exitShim, what: what, err: err} }

// asFailure gives any error an exit code.
func asFailure(what string, err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	return fail(what, err)
}

// planFailure tells a policy that cannot be had from a plan that cannot be made.
func planFailure(err error) error {
	if _, ok := errors.AsType[*rules.Error](err); ok {
		return fail("policy", err)
	}
	return fail("plan", err)
}

// say prints a failure and its hint.
func (f *failure) say(program string) {
	output.Say(output.Name(program), f.Error())
	if f.hint != "" {
		output.Say("hint", f.hint)
	}
}
