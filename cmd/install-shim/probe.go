package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
)

const probeHelp = `install-shim probe [--policy FILE|-] [--target NAME] [options] [-- ARG...]
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

// A probeOptions are the options of the command line.
type probeOptions struct {
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

func (a *admin) probe(args []string) int {
	err := a.probeAndPrint(args)
	if a.finish(err) == exitOK {
		return exitOK
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if errors.Is(err, errSaid) {
		return exitFailed
	}
	if errors.Is(err, errInterrupted) {
		return 128 + int(syscall.SIGINT)
	}
	return exitRunFailed
}

func (a *admin) probeOptions(args []string) (*probeOptions, error) {
	o := &probeOptions{}
	f := newFlags("probe")
	f.StringVar(&o.policy, "policy", "", "")
	f.StringVar(&o.target, "target", "", "")
	f.StringVar(&o.shim, "shim", "", "")
	f.StringVar(&o.dir, "dir", "", "")
	f.StringVar(&o.launch, "launch", "", "")
	f.BoolVar(&o.fixture, "fixture", false, "")
	f.BoolVar(&o.json, "json", false, "")
	f.BoolVar(&o.all, "all", false, "")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "")
	f.Func("expect", "", func(s string) error {
		e, err := parseExpectation(s)
		o.expect = append(o.expect, e)
		return err
	})
	var err error
	if o.args, err = parse(f, args); err != nil {
		return nil, err
	}
	given := givenFlags(f)
	switch {
	case given["launch"] && blankText(o.launch):
		return nil, &usageError{"probe", "--launch: no command"}
	case given["launch"] && (o.fixture || o.expect != nil || len(o.args) > 0):
		return nil, &usageError{"probe", "--launch goes with --policy, --target, --json, --dir and --timeout only"}
	case o.timeout <= 0:
		return nil, &usageError{"probe", "--timeout must be positive"}
	}
	return o, nil
}

func blankText(s string) bool { return strings.TrimSpace(s) == "" }

func (a *admin) probeAndPrint(args []string) error {
	o, err := a.probeOptions(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if o.launch != "" {
		return a.probeLaunch(ctx, o)
	}
	res, err := a.probeAll(ctx, o)
	var notStarted *launchError
	switch {
	case errors.As(err, &notStarted):
		return fmt.Errorf("%s%w", unavailable, err)
	case err != nil:
		return err
	}
	return a.printProbe(o, res)
}

// A probeResult is all that was found.
type probeResult struct {
	checks []*check
	report report.Report
	// shim is what was copied, name the name it had.
	shim, name string
	installed  bool
}

func (a *admin) probeAll(ctx context.Context, o *probeOptions) (*probeResult, error) {
	src, rec, err := a.probeSource(o)
	if err != nil {
		return nil, err
	}
	policy, err := a.readPolicyText("probe", o.policy, load.Options{PolicyEnv: rec.PolicyEnv, ProfileDir: rec.ProfileDir})
	if err != nil {
		return nil, err
	}
	if o.fixture && (policy.Profile != rules.PaperclipRunner || policy.Root == "") {
		return nil, &usageError{"probe", errNoFixture.Error()}
	}
	res := &probeResult{name: o.target}
	if res.name == "" {
		if len(policy.Targets) > 0 {
			res.name = policy.Targets[0]
		} else {
			res.name = "probe"
		}
	}
	if src == nil {
		if src, rec, err = a.installedFor(res.name); err != nil {
			return nil, err
		}
	}
	res.installed = src != nil
	if src == nil {
		if src, err = loadShim(o.shim); err != nil {
			return nil, err
		}
	}
	res.shim, res.name = src.path, path.Base(res.name)
	stage, err := newProbeStage(o.dir, res.name, src, rec)
	if err != nil {
		return nil, err
	}
	defer stage.remove()

	text, err := policy.quiet()
	if err != nil {
		return nil, err
	}
	v := visit{policy: text, args: o.args, env: withoutVariable(a.environ, policy.opts.PolicyEnv), timeout: o.timeout}
	if res.checks, res.report, err = stage.probe(ctx, v, func(s *probeSet, r report.Report) {
		s.general(r, v.env)
		for _, e := range o.expect {
			s.expectation(e)
		}
	}); err != nil {
		return nil, err
	}
	if !o.fixture {
		return res, nil
	}
	f, err := newFixture(policy.Root)
	if err != nil {
		return nil, err
	}
	defer f.remove()
	if v.policy, err = policy.withRoot(f.root); err != nil {
		return nil, err
	}
	v.args, v.env = f.args(), f.env(v.env)
	more, _, err := stage.probe(ctx, v, func(s *probeSet, _ report.Report) { f.checks(s) })
	res.checks = append(res.checks, more...)
	return res, err
}

// probe launches twice: what a launch hides is known from the report of the
// first, and descriptors of it are opened before the second.
func (s *probeStage) probe(ctx context.Context, v visit, plan func(*probeSet, report.Report)) ([]*check, report.Report, error) {
	_, r, err := s.launch(ctx, v)
	if err != nil {
		return nil, r, err
	}
	set := &probeSet{stage: s}
	defer set.close()
	plan(set, r)
	v.tries, v.files = set.tries()
	outcomes, r, err := s.launch(ctx, v)
	if err != nil {
		return nil, r, err
	}
	set.judge(outcomes)
	return set.checks, r, nil
}

// expectation adds what --expect asks for.
func (s *probeSet) expectation(e expectation) {
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

// probeSource returns the installed shim that --target names, or nil when the
// name is not known before the policy is read, or there is none.
func (a *admin) probeSource(o *probeOptions) (*source, record.Record, error) {
	if o.target == "" && o.policy == "" {
		o.target = a.shimWithPolicy()
	}
	if o.target == "" {
		return nil, record.Record{}, nil
	}
	src, rec, err := a.installedFor(o.target)
	if err == nil && src == nil && o.shim == "" {
		return nil, rec, &hinted{refused(o.target, "no shim is installed for it"), "name a shim with --shim to probe the policy alone"}
	}
	return src, rec, err
}

// shimWithPolicy returns the first shim on PATH whose variable holds a policy.
func (a *admin) shimWithPolicy() string {
	for _, known := range a.allShims(nil) {
		if !rules.Blank(a.getenv(known.PolicyEnv)) {
			return known.path
		}
	}
	return ""
}

// installedFor returns the shim that PATH gives for a name, or the one at a
// path; nil when PATH gives another file or none.
func (a *admin) installedFor(name string) (*source, record.Record, error) {
	p := name
	if !strings.Contains(name, "/") {
		found := a.findings(name)
		if len(found) == 0 || !found[0].shim {
			return nil, record.Record{}, nil
		}
		p = found[0].path
	}
	is, rec := shimAt(p)
	if !is {
		return nil, rec, refused(p, "is not a shim")
	}
	src, err := loadShim(p)
	if err != nil {
		return nil, rec, err
	}
	if !src.recorded {
		return nil, rec, refused(p, "is a shim without a record: it was copied there, not installed")
	}
	return src, rec, nil
}

func withoutVariable(env []string, name string) []string {
	return rules.Apply(env, rules.EnvChange{Unset: []string{name}})
}
