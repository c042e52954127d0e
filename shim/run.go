package shim

import (
	"errors"
	"time"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/confine"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/output"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/planner"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/target"
)

// Run performs one launch. It returns only on failure, with the exit code, after
// printing the error. It must be called on the main thread, which package boot has
// locked.
func Run(c *Call) int {
	l := newLaunch(c)
	f := asFailure("launch", l.run())
	l.conclude(f)
	f.say(l.program.Name)
	return f.code
}

// A launch is what its steps have come to so far: each value is made by one step
// and not changed afterwards. What a launch did not come to is nil.
type launch struct {
	call      *Call
	began     time.Time
	self      target.Self
	request   *request
	program   target.Program
	kernel    *rules.Kernel
	namespace *confine.Namespace
	plan      *planner.Plan
	domain    *confine.Domain

	// inherited are the descriptors that the launcher left open, closed those of
	// them that are for no program of this policy.
	inherited []int
	closed    []confine.Descriptor
	// precreated are the directories of the key precreate.
	precreated []string
	// checked is what the command check has to say.
	checked commandResult
	// warnings are what was said on stderr.
	warnings []string

	// out and logTo are the files of report and log, nil without.
	out, logTo *output.File
	log        output.Logger
	step       watchedStep
}

func newLaunch(c *Call) *launch {
	return &launch{call: c, began: time.Now(), log: output.NoLog()}
}

// run is the launch, step by step, as docs/design.md lists them. Each step's reason
// for its place is with it.
func (l *launch) run() (err error) {
	c := l.call
	// Entry, and the shim's own file.
	if !c.Entered {
		return fail("linked without its entry point", errors.New("signals, descriptors and environment of the caller are lost"))
	}
	if c.RecordErr != nil {
		return fail("record", c.RecordErr)
	}
	l.self = target.FindSelf(c.ExecFn, c.Argv)
	l.program.Name = l.self.Name()

	// Refuse to be privileged, before anything that the caller can steer.
	if c.Privileged != "" {
		return fail("refused", errors.New(c.Privileged))
	}

	// Take the policy. The variable is gone from here on, whatever is wrong with it.
	value, env, err := takePolicy(c)
	if err != nil {
		return err
	}
	if rules.Blank(value) {
		return l.passThrough(env)
	}

	// Descriptors, before the shim opens one that it keeps: the watch has some.
	if l.inherited, err = confine.Inherited(c.Closed); err != nil {
		return fail("descriptors", err)
	}
	if err := l.step.watch(c, l.program.Name); err != nil {
		return fail("descriptors", err)
	}

	// Decode.
	if l.request, err = decode(c, value, env); err != nil {
		return err
	}

	// Find the program.
	q := target.Question{Self: l.self, Record: c.Record, Program: l.request.Policy.Program, Argv: c.Argv, Env: env}
	if l.program, err = target.Find(q); err != nil {
		return targetFailure(err)
	}

	// Open report and log.
	if err := l.openOutputs(); err != nil {
		return err
	}

	// Resolve the templates, which speak of the environment that the program gets.
	if l.request, err = l.resolve(); err != nil {
		return err
	}

	// Confine.
	if l.request.Policy.Confines() {
		err = l.confine()
	} else if err = l.demand(l.gaps(), ""); err == nil {
		err = l.precreate()
	}
	if err != nil {
		return err
	}

	// Report, since after execve there is nobody to do it; then become the program.
	l.step.is("writing the report")
	if err := l.writeReport(); err != nil {
		return err
	}
	l.step.done()
	return l.become(l.request.Env)
}

func (l *launch) warn(text string) {
	if text == "" {
		return
	}
	l.warnings = append(l.warnings, text)
	l.log.Warn(text)
	output.Say(output.Name(l.program.Name), "warning", text)
}
