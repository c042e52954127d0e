package shim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/seccomp"
)

// Run makes one launch. It returns only when the program was not started, with
// the exit code; everything there is to say has then been said on stderr. It
// must be called on the main thread, which package boot has locked.
func Run(s *Start) int {
	l := &launch{start: s, began: time.Now(), log: hclog.NewNullLogger()}
	err := l.run()
	f := asFailure("launch", err)
	l.conclude(f)
	sayFailure(l.target.name, f)
	return f.code
}

// A launch is the state that its steps hand on.
type launch struct {
	start  *Start
	began  time.Time
	me     self
	target target
	env    []string
	policy *rules.Policy
	source load.Source
	report *Report
	out    *output // the report's destination
	log    hclog.Logger
	step   watchedStep
	// seen is what the plans of this launch found hidden, also those that
	// were given up.
	seen plan.Past
	// inherited are the descriptors that the launcher left open.
	inherited []int
}

// run is the launch, step by step. Each step's reason for its place is with it.
func (l *launch) run() error {
	s := l.start
	if !s.Entered {
		return fail("linked without its entry point", errors.New("signals, descriptors and environment of the caller are lost"))
	}
	if s.RecordErr != nil {
		return fail("record", s.RecordErr)
	}
	l.me = findSelf(s)
	l.target.name = base(l.me.invoked)
	// Before anything that the caller can steer.
	if s.Privileged != "" {
		return fail("refused", errors.New(s.Privileged))
	}

	// The variable is gone from here on, whatever is wrong with it.
	value, err := l.takePolicy()
	if err != nil {
		return err
	}
	if rules.Blank(value) {
		return l.passThrough()
	}
	// Before the shim opens a descriptor that it keeps: the watch has some.
	if l.inherited, err = inherited(s.Closed); err != nil {
		return fail("descriptors", err)
	}
	if err := l.step.watch(s, l.target.name); err != nil {
		return fail("descriptors", err)
	}
	if err := l.decode(value); err != nil {
		return err
	}
	if l.target, err = findTarget(s, l.me, l.policy.Program, l.env); err != nil {
		return l.targetFailure(err)
	}
	l.report = newReport(s, l.target)
	if err := l.openOutputs(); err != nil {
		return err
	}
	l.env = rules.Apply(l.env, l.policy.Env)
	l.env = rules.Apply(l.env, l.policy.ToolchainEnv(l.env))
	if err := l.missesCommandCheck(); err != nil {
		return err
	}
	// The templates speak of the environment that the program gets.
	if err := l.expand(); err != nil {
		return err
	}

	switch {
	case l.policy.Confines():
		if err := l.confine(); err != nil {
			return err
		}
	case len(l.policy.Precreate) > 0:
		if err := l.precreate(); err != nil {
			return err
		}
	}
	l.step.is("writing the report")
	if err := l.writeReport(); err != nil {
		return err
	}
	l.step.done()
	return l.become()
}

func (l *launch) policyEnv() string {
	if l.start.Record.PolicyEnv != "" {
		return l.start.Record.PolicyEnv
	}
	return rules.DefaultPolicyEnv
}

func (l *launch) takePolicy() (string, error) {
	value, _, rest, err := rules.Pick(l.start.Envp, l.policyEnv())
	l.env = rest
	if err != nil {
		return "", fail("policy", err)
	}
	return value, nil
}

func (l *launch) decode(value string) error {
	p, source, err := load.Policy(value, load.Options{PolicyEnv: l.policyEnv(), ProfileDir: l.start.Record.ProfileDir})
	if err != nil {
		return fail("policy in "+l.policyEnv(), err)
	}
	l.policy, l.source = p, source
	if p.Report.IsZero() && l.start.Record.Report != "" {
		p.Report = rules.Destination{Path: l.start.Record.Report}
	}
	if p.Log.To.IsZero() && l.start.Record.Log != "" {
		p.Log = rules.LogConfig{Level: "info", To: rules.Destination{Path: l.start.Record.Log}}
	}
	return nil
}

// passThrough is the launch without a policy: nothing is added or taken.
func (l *launch) passThrough() error {
	if l.start.Record.OnMissing == record.Refuse && !seccomp.Marked() {
		return &failure{code: exitRefused, what: "refused", err: fmt.Errorf("no policy in %s, and this shim was installed to want one", l.policyEnv())}
	}
	var err error
	if l.target, err = findTarget(l.start, l.me, "", l.env); err != nil {
		return l.targetFailure(err)
	}
	return l.become()
}

func (l *launch) targetFailure(err error) error {
	switch {
	case errors.Is(err, errNotFound):
		return &failure{code: exitNotFound, what: "not found", err: err}
	case errors.Is(err, errIsShim):
		return &failure{code: exitNotFound, what: "not found", err: err}
	default:
		return &failure{code: exitRefused, what: "cannot be executed", err: err}
	}
}

// openOutputs opens report and log before the confinement, which may hide
// where they are. A report that cannot be written stops a required launch; a
// log never stops one.
func (l *launch) openOutputs() error {
	out, err := openOutput(l.policy.Report, l.inherited)
	switch {
	case err == nil:
		l.out = out
	case l.policy.Required:
		return fail("report", err)
	default:
		say(name(l.target.name), "warning", "no report: "+err.Error())
	}
	logOut, err := openOutput(l.policy.Log.To, l.inherited)
	if err != nil {
		l.report.NotEnforced = append(l.report.NotEnforced, rules.Gap{What: "log", Why: err.Error(), Limit: true})
		say(name(l.target.name), "warning", "no log: "+err.Error())
		return nil
	}
	l.log = newLogger(l.policy.Log, logOut)
	return nil
}

// confine is everything between a decoded policy and a proven domain.
func (l *launch) confine() error {
	if err := l.choose(); err != nil {
		return err
	}
	p, r := l.policy, l.report
	kernel := probe()
	// Before anything else looks at mounts.
	isolateProc(p, &kernel)
	r.Enforced, r.NotEnforced = assess(p, kernel, r.NotEnforced)
	if err := l.demand(r.NotEnforced, kernel); err != nil {
		return err
	}

	// Directories are made before the walk, so that it sees them.
	if err := l.precreate(); err != nil {
		return err
	}

	var err error
	c := &confinement{}
	if p.UsesLandlock() {
		if c, err = l.plan(kernel); err != nil {
			return err
		}
		defer c.close()
	}
	// Before anything of this process is changed.
	l.step.is("checking the command")
	if err := l.checkCommand(c.plan); err != nil {
		return err
	}
	// What the launcher left open is judged by the plan, and before it could
	// be of use to anybody.
	if r.Descriptors, err = closeDescriptors(l.foreign(), p, c.plan, kernel); err != nil {
		return fail("descriptors", err)
	}
	if err := l.dropPrivileges(); err != nil {
		return err
	}
	if err := l.restrict(c, kernel); err != nil {
		return err
	}
	if err := l.filter(kernel); err != nil {
		return err
	}
	l.step.is("proving the confinement")
	if err := l.prove(c); err != nil {
		return fail(doubt(err), err)
	}
	return nil
}

func (l *launch) precreate() (err error) {
	l.step.is("making the directories to precreate")
	if l.report.Precreated, err = precreate(l.policy); err != nil {
		return fail("policy", err)
	}
	return nil
}

// missesCommandCheck stops a required launch that asks for a check which this
// binary was built without.
func (l *launch) missesCommandCheck() error {
	if !l.policy.CommandCheck || noCommandCheck == "" {
		return nil
	}
	gap := rules.Gap{What: "command", Why: noCommandCheck}
	l.report.NotEnforced = append(l.report.NotEnforced, gap)
	if l.policy.Confines() {
		return nil // confine demands what is not enforced, all at once
	}
	return l.demand([]rules.Gap{gap}, rules.Kernel{})
}

func assess(p *rules.Policy, k rules.Kernel, gaps []rules.Gap) ([]rules.Enforcement, []rules.Gap) {
	held, more := rules.Assess(p, k)
	return held, append(gaps, more...)
}

// foreign is what the launcher left open, without the descriptors that the
// policy itself names for its report and log.
func (l *launch) foreign() []int {
	return slices.DeleteFunc(slices.Clone(l.inherited), func(fd int) bool {
		return l.policy.Report.IsFD && fd == l.policy.Report.FD || l.policy.Log.To.IsFD && fd == l.policy.Log.To.FD
	})
}

// restrict enters the Landlock domain. A launch whose policy does not require
// it goes on without, and says so.
func (l *launch) restrict(c *confinement, k rules.Kernel) error {
	if !l.policy.UsesLandlock() {
		return nil
	}
	if k.ABI == 0 {
		l.report.Mechanism = mechanismUnavailable
		return nil
	}
	l.report.Landlock = &LandlockReport{ABI: k.ABI, Errata: k.Errata, Rules: c.rulesAdded}
	if c.rules == nil {
		return nil // this kernel's Landlock knows nothing of what is asked
	}
	l.step.is("enforcing the ruleset")
	err := c.rules.restrict()
	switch {
	case err == nil:
		l.report.Mechanism, l.report.Landlock.Layers = mechanismLandlock, 1
		// Only a domain freezes anything, or makes anything but its roots
		// read-only.
		if c.plan != nil {
			l.report.Frozen = c.frozen
			l.report.WritableDirs = c.plan.WritableDirs()
			if text := c.plan.CwdFrozen(); text != "" {
				l.warn(text)
			}
		}
		return nil
	case errors.Is(err, errTooManyLayers) && !l.policy.Required:
		// Whatever confined the caller holds as before.
		c.release()
		r := l.report
		r.Enforced, r.NotEnforced = rules.Lose(r.Enforced, r.NotEnforced, err.Error())
		r.Mechanism = mechanismUnavailable
		l.warn("this launch adds no confinement by Landlock: " + err.Error())
		return nil
	default:
		return fail("confinement", err)
	}
}

// filter loads the seccomp filter. It comes after the domain, since nothing
// behind it needs a system call that the filter refuses.
func (l *launch) filter(k rules.Kernel) error {
	config := filterFor(l.policy)
	if config.Empty() {
		return nil
	}
	if k.NoSeccomp != "" {
		return nil
	}
	l.step.is("loading the seccomp filter")
	if err := seccomp.Load(config); err != nil {
		return fail("confinement", err)
	}
	l.report.filtered(l.policy)
	return nil
}

// prove tries what the launch believes to hold.
func (l *launch) prove(c *confinement) error {
	if l.report.Mechanism == mechanismLandlock || l.report.Mechanism == mechanismBoth {
		if c.plan != nil {
			if err := prove(c.plan, c.held, c.rules, l.target.path); err != nil {
				return err
			}
		}
		if err := c.mountsUnchanged(); err != nil {
			return err
		}
		if err := proveProc(l.report.Enforced); err != nil {
			return err
		}
	}
	if l.report.seccomp {
		return proveFilter(l.policy)
	}
	return nil
}

// demand stops a required launch for a guarantee that cannot be given; another
// one goes on with a warning.
func (l *launch) demand(gaps []rules.Gap, k rules.Kernel) error {
	var lost []string
	for _, g := range gaps {
		if g.Limit {
			continue
		}
		if l.policy.Required {
			return &failure{
				code: exitShim, what: "cannot enforce " + g.What, err: errors.New(g.Why + `; the policy is "required"`),
				hint: hint(k),
			}
		}
		lost = append(lost, g.What+" ("+g.Why+")")
	}
	if lost != nil {
		l.warn("not enforced: " + strings.Join(lost, ", "))
	}
	return nil
}

func (l *launch) warn(text string) {
	l.report.warn(text)
	l.log.Warn(text)
	say(name(l.target.name), "warning", text)
}

// A confinement is a planned and built domain that is not entered yet. What a
// launch does not need of it is nil.
type confinement struct {
	mounts     *mountWatch
	plan       *plan.Plan
	held       held
	rules      *ruleset
	rulesAdded int
	// atStake is what the program could change of the next launch.
	atStake []rules.Gap
	// needed are the real places of what the program needs to start.
	needed []string
	// frozen holds what is granted entry by entry, sorted.
	frozen []string
}

func (c *confinement) close() {
	c.mounts.close()
	c.mounts = nil
	c.release()
}

// release gives up a domain that was not entered.
func (c *confinement) release() {
	c.held.close()
	c.held = nil
	if c.rules != nil {
		c.rules.close()
		c.rules = nil
	}
}

// maxPlans is how often a launch plans anew when the file system changes under
// it. A peer that never stops changing it can stop the launch, no more.
const maxPlans = 5

func (l *launch) plan(k rules.Kernel) (*confinement, error) {
	var err error
	for range maxPlans {
		var c *confinement
		if c, err = l.planOnce(k); err == nil {
			return c, nil
		}
		if !errors.Is(err, pathcheck.ErrChanged) {
			break
		}
		l.log.Debug("planning again", "because", err.Error())
	}
	return nil, planFailure(err)
}

// planFailure tells a policy that cannot be had from a plan that cannot be made.
func planFailure(err error) error {
	if _, ok := errors.AsType[*rules.Error](err); ok {
		return fail("policy", err)
	}
	return fail("plan", err)
}

func (l *launch) planOnce(k rules.Kernel) (_ *confinement, err error) {
	c := &confinement{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if k.ABI > 0 {
		if c.rules, err = newRuleset(l.policy, k); err != nil && !errors.Is(err, errNothingHandled) {
			return nil, err
		}
	}
	if !l.policy.ConfinesFiles() {
		return c, nil
	}
	l.step.is("reading the table of mounts")
	// Opened before the lookups, so that a mount made meanwhile is noticed.
	watch, absent, err := watchMounts()
	if err != nil {
		return nil, err
	}
	c.mounts = watch
	mounts, err := watch.read()
	if err != nil {
		return nil, err
	}
	known := l.known(mounts)
	l.step.is("looking up the policy's paths")
	seen := pathcheck.Keep(pathcheck.OS{})
	defer func() { seen.Release() }()
	missing, err := l.missingDirs(known, seen)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		l.makeToolchainDirs(missing)
		seen.Release()
		seen = pathcheck.Keep(pathcheck.OS{})
	}
	if err := l.look(c, known, seen); err != nil {
		return nil, err
	}
	seen.Release()
	if c.rules == nil {
		// No Landlock: the plan still says what the policy means, and which
		// descriptors lead around it.
		l.describe(c, plan.Tally{}, absent)
		return c, nil
	}
	c.rules.needed = c.needed
	// What is granted is looked up anew, and must be what the plan is about.
	tree := pathcheck.Keep(pathcheck.OS{})
	defer tree.Release()
	if c.held, err = hold(c.plan, tree); err != nil {
		return nil, err
	}
	l.step.is("walking the directories above the hidden paths")
	tally, err := c.plan.Walk(tree, c.rules)
	if err == nil {
		err = tree.Err()
	}
	if err != nil {
		return nil, err
	}
	// A mount that came up and is gone again may have shown a part of what is
	// hidden where the walk granted it.
	if changed, err := c.mounts.changed(); err != nil {
		return nil, err
	} else if changed {
		return nil, fmt.Errorf("the table of mounts: %w", pathcheck.ErrChanged)
	}
	l.describe(c, tally, absent)
	return c, nil
}

// known is what the compiler must know of this launch.
func (l *launch) known(mounts pathcheck.Mounts) plan.Launch {
	known := facts(l.env, l.target, mounts, l.policy)
	known.Past = &l.seen
	l.aboutRoots(&known)
	return known
}

// look makes the plan in one pass over the file system: what the policy's paths
// are, and what of the next launch this one would put at stake.
func (l *launch) look(c *confinement, known plan.Launch, tree *pathcheck.Kept) (err error) {
	if c.plan, err = plan.Make(l.policy, known, tree); err != nil {
		return err
	}
	g := &guard{launch: l, pl: c.plan, tree: tree}
	stakes := g.stakes()
	if err := g.protect(stakes); err != nil {
		return err
	}
	if c.atStake = g.gaps(stakes); g.err != nil {
		return g.err
	}
	c.needed = realPaths(tree, known.Needed)
	return tree.Err()
}

// mountsUnchanged asks whether an alias of a hidden location has come up since
// the plan was made.
func (c *confinement) mountsUnchanged() error {
	changed, err := c.mounts.changed()
	if err != nil || !changed {
		return err
	}
	mounts, err := c.mounts.read()
	if err != nil {
		return err
	}
	return c.plan.CheckMounts(mounts)
}

// realPaths resolves what the program needs; what does not exist is left to
// execve to complain about.
func realPaths(t pathcheck.Tree, needed []plan.Need) []string {
	var out []string
	for _, n := range needed {
		loc, err := pathcheck.Resolve(t, n.Path)
		if err == nil && loc.Exists {
			out = append(out, loc.Path)
		}
	}
	return out
}

// describe puts the plan into the report.
func (l *launch) describe(c *confinement, tally plan.Tally, noMounts bool) {
	r := l.report
	r.Hidden, r.Exposed = nil, nil
	for _, h := range c.plan.Hidden {
		r.Hidden = append(r.Hidden, h.Path)
	}
	for _, x := range c.plan.Exposed {
		r.Exposed = append(r.Exposed, x.Path)
	}
	c.rulesAdded = tally.Grants
	c.frozen = slices.Sorted(slices.Values(slices.Concat(c.plan.Frozen, tally.Split)))
	gaps := c.plan.Limits
	if noMounts {
		gaps = append(gaps, rules.Gap{What: "mount-alias", Why: "/proc is not mounted, so other mounts of hidden paths cannot be found", Limit: true})
	}
	if len(tally.Unlisted) > 0 {
		gaps = append(gaps, rules.Gap{
			What: "unlisted", Path: tally.Unlisted[0], Limit: true,
			Why: fmt.Sprintf("%d directories cannot be listed; of their entries only the usual and the named ones stay usable", len(tally.Unlisted)),
		})
	}
	if tally.Unopened > 0 {
		gaps = append(gaps, rules.Gap{What: "unopened", Why: fmt.Sprintf("%d entries could not be opened and are denied", tally.Unopened), Limit: true})
	}
	gaps = append(gaps, c.atStake...)
	r.NotEnforced = append(r.NotEnforced, gaps...)
	for _, text := range c.plan.Warnings {
		l.warn(text)
	}
	l.log.Debug("planned", "hidden", r.Hidden, "exposed", r.Exposed, "frozen", c.frozen, "rules", tally.Grants)
}

// dropPrivileges sets no_new_privs, without which an unprivileged process may
// not restrict itself and a set-id program would leave the domain's purpose
// behind, and then takes capabilities away. The walk comes before it: it may
// need CAP_DAC_READ_SEARCH.
func (l *launch) dropPrivileges() error {
	l.step.is("dropping privileges")
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fail("confinement", fmt.Errorf("set no_new_privs: %w", err))
	}
	r := l.report
	if l.policy.Capabilities == rules.CapabilitiesKeep {
		if names := dangerousHeld(); names != "" {
			r.NotEnforced = append(r.NotEnforced, rules.Gap{
				What: "capabilities", Why: "kept as the policy says; these reach around the confinement: " + names, Limit: true,
			})
		}
		return nil
	}
	if err := restrictCapabilities(); err != nil {
		if l.policy.Required {
			return fail("confinement", err)
		}
		r.NotEnforced = append(r.NotEnforced, rules.Gap{What: "capabilities", Why: err.Error()})
		r.lose("proc", rules.ByLandlock, "capabilities are kept: "+err.Error())
		l.warn("capabilities are kept: " + err.Error())
		return nil
	}
	r.Enforced = append(r.Enforced, rules.Enforcement{What: "capabilities", By: rules.ByCapabilities})
	if unix.Geteuid() == 0 && boundingExceeds() {
		r.NotEnforced = append(r.NotEnforced, rules.Gap{
			What: "capabilities", Limit: true,
			Why: "without CAP_SETPCAP the bounding set stays as it is; no_new_privs keeps the program from gaining anything by it",
		})
	}
	return nil
}

// writeReport writes the report before execve, after which there is nobody to
// write it.
func (l *launch) writeReport() error {
	r := l.report
	hidden, exposed := l.runScope()
	l.log.Info("launch", "pid", r.PID, "target", r.Target, "mechanism", r.Mechanism, "hidden", r.Hidden, "exposed", r.Exposed,
		"run_hidden", hidden, "run_exposed", exposed)
	if l.out == nil {
		return nil
	}
	_, err := l.out.Write(l.report.line(l.began))
	if err == nil {
		return nil
	}
	if l.policy.Required {
		return fail("report", err)
	}
	say(name(l.target.name), "warning", "no report: "+err.Error())
	return nil
}

// conclude writes the report of a launch that failed, if it came so far as to
// have one.
func (l *launch) conclude(f *failure) {
	if l.report == nil {
		return
	}
	l.report.Outcome, l.report.Error = "error", oneLine(f.Error())
	l.log.Error("not started", "error", l.report.Error)
	if l.out == nil {
		return
	}
	// Nothing is left to do about an error here but to say the first one.
	_, _ = l.out.Write(l.report.line(l.began))
}

// become calls execve. A file that is neither a binary nor a script with a #!
// line is run by /bin/sh, as execvp(3) does.
func (l *launch) become() error {
	path, argv := l.target.path, l.start.Argv
	if l.start.Record.Argv0 == record.Real {
		argv = append([]string{path}, tail(argv)...)
	}
	err := l.start.Exec(path, argv, l.env)
	if errors.Is(err, unix.ENOEXEC) {
		script := append([]string{"/bin/sh", path}, tail(argv)...)
		if err2 := l.start.Exec("/bin/sh", script, l.env); err2 != nil {
			err = err2
		}
	}
	code := exitRefused
	if errors.Is(err, unix.ENOENT) && !exists(path) {
		code = exitNotFound
	}
	f := &failure{code: code, what: "execve", err: fmt.Errorf("%q: %w", path, err)}
	if errors.Is(err, unix.ENOENT) && code == exitRefused {
		f.hint = "the file is there, so its #! interpreter or its loader is missing"
	}
	return f
}

func tail(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	return argv[1:]
}

func exists(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil
}
