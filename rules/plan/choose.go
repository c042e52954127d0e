package plan

import (
	"fmt"
	"slices"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// An author says who chose a hidden location. Of two entries that hide the same
// one, the higher author counts.
type author uint8

const (
	// byLaunch: the launch's own values did.
	byLaunch author = iota
	// byTemplate: a template without such values did.
	byTemplate
	// byPolicy: a plain entry did.
	byPolicy
)

func authorOf(e rules.Entry) author {
	switch {
	case e.Derived == nil:
		return byPolicy
	case e.Derived.Untrusted:
		return byLaunch
	default:
		return byTemplate
	}
}

// Choose returns the expanded policy without the entries of templates that the
// file system speaks against, and what was dropped: entries that really lie in one
// of their Unless; exposed entries that would open what they may not, or with
// nothing hidden above them; entries to precreate there. It fills in
// [Derived.Base] of the others. p is not changed; without such entries it is
// returned as it is.
//
// An entry from a template never opens what a plain entry hides. If the launch
// chose its Beneath, then it opens what is hidden at that directory and beneath
// it, and only if the launch's own values hid that, and nothing in scope
// workspace, where it would become writable.
//
// A symbolic link between Beneath and the entry is an [*Error].
func Choose(p *rules.Policy, l Launch, t pathcheck.Tree) (*rules.Policy, []rules.Dropped, error) {
	if !p.Derives() {
		return p, nil, nil
	}
	c := &chooser{tree: t, policy: *p}
	if err := c.keep(&c.policy.Hidden, c.excluded); err != nil {
		return nil, nil, err
	}
	pl := newPlan(l)
	if err := pl.findHidden(&c.policy, t); err != nil {
		return nil, nil, err
	}
	if err := pl.addAliases(t); err != nil {
		return nil, nil, err
	}
	c.plan = pl
	if err := c.keep(&c.policy.Exposed, c.mayExpose); err != nil {
		return nil, nil, err
	}
	if err := c.keep(&c.policy.Precreate, c.mayPrecreate); err != nil {
		return nil, nil, err
	}
	return &c.policy, c.dropped, nil
}

type chooser struct {
	tree    pathcheck.Tree
	policy  rules.Policy
	plan    *Plan
	dropped []rules.Dropped
}

// keep leaves the entries in list that f gives no reason against.
func (c *chooser) keep(list *[]rules.Entry, f func(*rules.Entry) (why string, err error)) error {
	var out []rules.Entry
	for _, e := range *list {
		if e.Derived != nil {
			d := *e.Derived
			e.Derived = &d
			why, err := f(&e)
			if err != nil {
				return err
			}
			if why != "" {
				c.dropped = append(c.dropped, rules.Dropped{Entry: e.Key, Path: e.Path, Why: why})
				continue
			}
		}
		out = append(out, e)
	}
	*list = out
	return nil
}

// excluded says that the entry really lies in one of its Unless.
func (c *chooser) excluded(e *rules.Entry) (why string, err error) {
	if len(e.Derived.Unless) == 0 {
		return "", nil
	}
	loc, err := pathcheck.Resolve(c.tree, e.Path)
	if err != nil {
		return "", lookupError(*e, err)
	}
	for _, dir := range e.Derived.Unless {
		in, err := pathcheck.Resolve(c.tree, dir)
		if err != nil {
			return "", lookupError(rules.Entry{Key: e.Key, Path: dir}, err)
		}
		if pathcheck.Within(in.Path, loc.Path) {
			return "lies in " + rules.QuotePath(dir), nil
		}
	}
	return "", nil
}

func (c *chooser) mayExpose(e *rules.Entry) (why string, err error) {
	if c.policy.Scope == rules.ScopeWorkspace && e.Derived.Untrusted {
		return `in scope "workspace" the launch may not choose what becomes writable`, nil
	}
	at, err := locateDerived(c.tree, *e)
	if err != nil {
		return "", err
	}
	if why, err := c.excluded(e); why != "" || err != nil {
		return why, err
	}
	e.Derived.Base = at.base.Path
	return c.plan.mayOpen(at, true), nil
}

// mayPrecreate keeps the launch's own values from making anything in places that
// others hide.
func (c *chooser) mayPrecreate(e *rules.Entry) (why string, err error) {
	if e.Derived.Beneath == "" {
		return c.excluded(e)
	}
	at, err := locateDerived(c.tree, *e)
	if err != nil {
		return "", err
	}
	if why, err := c.excluded(e); why != "" || err != nil {
		return why, err
	}
	e.Derived.Base = at.base.Path
	if !e.Derived.Untrusted {
		return "", nil
	}
	return c.plan.mayOpen(at, false), nil
}

// locateDerived finds an entry that has a Beneath, and Beneath itself.
func locateDerived(t pathcheck.Tree, e rules.Entry) (located, error) {
	base, err := pathcheck.Resolve(t, e.Derived.Beneath)
	if err != nil {
		return located{}, lookupError(e, err)
	}
	loc, err := pathcheck.Resolve(t, e.Path)
	if err != nil {
		return located{}, lookupError(e, err)
	}
	// A link below base would not be a part of the real path.
	if loc.Path != pathcheck.Join(base.Path, pathcheck.Rel(e.Derived.Beneath, e.Path)) {
		return located{}, &rules.Error{Key: e.Key, Path: e.Path, Msg: "goes through a symbolic link below " + rules.QuotePath(e.Derived.Beneath)}
	}
	return located{Entry: e, loc: loc, base: base}, nil
}

// mayOpen says why an entry of a template may not open its location, or "".
// needsHidden asks that something is hidden there at all.
func (pl *Plan) mayOpen(e located, needsHidden bool) (why string) {
	hidden := false
	for _, h := range slices.Concat(pl.Hidden, pl.kernelMounts) {
		if !h.covers(e.loc) {
			continue
		}
		hidden = true
		switch {
		case h.author == byPolicy:
			return "is hidden by " + h.Key + ", which is no template"
		case e.Derived.Untrusted && (h.author != byLaunch || !pathcheck.Within(e.base.Path, h.Path)):
			return "is hidden by " + h.Key + ", and the launch chose the directory"
		}
	}
	if needsHidden && !hidden {
		return "is beneath no hidden path"
	}
	return ""
}

// covers reports whether a hidden location is at or above another one, by path or
// by identity.
func (h Hidden) covers(loc pathcheck.Location) bool {
	if pathcheck.Within(h.Path, loc.Path) {
		return true
	}
	if !h.Exists {
		return false
	}
	return loc.Exists && h.Info.ID == loc.Info.ID ||
		slices.ContainsFunc(loc.Above, func(p pathcheck.Place) bool { return p.ID == h.Info.ID })
}

// checkDerived holds an exposed entry of a template, now that it exists, to what
// it may be. The launch has chosen before; what was planted since is an error.
func (pl *Plan) checkDerived(e located) error {
	bad := func(format string, args ...any) error {
		return &rules.Error{Key: e.Key, Path: e.Path, Msg: fmt.Sprintf(format, args...)}
	}
	if why := pl.mayOpen(e, true); why != "" {
		return bad("%s", why)
	}
	if e.Derived.Base != "" && e.base.Path != e.Derived.Base {
		return fmt.Errorf("%s: %w", e.Key, pathcheck.ErrChanged)
	}
	info := e.loc.Info
	switch {
	case info.Kind == pathcheck.Directory && e.Derived.Kind != rules.KindFile:
		return nil
	case info.Kind != pathcheck.Regular || e.Derived.Kind == rules.KindDir:
		want := map[rules.EntryKind]string{rules.KindDir: "a directory", rules.KindFile: "a regular file"}[e.Derived.Kind]
		if want == "" {
			want = "a directory or a regular file"
		}
		return bad("is there and is not %s", want)
	case info.Links > 1:
		return bad("is a file that has another name too")
	}
	return nil
}
