package command

import (
	"maps"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// A state is what is known of the shell at one point of the text. It is never
// changed: each change makes another one, so that branches can share it.
type state struct {
	// dirs are the directories that the shell may be in, sorted; empty if that
	// is not known.
	dirs []string
	// vars are the variables that the text has set.
	vars map[string]variable
	// strange says that variables outside vars may have been changed by something
	// that is not known, and are no longer those of the environment.
	strange bool
	funcs   map[string]binding
	// stack is that of pushd, the top first; nil and stackLost if not known.
	stack     []string
	stackLost bool
	// args are the positional parameters from $0 on.
	args      []string
	argsKnown bool
	// physical is `set -P`.
	physical bool
}

// maxDirs is how many possible directories are told apart.
const maxDirs = 8

type variable struct {
	text  string
	known bool
	// odd is an attribute that changes what an assignment does.
	odd bool
}

// A binding is what a function's name may stand for.
type binding struct {
	bodies []*function
	// always is false if the name may also not be a function.
	always bool
}

func (b binding) equal(o binding) bool {
	return b.always == o.always && slices.Equal(b.bodies, o.bodies)
}

type function struct {
	run    *run
	body   *syntax.Stmt
	called bool
}

func (c *checker) start() *state {
	s := &state{}
	if c.Dir != "" {
		s.dirs = []string{c.Dir}
	}
	return s
}

// size is what it costs to copy a state or to compare it, in steps.
func (s *state) size() int {
	return 1 + (len(s.vars)+len(s.funcs)+len(s.args))/entriesCopied
}

// lost is a state of which only the functions are known, as possibilities.
func (c *checker) lost(s *state) *state {
	c.step(s.size())
	n := &state{strange: true, stackLost: true, vars: s.odd(), physical: s.physical}
	if len(s.funcs) > 0 {
		n.funcs = make(map[string]binding, len(s.funcs))
		for k, b := range s.funcs {
			n.funcs[k] = binding{bodies: b.bodies}
		}
	}
	return n
}

func (s *state) at(dirs []string) *state {
	n := *s
	n.dirs = nil
	if len(dirs) <= maxDirs {
		n.dirs = dirs
	}
	return &n
}

// dir is the one directory that the shell is in, or "".
func (s *state) dir() string {
	if len(s.dirs) == 1 {
		return s.dirs[0]
	}
	return ""
}

func (r *run) set(s *state, name string, v variable) *state {
	old := s.vars[name]
	if old.odd || v.odd || special(name) {
		v = variable{odd: old.odd || v.odd}
	}
	if _, ok := s.vars[name]; old == v && (ok || s.strange) {
		return s
	}
	r.step(s.size())
	n := *s
	n.vars = maps.Clone(s.vars)
	if n.vars == nil {
		n.vars = map[string]variable{}
	}
	n.vars[name] = v
	return &n
}

func (r *run) forget(s *state, name string) *state { return r.set(s, name, variable{}) }

// special names variables that an assignment does not simply set.
func special(name string) bool {
	return slices.Contains(specials, name) || len(name) > 4 && name[:4] == "BASH"
}

var specials = []string{
	"_", "PWD", "DIRSTACK", "FUNCNAME", "GROUPS", "RANDOM", "SRANDOM", "SECONDS",
	"LINENO", "UID", "EUID", "PPID", "SHELLOPTS", "HISTCMD", "EPOCHSECONDS", "EPOCHREALTIME",
}

// forgetAll says that any variable may have any value now.
func (c *checker) forgetAll(s *state) *state {
	c.step(s.size())
	n := *s
	n.vars, n.strange = s.odd(), true
	return &n
}

// odd returns the variables whose assignments do not simply set them.
func (s *state) odd() map[string]variable {
	var out map[string]variable
	for k, v := range s.vars {
		if v.odd {
			if out == nil {
				out = map[string]variable{}
			}
			out[k] = variable{odd: true}
		}
	}
	return out
}

func (s *state) equal(o *state) bool {
	if s == o || s == nil || o == nil {
		return s == o
	}
	return slices.Equal(s.dirs, o.dirs) && s.strange == o.strange && maps.Equal(s.vars, o.vars) &&
		s.stackLost == o.stackLost && slices.Equal(s.stack, o.stack) &&
		s.argsKnown == o.argsKnown && slices.Equal(s.args, o.args) && s.physical == o.physical &&
		maps.EqualFunc(s.funcs, o.funcs, binding.equal)
}

// join is what is known if either state may hold; nil is one that cannot.
func (r *run) join(a, b *state) *state {
	switch {
	case a == nil || a == b:
		return b
	case b == nil:
		return a
	}
	r.step(a.size() + b.size())
	n := &state{
		strange:   a.strange || b.strange,
		stackLost: a.stackLost || b.stackLost || !slices.Equal(a.stack, b.stack),
		argsKnown: a.argsKnown && b.argsKnown && slices.Equal(a.args, b.args),
		physical:  a.physical || b.physical,
	}
	if !n.stackLost {
		n.stack = a.stack
	}
	if n.argsKnown {
		n.args = a.args
	}
	if len(a.dirs) > 0 && len(b.dirs) > 0 {
		dirs := append(slices.Clone(a.dirs), b.dirs...)
		slices.Sort(dirs)
		n = n.at(slices.Compact(dirs))
	}
	n.vars = joinVars(a.vars, b.vars)
	if n.strange {
		for name, v := range n.vars {
			if v == (variable{}) {
				delete(n.vars, name)
			}
		}
	}
	n.funcs = r.joinFuncs(a.funcs, b.funcs)
	return n
}

func joinVars(a, b map[string]variable) map[string]variable {
	if len(a)+len(b) == 0 {
		return nil
	}
	out := make(map[string]variable, max(len(a), len(b)))
	for k, v := range a {
		w, ok := b[k]
		if !ok || v != w {
			v = variable{odd: v.odd || w.odd}
		}
		out[k] = v
	}
	for k, w := range b {
		if _, ok := a[k]; !ok {
			out[k] = variable{odd: w.odd}
		}
	}
	return out
}

func (c *checker) joinFuncs(a, b map[string]binding) map[string]binding {
	if maps.EqualFunc(a, b, binding.equal) {
		return a
	}
	out := make(map[string]binding, max(len(a), len(b)))
	for k, x := range a {
		y := b[k]
		m := binding{bodies: slices.Clone(x.bodies), always: x.always && y.always}
		for _, f := range y.bodies {
			c.step(1 + len(m.bodies)/partsCopied)
			if !slices.Contains(m.bodies, f) {
				m.bodies = append(m.bodies, f)
			}
		}
		out[k] = m
	}
	for k, y := range b {
		if _, ok := a[k]; !ok {
			out[k] = binding{bodies: y.bodies}
		}
	}
	return out
}

func (c *checker) bind(s *state, name string, b binding) *state {
	c.step(s.size())
	n := *s
	n.funcs = maps.Clone(s.funcs)
	if n.funcs == nil {
		n.funcs = map[string]binding{}
	}
	n.funcs[name] = b
	return &n
}
