// Package probe finds out whether a policy holds, by trying.
package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/policies"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
)

// Help is the help text of probe.
const Help = `install-shim probe [--policy FILE|-] [--target NAME] [options] [-- ARG...]
install-shim probe --launch COMMAND [--policy FILE|-] [--target NAME]

Finds out whether a policy holds, by trying. A copy of the shim that is installed
for NAME is started under that name, with the policy, the environment and ARGs;
in place of the real program it starts a helper, which tries:

  - of every hidden path: list, read, write, create, execute; by the path itself,
    by a symbolic link, by "..", by /proc/self/root, by an inherited descriptor;
  - of every exposed path: list, read, write, create, remove;
  - a file in the temporary directory, and /proc/PID of the launcher.

What exists is not changed: it is opened for writing, and nothing is written.
Beside each try stands what the same gives outside of the shim.

  --policy FILE   the policy; - is standard input (default: the shim's variable)
  --target NAME   a name on PATH, or the path of a shim (default: the first shim on
                  PATH whose variable holds a policy; with --policy the first
                  target of its profile)
  --shim FILE     the shim to copy when none is installed for NAME
                  (default: sandbox-exec-shim beside install-shim)
  --expect NAME=read|list|write:PATH:denied|allowed
                  one more try and what must come of it; may be given more often
  --fixture       with the profile paperclip-runner: also build an instance beside
                  the real one, probe a session in it, and remove it
  --json          one JSON object
  --all           show every try, not only one line for each path
  --dir DIR       where the copies go (default: /var/tmp)
  --timeout TIME  for each launch (default: 30s)
  --launch COMMAND
                  run COMMAND with /bin/sh and say whether it meets a shim, and
                  which; with --policy under that policy, else unconfined

Exit codes: 0 all is as expected, 1 something is not, 2 wrong usage, 125 it could
not be tried, 130 interrupted. Messages begin with agent_filesystem_sandbox_ineffective: or
agent_filesystem_sandbox_unavailable:.

Examples:

  install-shim probe --policy policy.json --target bash

  install-shim probe --target paperclip-runnerd --fixture --json

  install-shim probe --policy policy.json --target bash \
    --expect answers=read:/srv/project/answers.json:denied \
    --expect work=write:/srv/project/work:allowed

  # Does a caller with an absolute path meet the shim on PATH?
  install-shim probe --target bash --launch '/bin/bash -c true'
`

// What operators look for in messages.
const (
	ineffective = "agent_filesystem_sandbox_ineffective: "
	unavailable = "agent_filesystem_sandbox_unavailable: "
)

// options are the options of the command line.
type options struct {
	policy, target, shim, dir, launch string
	fixture, json, all                bool
	timeout                           time.Duration
	expect                            []expectation
	args                              []string
}

// An expectation is what --expect says.
type expectation struct{ name, op, path, result string }

// parseExpectation reads NAME=read|list|write:PATH:denied|allowed. NAME may hold
// no "=", PATH may hold ":".
func parseExpectation(s string) (expectation, error) {
	var e expectation
	name, rest, ok := strings.Cut(s, "=")
	op, rest, ok2 := strings.Cut(rest, ":")
	i := strings.LastIndex(rest, ":")
	if !ok || !ok2 || i < 0 || name == "" {
		return e, errors.New("want NAME=read|list|write:PATH:denied|allowed")
	}
	e = expectation{name, op, rest[:i], rest[i+1:]}
	switch {
	case op != "read" && op != "list" && op != "write":
		return e, errors.New("the operation must be read, list or write")
	case e.result != allowed && e.result != denied:
		return e, errors.New("the result must be denied or allowed")
	case !path.IsAbs(e.path):
		return e, errors.New("the path must be absolute")
	}
	return e, nil
}

// Exit codes beside those of other commands.
const (
	exitNotTried    = 125
	exitInterrupted = 128 + int(syscall.SIGINT)
)

// Run probes and prints what came of it.
func Run(v *voice.Caller, args []string) error {
	err := run(v, args)
	_, usage := errors.AsType[*voice.UsageError](err)
	switch {
	case usage || errors.Is(err, voice.ErrSaid):
		return err
	case errors.Is(err, errInterrupted):
		return voice.Exit(exitInterrupted, err)
	default:
		return voice.Exit(exitNotTried, err)
	}
}

func read(args []string) (*options, error) {
	o := &options{}
	f := voice.NewFlags("probe")
	f.Text(&o.policy, "policy")
	f.Text(&o.target, "target")
	f.Text(&o.shim, "shim")
	f.Text(&o.dir, "dir")
	f.Text(&o.launch, "launch")
	f.Switch(&o.fixture, "fixture")
	f.Switch(&o.json, "json")
	f.Switch(&o.all, "all")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "")
	f.Func("expect", "", func(s string) error {
		e, err := parseExpectation(s)
		o.expect = append(o.expect, e)
		return err
	})
	var err error
	if o.args, err = f.Read(args); err != nil {
		return nil, err
	}
	switch {
	case f.Given("launch") && strings.TrimSpace(o.launch) == "":
		return nil, f.Wrong("--launch: no command")
	case f.Given("launch") && (o.fixture || o.expect != nil || len(o.args) > 0):
		return nil, f.Wrong("--launch goes with --policy, --target, --json, --dir and --timeout only")
	case o.timeout <= 0:
		return nil, f.Wrong("--timeout must be positive")
	}
	return o, nil
}

func run(v *voice.Caller, args []string) error {
	o, err := read(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if o.launch != "" {
		return meets(ctx, v, o)
	}
	res, err := probe(ctx, v, o)
	if _, ok := errors.AsType[*launchError](err); ok {
		return fmt.Errorf("%s%w", unavailable, err)
	}
	if err != nil {
		return err
	}
	return res.print(v, o)
}

// A result is all that was found.
type result struct {
	checks []*check
	report report.Report
	// shim is what was copied, name the name it had.
	shim, name string
	installed  bool
}

func probe(ctx context.Context, v *voice.Caller, o *options) (*result, error) {
	if o.target == "" && o.policy == "" {
		o.target = shimWithPolicy(v)
	}
	var src shims.File
	var err error
	if o.target != "" {
		src, err = installed(v, o.target)
		if err == nil && !src.IsShim && o.shim == "" {
			err = voice.Hinted(voice.Refused(o.target, "no shim is installed for it"), "name a shim with --shim to probe the policy alone")
		}
		if err != nil {
			return nil, err
		}
	}
	policy, err := policies.Read(v, "probe", o.policy, src.Record)
	if err != nil {
		return nil, err
	}
	if o.fixture && (policy.Profile != rules.PaperclipRunner || policy.Root == "") {
		return nil, &voice.UsageError{Command: "probe", Msg: "--fixture wants a policy with the profile " + rules.PaperclipRunner + " and its root"}
	}
	name := o.target
	if name == "" {
		// The name decides which templates of the profile apply.
		name = "probe"
		if len(policy.Targets) > 0 {
			name = policy.Targets[0]
		}
		if src, err = installed(v, name); err != nil {
			return nil, err
		}
	}
	res := &result{name: path.Base(name), installed: src.IsShim}
	if !src.IsShim {
		if src, err = shims.Load(o.shim); err != nil {
			return nil, err
		}
	}
	res.shim = src.Path
	stage, err := newStage(o.dir, res.name, src)
	if err != nil {
		return nil, err
	}
	defer stage.remove()

	// The report goes where the record of the copy says.
	policy.Report, policy.Log = rules.Destination{}, rules.LogConfig{}
	l := visit{args: o.args, env: policy.Environ, timeout: o.timeout}
	if l.policy, err = policies.Text(policy.Policy); err != nil {
		return nil, err
	}
	if res.checks, res.report, err = stage.probe(ctx, l, func(s *set, r report.Report) {
		s.general(r, cmp.Or(v.Getenv("TMPDIR"), "/tmp"))
		for _, e := range o.expect {
			s.expectation(e)
		}
	}); err != nil || !o.fixture {
		return res, err
	}
	f, err := newFixture(policy.Root)
	if err != nil {
		return nil, err
	}
	defer f.remove()
	policy.Root = f.root
	if l.policy, err = policies.Text(policy.Policy); err != nil {
		return nil, err
	}
	l.args, l.env = f.args(), f.env(l.env)
	more, _, err := stage.probe(ctx, l, func(s *set, _ report.Report) { f.checks(s) })
	res.checks = append(res.checks, more...)
	return res, err
}

// probe launches twice: what a launch hides is known from the report of the
// first, and descriptors of it are opened before the second.
func (s *stage) probe(ctx context.Context, v visit, plan func(*set, report.Report)) ([]*check, report.Report, error) {
	_, r, err := s.launch(ctx, v)
	if err != nil {
		return nil, r, err
	}
	all := &set{stage: s}
	defer all.close()
	plan(all, r)
	v.tries, v.files = all.tries()
	outcomes, r, err := s.launch(ctx, v)
	if err != nil {
		return nil, r, err
	}
	all.judge(outcomes)
	return all.checks, r, nil
}

// expectation adds what --expect asks for.
func (s *set) expectation(e expectation) {
	op := operation(e.op)
	if op == opWrite {
		switch st, err := os.Stat(e.path); {
		case err != nil:
			op = opCreate
		case st.IsDir():
			op = opUse
		}
	}
	s.add(e.name, e.result, "", try{Op: op, Path: e.path})
}

// shimWithPolicy returns the first shim on PATH whose variable holds a policy.
func shimWithPolicy(v *voice.Caller) string {
	for _, known := range shims.All(shims.PathDirs(v)) {
		if !rules.Blank(v.Getenv(known.Record.PolicyEnv)) {
			return known.Path
		}
	}
	return ""
}

// installed returns the shim that PATH gives for a name, or the one at a path;
// none when PATH gives another file or none.
func installed(v *voice.Caller, target string) (shims.File, error) {
	at, err := shims.Find(v, target)
	switch byName := !strings.Contains(target, "/"); {
	case byName && (err != nil || !at.IsShim):
		return shims.File{}, nil
	case err != nil:
		return at, err
	case !at.IsShim:
		return at, voice.Refused(target, "is not a shim")
	}
	if at, err = shims.Load(at.Path); err == nil && !at.Recorded {
		err = shims.NoRecord(at.Path)
	}
	return at, err
}
