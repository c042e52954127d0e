package planner

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/target"
)

// An Input is what a plan is made from, besides the running system.
type Input struct {
	// Policy is what was asked, its templates resolved, see [Resolve].
	Policy *rules.Policy
	Source load.Source
	// Env is the environment that the program gets, Outer the launcher's.
	Env, Outer []string
	Self       target.Self
	Program    target.Program
	// Report is the absolute path of the report, or "".
	Report string
	// ReadOnly are the real paths that mounts of this launch keep from being changed.
	ReadOnly []string
	// Dry makes nothing: directories that a launch would make are imagined.
	Dry bool
	// Step is told what begins, and Debug what a log may want to know.
	Step  func(what string)
	Debug func(msg string, args ...any)
}

// A Plan is what a launch will enter, and what it needs for the proof. [Plan.Close]
// releases the descriptors.
type Plan struct {
	// Files is the policy's meaning on this file system.
	Files *plan.Plan
	// Held are the first hidden locations, open, in the order of the plan.
	Held []pathcheck.Node
	// Needed are the real paths of what the program needs to start.
	Needed []string
	// Rules is the number of grants, Frozen what is granted entry by entry, sorted.
	Rules  int
	Frozen []string
	// Gaps is what this launch cannot hold, beyond what the kernel cannot.
	Gaps []rules.Gap
	// Made are the toolchain directories that a dry run imagined.
	Made []string

	mounts *mountWatch
}

// maxPlans is how often a launch plans anew when the file system changes under
// it. A peer that never stops changing it can stop the launch, no more.
const maxPlans = 5

// Make plans. sink is called once each time it plans, with the real paths of what
// the program needs to start, and takes the grants; nil: there is nobody to grant to,
// and the plan only says what the policy means. An error about the policy is a
// [*rules.Error].
func Make(in Input, sink func(needed []string) (plan.Sink, error)) (*Plan, error) {
	var past plan.Past
	for n := 1; ; n++ {
		p, err := in.once(&past, sink)
		if n == maxPlans || !errors.Is(err, pathcheck.ErrChanged) {
			return p, err
		}
		in.Debug("planning again", "because", err.Error())
	}
}

func (in *Input) once(past *plan.Past, sink func([]string) (plan.Sink, error)) (_ *Plan, err error) {
	p := &Plan{}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	in.Step("reading the table of mounts")
	// Opened before the lookups, so that a mount made meanwhile is noticed.
	var noMounts bool
	if p.mounts, noMounts, err = watchMounts(); err != nil {
		return nil, err
	}
	mounts, err := p.mounts.read()
	if err != nil {
		return nil, err
	}
	known := in.facts(mounts)
	known.Past = past

	in.Step("looking up the policy's paths")
	tree := pathcheck.Keep(pathcheck.OS{})
	defer func() { tree.Release() }()
	missing := plan.Missing(in.Policy, known, tree)
	if err := tree.Err(); err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		p.Made = in.makeToolchainDirs(missing)
		tree.Release()
		tree = pathcheck.Keep(in.ground(missing))
	}
	if err := in.look(p, known, tree); err != nil {
		return nil, err
	}
	var tally plan.Tally
	if sink != nil {
		to, err := sink(p.Needed)
		if err != nil {
			return nil, err
		}
		// What is granted is looked up anew, and must be what the plan is about.
		tree.Release()
		tree = pathcheck.Keep(in.ground(missing))
		if tally, err = in.grant(p, tree, to); err != nil {
			return nil, err
		}
	}
	p.describe(tally, noMounts)
	in.Debug("planned", "hidden", paths(p.Files.Hidden), "frozen", p.Frozen, "rules", p.Rules)
	return p, nil
}

// look makes the plan in one pass over the file system: what the policy's paths
// are, and what of the next launch this one could change.
func (in *Input) look(p *Plan, known plan.Launch, tree *pathcheck.Kept) (err error) {
	if p.Files, err = plan.Make(in.Policy, known, tree); err != nil {
		return err
	}
	if p.Gaps, err = in.protect(p.Files, known.Mounts, tree); err != nil {
		return err
	}
	for _, n := range known.Needed {
		// What does not exist is left to execve to complain about.
		if loc, err := pathcheck.Resolve(tree, n.Path); err == nil && loc.Exists {
			p.Needed = append(p.Needed, loc.Path)
		}
	}
	return tree.Err()
}

// grant holds the hidden locations and hands over the grants.
func (in *Input) grant(p *Plan, tree *pathcheck.Kept, to plan.Sink) (tally plan.Tally, err error) {
	if p.Held, err = hold(p.Files, tree); err != nil {
		return tally, err
	}
	in.Step("walking the directories above the hidden paths")
	if tally, err = p.Files.Walk(tree, to); err != nil {
		return tally, err
	}
	if err := tree.Err(); err != nil {
		return tally, err
	}
	// A mount that came up and is gone again may have shown a part of what is
	// hidden where the walk granted it.
	changed, err := p.mounts.changed()
	if err == nil && changed {
		err = fmt.Errorf("the table of mounts: %w", pathcheck.ErrChanged)
	}
	return tally, err
}

// ground is the file system, and in a dry run with the directories that are missing.
func (in *Input) ground(missing []plan.MissingDir) pathcheck.Tree {
	if in.Dry && len(missing) > 0 {
		return foresee(pathcheck.OS{}, missing)
	}
	return pathcheck.OS{}
}

// describe adds what the walk has found.
func (p *Plan) describe(tally plan.Tally, noMounts bool) {
	p.Rules = tally.Grants
	p.Frozen = slices.Sorted(slices.Values(slices.Concat(p.Files.Frozen, tally.Split)))
	gaps := p.Files.Limits
	if noMounts {
		gaps = append(gaps, rules.Gap{What: "mount-alias", Why: "/proc is not mounted, so other mounts of hidden paths cannot be found", Limit: true})
	}
	if n := len(tally.Unlisted); n > 0 {
		gaps = append(gaps, rules.Gap{
			What: "unlisted", Path: tally.Unlisted[0], Limit: true,
			Why: fmt.Sprintf("%d directories cannot be listed; of their entries only the usual and the named ones stay usable", n),
		})
	}
	if tally.Unopened > 0 {
		gaps = append(gaps, rules.Gap{What: "unopened", Why: fmt.Sprintf("%d entries could not be opened and are denied", tally.Unopened), Limit: true})
	}
	p.Gaps = append(gaps, p.Gaps...)
}

// MountsUnchanged returns an error when an alias of a hidden location has come up
// since the plan was made.
func (p *Plan) MountsUnchanged() error {
	changed, err := p.mounts.changed()
	if err != nil || !changed {
		return err
	}
	mounts, err := p.mounts.read()
	if err != nil {
		return err
	}
	return p.Files.CheckMounts(mounts)
}

// Close releases what the plan holds open. It may be called again, and on nil.
func (p *Plan) Close() {
	if p == nil {
		return
	}
	p.mounts.close()
	p.mounts = nil
	for _, n := range p.Held {
		n.Close()
	}
	p.Held = nil
}

func paths(hidden []plan.Hidden) []string {
	out := make([]string, len(hidden))
	for i, h := range hidden {
		out[i] = h.Path
	}
	return out
}
