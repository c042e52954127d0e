package command

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// judge looks at one word of a command.
func (r *run) judge(f field, s *state, use Use) {
	r.read(len(f.text))
	switch {
	case use == Exec && !strings.Contains(f.text, "/"):
		// looked up in PATH
	case use == Argument:
		r.locateWord(f.text, s.dirs, use, f.pos, f.partly())
	default:
		r.locate(f.text, s.dirs, use, f.pos, f.partly())
	}
	if f.partly() {
		r.unclear(f.src, f.pos, f.why)
	}
}

func (r *run) judgeAll(fs []field, s *state) {
	for _, f := range fs {
		r.judge(f, s, Argument)
	}
}

// call follows a simple command.
func (r *run) call(call *syntax.CallExpr, redirs []*syntax.Redirect, s *state) outcome {
	cmd, s := r.words(call.Args, s)
	if len(call.Args) == 0 || len(cmd) == 0 {
		for _, a := range call.Assigns {
			s, _ = r.assign(a, s)
		}
		return both(r.redirs(redirs, s))
	}
	// The words are expanded before the assignments in front of them hold.
	env := map[string]variable{}
	during := s
	for _, a := range call.Assigns {
		var v variable
		during, v = r.assign(a, during)
		if a.Name != nil {
			env[a.Name.Value] = v
		}
	}
	s = r.redirs(redirs, s)
	out := r.dispatch(cmd, env, redirs, s)
	if len(redirs) > 0 {
		out.fail = r.join(out.fail, s) // a redirection may fail
	}
	if _, fn := s.funcs[cmd[0].text]; fn || slices.Contains(specialBuiltins, cmd[0].text) {
		// Some shells keep these assignments.
		for name := range env {
			out = r.mapOutcome(out, func(s *state) *state { return r.forget(s, name) })
		}
	}
	return out
}

func (r *run) mapOutcome(o outcome, f func(*state) *state) outcome {
	same := o.ok == o.fail
	if o.ok != nil {
		o.ok = f(o.ok)
	}
	switch {
	case same:
		o.fail = o.ok
	case o.fail != nil:
		o.fail = f(o.fail)
	}
	return o
}

// specialBuiltins are those of POSIX, found before functions by some shells.
var specialBuiltins = []string{
	".", ":", "break", "continue", "eval", "exec",
	"exit", "export", "readonly", "return", "set",
	"shift", "times", "trap", "unset", "source",
}

// dispatch follows an expanded command: a function, a builtin or a program.
func (r *run) dispatch(cmd []field, env map[string]variable, in []*syntax.Redirect, s *state) outcome {
	name := cmd[0]
	r.judge(name, s, Exec)
	if name.partly() {
		r.judgeAll(cmd[1:], s)
		r.unclear(name.src, name.pos, "which command it is is not known")
		return both(r.lost(s))
	}
	b, ok := s.funcs[name.text]
	if !ok {
		return r.builtin(cmd, env, in, s)
	}
	out := r.callFunction(b, cmd, s)
	if !b.always || slices.Contains(specialBuiltins, name.text) {
		out = r.either(out, r.builtin(cmd, env, in, s))
	}
	return out
}

func (r *run) callFunction(b binding, cmd []field, s *state) outcome {
	r.judgeAll(cmd[1:], s)
	if r.calls >= maxCalls {
		r.unclear(cmd[0].src, cmd[0].pos, "calls are nested too deep")
		return both(r.lost(s))
	}
	r.calls++
	defer func() { r.calls-- }()
	r.step(1 + len(cmd)/entriesCopied)
	in := *s
	in.args, in.argsKnown = texts(cmd)
	out := outcome{}
	for _, f := range b.bodies {
		r.step(2)
		f.called = true
		fr := &frame{}
		r.frames = append(r.frames, fr)
		one := f.run.stmt(f.body, &in)
		r.frames = r.frames[:len(r.frames)-1]
		one = r.either(one, both(fr.leave))
		out = r.either(out, r.mapOutcome(one, func(s *state) *state {
			for _, name := range fr.locals {
				s = r.forget(s, name)
			}
			return s
		}))
	}
	return r.mapOutcome(out, func(end *state) *state {
		n := *end
		n.args, n.argsKnown = s.args, s.argsKnown
		return &n
	})
}

// texts returns the texts of fields if all are known.
func texts(fs []field) ([]string, bool) {
	out := make([]string, len(fs))
	for i, f := range fs {
		if f.partly() {
			return nil, false
		}
		out[i] = f.text
	}
	return out, true
}

// jump follows break, continue and return.
func (r *run) jump(name string, args []field, s *state) outcome {
	for i := len(r.frames) - 1; i >= 0; i-- {
		f := r.frames[i]
		switch {
		case name == "return" && f.loop:
			continue
		case name == "continue":
			f.again = r.join(f.again, s)
		default:
			f.leave = r.join(f.leave, s)
		}
		if !f.loop && name != "return" {
			// Shells differ in whether a loop outside the function is meant.
			f.leave = r.join(f.leave, s)
			return both(s)
		}
		if len(args) == 0 || name == "return" {
			return outcome{}
		}
		// A count: every loop around may be the one.
	}
	if len(args) > 0 && len(r.frames) > 0 && r.frames[len(r.frames)-1].loop {
		return outcome{}
	}
	return both(s)
}

// redirs follows redirections.
func (r *run) redirs(list []*syntax.Redirect, s *state) *state {
	for _, rd := range list {
		r.step(1)
		if rd.N != nil && strings.HasPrefix(rd.N.Value, "{") {
			s = r.forget(s, strings.Trim(rd.N.Value, "{}"))
		}
		switch rd.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			_, s = r.document(rd, s)
			continue
		case syntax.WordHdoc:
			_, s = r.value(rd.Word, s, false)
			continue
		}
		var fs []field
		fs, s = r.words([]*syntax.Word{rd.Word}, s)
		for _, f := range fs {
			r.redirect(rd.Op, f, s)
		}
	}
	return s
}

func (r *run) redirect(op syntax.RedirOperator, f field, s *state) {
	use := Write
	switch op {
	case syntax.RdrIn:
		use = Read
	case syntax.DplIn, syntax.DplOut:
		if t := strings.TrimSuffix(f.text, "-"); t == "" || t == "p" || digits(t) {
			return // a descriptor
		}
	}
	if networkDevice(f.text) {
		if r.Network == NetworkDeny {
			r.violate(Violation{Kind: Network, Path: f.text, Pos: f.pos})
		}
		return
	}
	r.judge(f, s, use)
}

// document expands a here-document.
func (r *run) document(rd *syntax.Redirect, s *state) (field, *state) {
	f := field{src: "<<", pos: r.pos(rd.Word)}
	if rd.Hdoc == nil {
		return f, s
	}
	for _, p := range rd.Word.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok || strings.Contains(lit.Value, `\`) {
			f.text = r.source(rd.Hdoc) // a quoted delimiter: nothing is expanded
			r.read(len(f.text))
			return f, s
		}
	}
	x := &expansion{run: r, s: s, whole: true}
	for _, p := range rd.Hdoc.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			r.read(len(lit.Value))
			x.b.WriteString(unescapeQuoted(lit.Value, "$`\\"))
		} else {
			x.parts([]syntax.WordPart{p}, true)
		}
	}
	f.text, f.why = x.text(), x.why
	return f, x.s
}

// external follows a program.
func (r *run) external(cmd []field, env map[string]variable, in []*syntax.Redirect, s *state) outcome {
	name := path.Base(cmd[0].text)
	r.networkCommand(name, cmd[0].pos)
	if shellName(name) != "" {
		r.shell(cmd, env, in, s)
		return both(s)
	}
	if !slices.Contains(starters, name) {
		r.judgeAll(cmd[1:], s)
		return both(s)
	}
	switch name {
	case "xargs", "parallel":
		r.unclear(cmd[0].src, cmd[0].pos, "takes arguments from its input")
	case "watch":
		r.unclear(cmd[0].src, cmd[0].pos, "runs its arguments as a command string")
	}
	inner := s
	for i := 1; i < len(cmd); i++ {
		f := cmd[i]
		base := path.Base(f.text)
		r.networkCommand(base, f.pos)
		switch {
		case slices.Contains(movers, f.text), strings.HasPrefix(f.text, "--chdir="), name == "su", name == "runuser":
			inner = inner.at(nil)
		case name == "env" && (strings.HasPrefix(f.text, "-S") || strings.HasPrefix(f.text, "--split-string")):
			r.unclear(f.src, f.pos, "runs a string that is split")
		}
		if f.text == "-c" && slices.Contains(textStarters, name) && i+1 < len(cmd) {
			r.nestedText(cmd[i+1], r.lost(inner), "sh")
			i++
			continue
		}
		if shellName(base) != "" {
			r.judge(f, s, Argument)
			r.shell(cmd[i:], env, in, inner)
			return both(s)
		}
		r.judge(f, s, Argument)
	}
	return both(s)
}

// networkCommand judges the name of a program; the words are for local only.
func (r *run) networkCommand(name string, pos int) {
	if r.Scope == ScopeLocal && isNetworkWord(name) {
		r.violate(Violation{Kind: Network, Path: name, Pos: pos})
	}
}

// starters are programs that start the command in their arguments.
var starters = []string{
	"busybox", "caffeinate", "chronic", "chrt", "cpulimit", "dbus-run-session",
	"doas", "env", "fakeroot", "find", "flock", "ionice", "linux32",
	"linux64", "ltrace", "nice", "nohup", "numactl", "parallel", "prlimit",
	"runuser", "script", "setarch", "setpriv", "setsid", "stdbuf",
	"strace", "su", "sudo", "taskset", "time", "timeout", "unbuffer",
	"unshare", "watch", "xargs", "xvfb-run",
}

// textStarters take a command string behind -c.
var textStarters = []string{"su", "runuser", "script", "flock"}

// movers are arguments of starters after which the directory is another one.
var movers = []string{
	"-C", "--chdir", "-D", "-i", "--login", "-execdir", "-okdir",
}

// shell follows a shell that is started with arguments.
func (r *run) shell(cmd []field, env map[string]variable, in []*syntax.Redirect, s *state) {
	argv := make([]string, len(cmd))
	for i, f := range cmd {
		argv[i] = f.text
	}
	st := parseShell(argv, "")
	shell := shellName(argv[0])
	head := cmd[1:]
	if st.text > 0 {
		head = cmd[1:st.text]
	}
	for _, f := range head {
		if f.partly() && st.text > 0 {
			r.unclear(f.src, f.pos, "options of a shell are not known")
		}
		r.judge(f, s, Argument)
	}
	inner := r.lost(s)
	inner.dirs, inner.strange, inner.physical = s.dirs, s.strange, st.physical
	inner.vars = map[string]variable{}
	if !s.strange {
		for name := range s.vars { // they may have been exported
			inner.vars[name] = variable{}
		}
	}
	for name, v := range env {
		inner = r.set(inner, name, v)
	}
	if st.text > 0 {
		r.judgeAll(cmd[st.text+1:], s)
		if rest := cmd[st.text+1:]; len(rest) > 0 {
			inner.args, inner.argsKnown = texts(rest)
		} else {
			inner.args, inner.argsKnown = []string{argv[0]}, true
		}
		r.nestedText(cmd[st.text], inner, shell)
		return
	}
	if !st.stdin {
		return
	}
	for i := len(in) - 1; i >= 0; i-- {
		rd := in[i]
		var f field
		switch rd.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			f, _ = r.document(rd, s)
		case syntax.WordHdoc:
			f, _ = r.value(rd.Word, s, false)
		default:
			continue
		}
		f.src = cmd[0].src
		r.nestedText(f, inner, shell)
		return
	}
	r.unclear(cmd[0].src, cmd[0].pos, "a shell takes its commands from its input")
}

// nestedText follows a command string inside the text, in a shell of its own.
func (r *run) nestedText(f field, s *state, shell string) {
	frames := r.frames
	r.frames = nil
	r.follow(f, s, shell)
	r.frames = frames
}

// sameShell follows a command string of eval.
func (r *run) sameShell(f field, s *state) outcome { return r.follow(f, s, r.dialect) }

// follow follows a command string and returns what it leaves behind.
func (r *run) follow(f field, s *state, shell string) outcome {
	if f.partly() {
		r.unclear(f.src, f.pos, "command string is not known: "+f.why)
		return both(r.lost(s))
	}
	r.read(len(f.text))
	if r.nested >= maxNested {
		r.unclear(f.src, f.pos, "command strings are nested too deep")
		r.tokens(f.text, f.pos)
		return both(r.lost(s))
	}
	r.nested++
	defer func() { r.nested-- }()
	n := r.parse(f.text, f.pos, shell)
	out := n.stmts(n.list, s)
	if n.err != nil {
		r.tokens(f.text, f.pos)
		return both(r.lost(s))
	}
	return out
}
