package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A field is what one word, or one alternative of its braces, expands to.
type field struct {
	text string
	// why says why the text is not all known; the pieces that are not stand in
	// it by their source, one path component each. Empty: all is known.
	why string
	src string
	pos int
}

func (f field) partly() bool { return f.why != "" }

// words expands words and follows what their expansions run.
func (r *run) words(ws []*syntax.Word, s *state) ([]field, *state) {
	var out []field
	for _, w := range ws {
		r.step(1)
		var fs []field
		fs, s = r.word(w, s)
		out = append(out, fs...)
	}
	return out, s
}

// word expands one word. A word that is an unquoted empty expansion is none.
func (r *run) word(w *syntax.Word, s *state) ([]field, *state) {
	x := &expansion{run: r, s: s}
	base := field{src: r.source(w), pos: r.pos(w)}
	alternatives, ok := r.alternatives(w)
	if !ok {
		x.parts(w.Parts, false)
		base.text, base.why = x.text(), "braces are not followed"
		return []field{base}, x.s
	}
	var out []field
	for _, parts := range alternatives {
		x.reset()
		x.tilde = !x.assignment(parts)
		x.parts(parts, false)
		if len(alternatives) > 1 {
			x.depends()
		}
		f := base
		f.text, f.why = x.text(), x.why
		if f.text != "" || x.quoted || f.why != "" {
			out = append(out, f)
		}
	}
	return out, x.s
}

// value expands a word that is not split: that of an assignment, a
// here-string, a case.
func (r *run) value(w *syntax.Word, s *state, assign bool) (field, *state) {
	if w == nil {
		return field{}, s
	}
	x := &expansion{run: r, s: s, whole: true, tilde: true, colons: assign}
	x.parts(w.Parts, false)
	return field{text: x.text(), why: x.why, src: r.source(w), pos: r.pos(w)}, x.s
}

// An expansion builds the text of one field.
type expansion struct {
	*run
	s      *state
	b      strings.Builder
	why    string
	quoted bool // something in it is quoted
	whole  bool // neither split nor globbed
	tilde  bool // a tilde may stand here
	colons bool // and behind each colon
}

func (x *expansion) reset() {
	x.b.Reset()
	x.why, x.quoted, x.tilde, x.colons = "", false, false, false
}

func (x *expansion) text() string { return x.b.String() }

// maxText is how long a text with values in it may become, in bytes: a variable
// that is doubled again and again would fill the memory.
const maxText = 1 << 16

// known adds a value, if it is not too long to follow.
func (x *expansion) known(part syntax.Node, v string) {
	x.read(len(v))
	if x.b.Len()+len(v) > maxText {
		x.unknown(part, "a long value")
		return
	}
	x.b.WriteString(v)
}

func (x *expansion) unknown(part syntax.Node, why string) {
	src := x.source(part)
	if src == "" || len(src) > 40 || strings.Contains(src, "/") {
		src = "$…"
	}
	x.b.WriteString(src)
	if x.why == "" {
		x.why = why
	}
}

// depends marks text that bash expands and a simpler shell does not.
func (x *expansion) depends() {
	if x.simple() && x.why == "" {
		x.why = "shells differ in it"
	}
}

// assignment handles a word of the form name=~/path, in which bash expands the
// tilde even where the word is an argument. It reports whether parts is one.
func (x *expansion) assignment(parts []syntax.WordPart) bool {
	if len(parts) == 0 {
		return false
	}
	lit, ok := parts[0].(*syntax.Lit)
	if !ok {
		return false
	}
	name, _, ok := strings.Cut(lit.Value, "=")
	if ok && syntax.ValidName(name) {
		x.colons = true
		return true
	}
	return false
}

func (x *expansion) parts(parts []syntax.WordPart, quoted bool) {
	for i, p := range parts {
		x.step(1)
		switch p := p.(type) {
		case *syntax.Lit:
			x.read(len(p.Value))
			if quoted {
				x.b.WriteString(unescapeQuoted(p.Value, "$`\"\\"))
			} else {
				x.literal(p.Value, i == 0, i == len(parts)-1)
			}
		case *syntax.SglQuoted:
			x.quoted = true
			x.read(len(p.Value))
			if p.Dollar {
				x.b.WriteString(ansiC(p.Value))
				x.depends()
			} else {
				x.b.WriteString(p.Value)
			}
		case *syntax.DblQuoted:
			x.quoted = true
			x.parts(p.Parts, true)
		case *syntax.ParamExp:
			x.param(p, quoted)
		case *syntax.CmdSubst:
			x.substitution(p, quoted)
		case *syntax.ArithmExp:
			x.s = x.arithmetic(p.X, x.s)
			x.b.WriteString("0")
		case *syntax.ProcSubst:
			x.inSubshell(p.Stmts, x.s)
			x.quoted = true
			x.b.WriteString("/dev/fd/63")
		default: // an extended glob
			x.unknown(p, "pattern")
		}
	}
}

// literal adds unquoted text. first and last say where in the word it stands.
func (x *expansion) literal(v string, first, last bool) {
	if first && x.tilde {
		v = x.expandTilde(v, last)
	}
	if !x.whole && strings.ContainsAny(v, "*?[") && globs(v) && x.why == "" {
		x.why = "pattern"
	}
	for i := 0; i < len(v); i++ {
		switch b := v[i]; {
		case b == '\\' && i+1 < len(v):
			i++
			x.quoted = true
			if v[i] != '\n' {
				x.b.WriteByte(v[i])
			}
		case x.colons && (b == ':' || b == '=') && i+1 < len(v) && v[i+1] == '~':
			x.b.WriteByte(b)
			tail := v[i+1:]
			next := strings.IndexByte(tail, ':')
			if next < 0 {
				next = len(tail)
			}
			x.literalTail(x.expandTilde(tail[:next], last || next < len(tail)))
			i += next
		default:
			x.b.WriteByte(b)
		}
	}
}

func (x *expansion) literalTail(v string) { x.b.WriteString(unescape(v)) }

// expandTilde adds the home of a leading "~", "~user", "~+" or "~-" and returns
// the rest. whole says that v ends where the word or the list element does.
func (x *expansion) expandTilde(v string, whole bool) string {
	if !strings.HasPrefix(v, "~") {
		return v
	}
	user, rest := v[1:], ""
	if i := strings.IndexAny(user, "/:"); i >= 0 {
		user, rest = user[:i], user[i:]
	} else if !whole {
		return v // a quoted or expanded piece follows: no tilde prefix
	}
	if strings.Contains(user, `\`) {
		return v
	}
	home, ok := "", false
	switch user {
	case "":
		home, ok = x.lookup("HOME", x.s)
	case "+":
		home, ok = x.lookup("PWD", x.s)
	case "-":
		home, ok = x.lookup("OLDPWD", x.s)
	default:
		home, ok = x.ask(x.HomeOf, "~", user)
	}
	x.quoted = true
	x.read(len(home))
	if ok && home != "" && x.b.Len()+len(home) <= maxText {
		x.b.WriteString(home)
		return rest
	}
	x.b.WriteString("~" + user)
	if x.why == "" {
		x.why = "home is not known"
	}
	return rest
}

// globs reports whether unquoted text holds a pattern.
func globs(v string) bool {
	end := 0 // of the bracket expression that was looked for last
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case '\\':
			i++
		case '*', '?':
			return true
		case '[':
			if end <= i {
				n := strings.IndexByte(v[i+1:], ']')
				if n < 0 {
					n = len(v)
				}
				end = i + 1 + n
			}
			if end > i+1 && end < len(v) {
				return true
			}
		}
	}
	return false
}

// lookup returns the value of a variable if it is known.
func (r *run) lookup(name string, s *state) (string, bool) {
	if v, ok := s.vars[name]; ok {
		return v.text, v.known
	}
	if name == "PWD" && s.dir() != "" {
		return s.dir(), true
	}
	if s.strange || name == "PWD" || name == "OLDPWD" {
		return "", false
	}
	if name == "HOME" && r.Home != "" {
		return r.Home, true
	}
	return r.ask(r.Lookup, "", name)
}

// param adds a parameter expansion and follows what its words run.
func (x *expansion) param(p *syntax.ParamExp, quoted bool) {
	x.s = x.followParam(p, x.s)
	plain := p.Param != nil && p.Flags == nil && !p.Excl && !p.Width && !p.IsSet &&
		p.Split == syntax.OptUnset && p.GlobSubst == syntax.OptUnset && p.RcExpand == syntax.OptUnset &&
		p.NestedParam == nil && p.Index == nil && len(p.Modifiers) == 0 &&
		p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
	if !plain {
		x.unknown(p, "expansion")
		return
	}
	name := p.Param.Value
	if p.Length || name == "?" || name == "#" || name == "$" || name == "!" {
		x.b.WriteString("0") // some number: one component, whichever it is
		return
	}
	v, ok := x.lookup(name, x.s)
	if digits(name) && x.s.argsKnown {
		v, ok = "", len(name) < 5
		if n := number(name); ok && n < len(x.s.args) {
			v = x.s.args[n]
		}
	}
	if !ok {
		x.unknown(p, "value is not known")
		return
	}
	if quoted || x.whole {
		x.known(p, v)
		return
	}
	if _, split := x.s.vars["IFS"]; split || strings.Trim(v, plainBytes) != "" {
		x.unknown(p, "value is split or matched")
		return
	}
	x.known(p, v)
}

// plainBytes are those that an unquoted value neither is split at nor makes a
// pattern of.
const plainBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:=@%,~"

func number(s string) int {
	n := 0
	for _, b := range []byte(s) {
		n = n*10 + int(b-'0')
	}
	return n
}

// followParam follows the words inside ${…} and returns the state after it.
func (r *run) followParam(p *syntax.ParamExp, s *state) *state {
	inner := func(w *syntax.Word) {
		if w != nil {
			_, s = r.value(w, s, false)
		}
	}
	if p.Index != nil {
		s = r.arithmetic(p.Index, s)
	}
	if p.NestedParam != nil {
		inner(&syntax.Word{Parts: []syntax.WordPart{p.NestedParam}})
	}
	if p.Slice != nil {
		s = r.arithmetic(p.Slice.Offset, s)
		s = r.arithmetic(p.Slice.Length, s)
	}
	if p.Repl != nil {
		inner(p.Repl.Orig)
		inner(p.Repl.With)
	}
	if p.Exp != nil {
		inner(p.Exp.Word)
		switch p.Exp.Op {
		case syntax.AssignUnset, syntax.AssignUnsetOrNull:
			if p.Param != nil {
				s = r.forget(s, p.Param.Value)
			}
		case syntax.OtherParamOps:
			if p.Exp.Word != nil && p.Exp.Word.Lit() == "P" {
				r.unclear(r.source(p), r.pos(p), "the value is expanded again")
			}
		}
	}
	return s
}

// substitution adds $(…). $(pwd) is known; anything else is not.
func (x *expansion) substitution(p *syntax.CmdSubst, quoted bool) {
	x.inSubshell(p.Stmts, x.s)
	if p.Backquotes && strings.Contains(x.source(p), `\`) {
		x.unclear(x.source(p), x.pos(p), "backslash in backquotes")
	}
	if dir := x.s.dir(); dir != "" && len(p.Stmts) == 1 && len(p.Stmts[0].Redirs) == 0 {
		call, ok := p.Stmts[0].Cmd.(*syntax.CallExpr)
		if ok && len(call.Assigns) == 0 && len(call.Args) == 1 && call.Args[0].Lit() == "pwd" &&
			len(x.s.funcs["pwd"].bodies) == 0 && (quoted || x.whole || strings.Trim(dir, plainBytes) == "") {
			x.known(p, dir)
			return
		}
	}
	x.unknown(p, "output of a command")
}
