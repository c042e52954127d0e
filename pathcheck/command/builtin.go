package command

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// declarations and builtins are those that are followed, beside the ones that
// change the directory or run something.
var (
	declarations = []string{"export", "readonly", "declare", "typeset", "local"}
	builtins     = []string{
		"exit", "return", "break", "continue", "true", ":", "false", "set", "shift", "shopt", "alias",
		"enable", "unset", "read", "mapfile", "readarray", "getopts", "printf", "wait",
	}
)

// builtin follows a builtin of the shell, and anything else as a program.
func (r *run) builtin(cmd []field, env map[string]variable, in []*syntax.Redirect, s *state) outcome {
	name, args := cmd[0].text, cmd[1:]
	switch name {
	case "cd", "chdir":
		return r.cd(cmd[0], args, s)
	case "pushd":
		return r.pushd(cmd[0], args, s)
	case "popd":
		return r.popd(cmd[0], args, s)
	case "command", "builtin":
		return r.prefixed(cmd, env, in, s)
	case "exec":
		return r.exec(args, env, in, s)
	case "eval":
		return r.eval(cmd[0], args, s)
	case "trap":
		return r.trap(args, s)
	}
	if name == "." || name == "source" {
		if len(args) > 0 {
			r.judge(args[0], s, Read)
			r.judgeAll(args[1:], s)
		}
		r.unclear(cmd[0].src, cmd[0].pos, "runs a file in this shell")
		return both(r.lost(s))
	}
	if slices.Contains(declarations, name) {
		return both(r.declareFields(name, args, s))
	}
	if !slices.Contains(builtins, name) {
		return r.external(cmd, env, in, s)
	}
	r.judgeAll(args, s)
	switch name {
	case "exit":
		if len(args) > 1 {
			return outcome{fail: s} // refused by bash, as too many
		}
		return outcome{}
	case "return", "break", "continue":
		return r.jump(name, args, s)
	case "true", ":":
		return outcome{ok: s}
	case "false":
		return outcome{fail: s}
	case "set", "shift":
		return both(r.setArgs(name, args, s))
	case "shopt":
		for _, a := range args {
			switch a.text {
			case "autocd", "cdspell", "cdable_vars", "expand_aliases":
				r.unclear(a.src, a.pos, "option changes what later words mean")
			}
		}
	case "alias":
		for _, a := range args {
			if strings.Contains(a.text, "=") || a.partly() {
				r.unclear(a.src, a.pos, "aliases are not followed")
			}
		}
	case "enable":
		r.unclear(cmd[0].src, cmd[0].pos, "changes what later words mean")
		return both(r.lost(s))
	case "unset":
		return both(r.forgetNamed(args, s, true))
	case "printf":
		if len(args) > 0 && !strings.HasPrefix(args[0].text, "-v") && !args[0].partly() {
			return both(s)
		}
		return both(r.forgetNamed(args, s, false))
	default: // read and its like
		return both(r.forgetNamed(args, s, false))
	}
	return both(s)
}

// forgetNamed forgets the variables that arguments name.
func (r *run) forgetNamed(args []field, s *state, funcs bool) *state {
	for _, a := range args {
		if a.partly() {
			return r.lost(s).at(s.dirs)
		}
		name, _, _ := strings.Cut(a.text, "[")
		name = strings.TrimPrefix(name, "-v")
		if syntax.ValidName(name) {
			s = r.forget(s, name)
		}
		if b, ok := s.funcs[a.text]; ok && funcs {
			s = r.bind(s, a.text, binding{bodies: b.bodies})
		}
	}
	return s
}

// setArgs follows set and shift.
func (r *run) setArgs(name string, args []field, s *state) *state {
	n := *s
	for i, a := range args {
		if a.text == "--" || a.text == "-" || a.partly() || !strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "+") {
			n.argsKnown = n.argsKnown && i > 0 && strings.HasSuffix(args[i-1].text, "o")
		}
		if a.partly() || a.text == "physical" || strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "P") {
			n.physical = true
		}
	}
	if name == "shift" {
		n.argsKnown = false
	}
	return &n
}

// prefixed follows `command` and `builtin`, which skip functions.
func (r *run) prefixed(cmd []field, env map[string]variable, in []*syntax.Redirect, s *state) outcome {
	args := cmd[1:]
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") && !args[0].partly() {
		opt := args[0].text
		args = args[1:]
		if opt == "--" {
			break
		}
		if strings.ContainsAny(opt, "vV") {
			r.judgeAll(args, s)
			return both(s)
		}
	}
	if len(args) == 0 {
		return both(s)
	}
	r.judge(args[0], s, Exec)
	if args[0].partly() {
		r.judgeAll(args[1:], s)
		return both(r.lost(s))
	}
	return r.builtin(args, env, in, s)
}

// exec replaces the shell, or only applies redirections.
func (r *run) exec(args []field, env map[string]variable, in []*syntax.Redirect, s *state) outcome {
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		opt := args[0].text
		args = args[1:]
		if opt == "--" {
			break
		}
		if strings.HasSuffix(opt, "a") && len(args) > 0 {
			args = args[1:]
		}
	}
	if len(args) == 0 {
		return both(s)
	}
	r.judge(args[0], s, Exec)
	if args[0].partly() {
		r.judgeAll(args[1:], s)
		return both(r.lost(s))
	}
	r.external(args, env, in, s)
	return outcome{fail: s}
}

func (r *run) eval(name field, args []field, s *state) outcome {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	f := field{src: name.src, pos: name.pos}
	var texts []string
	for _, a := range args {
		texts = append(texts, a.text)
		if a.partly() && f.why == "" {
			f.why, f.src, f.pos = a.why, a.src, a.pos
		}
	}
	f.text = strings.Join(texts, " ")
	return r.sameShell(f, s)
}

// trap follows a handler, which may run at any time later.
func (r *run) trap(args []field, s *state) outcome {
	for len(args) > 0 && (args[0].text == "--" || args[0].text == "-p" || args[0].text == "-l") {
		args = args[1:]
	}
	if len(args) < 2 || args[0].text == "-" {
		return both(s)
	}
	frames := r.frames
	r.frames = nil
	lost := r.lost(s)
	end := r.after(r.sameShell(args[0], lost))
	r.frames = frames
	if end != nil && !end.equal(lost) || args[0].partly() {
		r.unclear(args[0].src, args[0].pos, "a handler that changes the shell")
		return both(lost)
	}
	return both(s)
}

// cd follows a change of directory.
func (r *run) cd(name field, args []field, s *state) outcome {
	physical := s.physical
	for len(args) > 0 && len(args[0].text) > 1 && args[0].text[0] == '-' && !args[0].partly() {
		opt := args[0].text
		if opt != "--" && strings.Trim(opt[1:], "LPe@qs") != "" {
			break
		}
		args = args[1:]
		if opt == "--" {
			break
		}
		switch strings.Trim(opt, "-e@qs") {
		case "":
		case "L":
			physical = false
		default:
			physical = true
		}
	}
	if len(args) > 1 {
		r.judgeAll(args, s)
		r.unclear(name.src, name.pos, "cd with several directories")
		return outcome{r.moved(s, nil), s}
	}
	target := field{src: name.src, pos: name.pos}
	var ok bool
	switch {
	case len(args) == 0:
		target.text, ok = r.lookup("HOME", s)
	case args[0].text == "-" && !args[0].partly():
		target.text, ok = r.lookup("OLDPWD", s)
	default:
		target = args[0]
		ok = !target.partly()
	}
	if !ok {
		if target.partly() {
			r.locate(target.text, s.dirs, Dir, target.pos, true)
		}
		r.unclear(target.src, target.pos, "the directory is not known")
		return outcome{r.moved(s, nil), s}
	}
	dirs := r.targets(target, s, physical)
	if len(args) == 1 && strings.HasPrefix(args[0].text, "/") {
		r.locate(target.text, dirs, Dir, target.pos, false)
	} else {
		r.enter(target, dirs)
	}
	return outcome{r.moved(s, dirs), s}
}

// targets returns where a cd may lead, by the text as the shell keeps it.
func (r *run) targets(f field, s *state, physical bool) []string {
	if f.text == "" {
		return s.dirs
	}
	if path.IsAbs(f.text) {
		if physical {
			return []string{r.real(f.text)}
		}
		return []string{path.Clean(f.text)}
	}
	if v, ok := r.lookup("CDPATH", s); (v != "" || !ok && hasVar(s, "CDPATH")) && !strings.HasPrefix(f.text, ".") {
		r.unclear(f.src, f.pos, "CDPATH is set")
		return nil
	}
	if len(s.dirs) == 0 {
		r.unclear(f.src, f.pos, "relative to a directory that is not known")
	}
	var out []string
	for _, d := range s.dirs {
		p := pathcheck.Join(d, f.text)
		if physical {
			p = r.real(p)
		}
		out = append(out, path.Clean(p))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func hasVar(s *state, name string) bool {
	_, ok := s.vars[name]
	return ok
}

// enter judges directories that a cd other than to an absolute path leads to.
func (r *run) enter(f field, dirs []string) {
	for _, d := range dirs {
		p, out := r.outside(d)
		r.name(Named{Text: f.text, Path: p, Use: Dir, Pos: f.pos, Outside: out})
		if out {
			r.violate(Violation{Kind: Cd, Path: f.text, Pos: f.pos})
		}
	}
}

// moved is the state after a cd.
func (r *run) moved(s *state, dirs []string) *state {
	old := variable{text: s.dir(), known: s.dir() != ""}
	if _, ok := s.vars["PWD"]; ok {
		s = r.forget(s, "PWD")
	}
	return r.set(s, "OLDPWD", old).at(dirs)
}

func (r *run) pushd(name field, args []field, s *state) outcome {
	r.judgeOptions(args, s)
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	here := s.dir()
	switch {
	case len(args) == 1 && !args[0].partly() && !strings.HasPrefix(args[0].text, "+") && !strings.HasPrefix(args[0].text, "-"):
		out := r.cd(name, args, s)
		n := *out.ok
		n.stack = append([]string{here}, s.stack...)
		if here == "" || s.stackLost || len(n.stack) > 64 {
			n.stack, n.stackLost = nil, true
		}
		return outcome{&n, s}
	case len(args) == 0 && !s.stackLost && here != "":
		if len(s.stack) == 0 {
			return outcome{fail: s}
		}
		n := *r.moved(s, []string{s.stack[0]})
		n.stack = append([]string{here}, s.stack[1:]...)
		return outcome{&n, s}
	}
	r.unclear(name.src, name.pos, "the directory stack is not followed")
	n := *r.moved(s, nil)
	n.stack, n.stackLost = nil, true
	return outcome{&n, s}
}

func (r *run) popd(name field, args []field, s *state) outcome {
	r.judgeAll(args, s)
	if len(args) == 0 && !s.stackLost {
		if len(s.stack) == 0 {
			return outcome{fail: s}
		}
		n := *r.moved(s, []string{s.stack[0]})
		n.stack = s.stack[1:]
		return outcome{&n, s}
	}
	r.unclear(name.src, name.pos, "the directory stack is not followed")
	n := *r.moved(s, nil)
	n.stack, n.stackLost = nil, true
	return outcome{&n, s}
}

// judgeOptions looks at the arguments of pushd that are not its directory.
func (r *run) judgeOptions(args []field, s *state) {
	if len(args) > 1 {
		r.judgeAll(args, s)
	}
}
