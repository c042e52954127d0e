package rules

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// Values is what a launch brings for templates. All but Names is chosen by
// others than the policy's author.
type Values struct {
	// Argv is the program's, with argv[0].
	Argv []string
	// Env is the program's environment.
	Env []string
	// Cwd is the current directory, "" if it is not known.
	Cwd string
	// Names are the names by which the program may stand among the targets of a
	// profile.
	Names []string
}

// Derived says how a path came of a template.
type Derived struct {
	// Beneath is the directory beneath which the path was declared to lie,
	// absolute and lexically clean, or "".
	Beneath string
	// Unless holds the directories in which the path may not lie.
	Unless []string
	Kind   EntryKind
	// Untrusted is set when the place was chosen by the launch and not by the
	// policy: for a hidden path, that any of its values was; for others, that
	// Beneath was.
	Untrusted bool
	// Base is the real location of Beneath, once plan.Choose has looked.
	Base string
}

// A Dropped is an entry that does not apply to this launch.
type Dropped struct {
	Entry string `json:"entry"`
	// Path is what the entry would have been, as far as that is known.
	Path string `json:"path,omitempty"`
	Why  string `json:"why"`
}

// Expand returns the policy with every template resolved from the launch's
// values, and what was dropped. A policy without templates is returned as it is;
// p is not changed. Nothing of the file system is looked at.
//
// Dropped are entries whose source is not given, that are not absolute, not
// strictly beneath their Beneath, of another depth, in one of Unless, or in
// exposed and precreate impossible as a path. An impossible hidden path, and a
// variable that occurs twice with different values, is an [*Error].
func (p *Policy) Expand(v Values) (*Policy, []Dropped, error) {
	hasTemplate := func(e Entry) bool { return e.Template != nil }
	if !slices.ContainsFunc(p.Hidden, hasTemplate) && !slices.ContainsFunc(p.Exposed, hasTemplate) &&
		!slices.ContainsFunc(p.Precreate, hasTemplate) {
		return p, nil, nil
	}
	x := &expander{values: v, root: p.Root, applies: p.Applies(v.Names)}
	out := *p
	var err error
	if out.Hidden, err = x.list(p.Hidden, true); err != nil {
		return nil, nil, err
	}
	if out.Exposed, err = x.list(p.Exposed, false); err != nil {
		return nil, nil, err
	}
	if out.Precreate, err = x.list(p.Precreate, false); err != nil {
		return nil, nil, err
	}
	return &out, x.dropped, nil
}

// Applies reports whether the templates of the policy's profile apply to a
// program of one of these names. It is true without a profile.
func (p *Policy) Applies(names []string) bool {
	return p.Targets == nil || slices.ContainsFunc(names, func(name string) bool { return slices.Contains(p.Targets, name) })
}

// Derives reports whether [Policy.Expand] made an entry of the policy.
func (p *Policy) Derives() bool {
	derived := func(e Entry) bool { return e.Derived != nil }
	return slices.ContainsFunc(p.Hidden, derived) || slices.ContainsFunc(p.Exposed, derived) || slices.ContainsFunc(p.Precreate, derived)
}

type expander struct {
	values  Values
	root    string
	applies bool
	dropped []Dropped
}

func (x *expander) list(list []Entry, hides bool) ([]Entry, error) {
	var out []Entry
	for _, e := range list {
		switch {
		case e.Template == nil:
			out = append(out, e)
		case e.Template.OfProfile && !x.applies:
			// Said once for all, by the launch.
		default:
			made, why, err := x.entry(e, hides)
			if err != nil {
				return nil, err
			}
			if why != "" {
				x.dropped = append(x.dropped, Dropped{Entry: e.Key, Path: made.Path, Why: why})
				continue
			}
			out = append(out, made)
		}
	}
	return out, nil
}

// entry resolves one template; why says why it is dropped. A dropped entry has
// its path if that could be made.
func (x *expander) entry(e Entry, hides bool) (made Entry, why string, err error) {
	t := e.Template
	made = Entry{Key: e.Key, Derived: &Derived{Kind: t.Kind}}
	text, why, err := x.path(e.Key, t.Path)
	if err != nil || why != "" {
		return made, why, err
	}
	if _, err := cleanPath(text); err != nil || strings.Contains(text, "\x00") {
		bad, ok := errors.AsType[*Error](err)
		if !ok {
			bad = &Error{Msg: "holds a NUL"}
		}
		if !hides {
			return made, bad.Msg, nil
		}
		return made, "", &Error{Key: e.Key, Path: bad.Path, Msg: bad.Msg}
	}
	made.Path = path.Clean(text)
	made.Derived.Untrusted = textUses(t.Path, untrusted)
	if t.Beneath != "" {
		if why, err := x.confine(&made, t); why != "" || err != nil {
			return made, why, err
		}
		if !hides {
			made.Derived.Untrusted = textUses(t.Beneath, untrusted)
		}
	}
	for _, text := range t.Unless {
		dir, why, err := x.path(e.Key, text)
		if err != nil {
			return made, "", err
		}
		if why != "" {
			continue // there is no such directory in this launch
		}
		dir = path.Clean(dir)
		made.Derived.Unless = append(made.Derived.Unless, dir)
		if pathcheck.Within(dir, made.Path) {
			return made, "lies in " + QuotePath(dir), nil
		}
	}
	return made, "", nil
}

// confine holds the entry's path to what the template declares of it.
func (x *expander) confine(made *Entry, t *Template) (why string, err error) {
	dir, why, err := x.path(made.Key, t.Beneath)
	if err != nil || why != "" {
		return why, err
	}
	dir = path.Clean(dir)
	switch {
	case dir == "/":
		return "everything lies beneath /", nil
	case !pathcheck.Beneath(dir, made.Path):
		return "not beneath " + QuotePath(dir), nil
	}
	names := strings.Split(pathcheck.Rel(dir, made.Path), "/")
	if t.Depth > 0 && len(names) != t.Depth {
		return fmt.Sprintf("%d components below %s, not %d", len(names), QuotePath(dir), t.Depth), nil
	}
	if t.Keep > 0 && len(names) > t.Keep {
		made.Path = pathcheck.Join(dir, strings.Join(names[:t.Keep], "/"))
	}
	made.Derived.Beneath = dir
	return "", nil
}

// path resolves a text to an absolute path that is not cleaned.
func (x *expander) path(key, text string) (out, why string, err error) {
	parts, complaint := splitTemplate(text)
	if complaint != "" {
		return "", "", &Error{Key: key, Msg: complaint}
	}
	var b strings.Builder
	for _, p := range parts {
		if p.source == nil {
			b.WriteString(p.text)
			continue
		}
		value, why, err := x.value(key, *p.source)
		if err != nil || why != "" {
			return "", why, err
		}
		if p.source.asName {
			name, ok := SafeName(value)
			if !ok {
				return "", p.source.String() + " gives no name", nil
			}
			value = name
		}
		b.WriteString(value)
	}
	if out = b.String(); !strings.HasPrefix(out, "/") {
		return "", "not an absolute path", nil
	}
	return out, "", nil
}

func (x *expander) value(key string, s source) (value, why string, err error) {
	switch s.kind {
	case sourceArg:
		value = x.argument(s.arg)
	case sourceEnv:
		value, err = x.variable(key, s.arg)
	case sourceHome:
		value, err = x.variable(key, "HOME")
	case sourceCwd:
		value = x.values.Cwd
	case sourceRoot:
		value = x.root
	}
	if err == nil && value == "" {
		why = s.String() + " is not given"
	}
	return value, why, err
}

// argument returns what follows the first element that is the flag.
func (x *expander) argument(flag string) string {
	if len(x.values.Argv) == 0 {
		return ""
	}
	args := x.values.Argv[1:]
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// variable returns the value of a variable. Which of two different values the
// program would take is open.
func (x *expander) variable(key, name string) (string, error) {
	value, _, _, err := Pick(x.values.Env, name)
	if err != nil {
		return "", &Error{Key: key, Msg: "a variable that it needs occurs twice with different values"}
	}
	return value, nil
}
