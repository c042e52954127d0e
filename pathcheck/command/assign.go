package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assign follows one assignment and returns the variable that it makes.
func (r *run) assign(a *syntax.Assign, s *state) (*state, variable) {
	if a.Name == nil {
		return r.forgetAll(s), variable{}
	}
	name := a.Name.Value
	if a.Index != nil {
		s = r.arithmetic(a.Index, s)
	}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				s = r.arithmetic(e.Index, s)
			}
			if e.Value != nil {
				var fs []field
				fs, s = r.words([]*syntax.Word{e.Value}, s)
				for _, f := range fs {
					r.assigned(name, f)
				}
			}
		}
		return r.forget(s, name), variable{}
	}
	var f field
	f, s = r.value(a.Value, s, true)
	v := variable{text: f.text, known: !f.partly()}
	if a.Append {
		old, ok := r.lookup(name, s)
		r.read(len(old))
		if ok = ok && len(old)+len(f.text) <= maxText; ok {
			f.text = old + f.text
		}
		v.text, v.known = f.text, ok && v.known && !r.simple()
		if !ok && !strings.HasPrefix(f.text, ":") {
			f.text = "" // what it continues is not known
		}
	}
	r.assigned(name, f)
	if a.Index != nil {
		v = variable{}
	}
	if !v.known {
		v.text = ""
	}
	s = r.set(s, name, v)
	return s, s.vars[name]
}

// assigned judges the value of an assignment: a path, or a list of them.
func (r *run) assigned(name string, f field) {
	use := Assign
	if name == "PATH" {
		use = Search
	}
	for p, rest, more := "", f.text, true; more; {
		p, rest, more = strings.Cut(rest, ":")
		r.read(len(p))
		if strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "//") {
			r.locate(p, nil, use, f.pos, f.partly())
		}
	}
}

// declare follows declare, local, export, readonly and typeset.
func (r *run) declare(d *syntax.DeclClause, s *state) *state {
	variant := d.Variant.Value
	odd := variant == "nameref"
	for _, a := range d.Args {
		if a.Naked && a.Name == nil {
			f, next := r.value(a.Value, s, true)
			s = next
			switch {
			case f.partly():
				r.unclear(f.src, f.pos, f.why)
				s = r.forgetAll(s)
			case oddOption(f.text):
				odd = true
			default: // name=value in quotes
				s = r.declareFields(variant, []field{f}, s)
			}
			continue
		}
		if a.Naked {
			if odd {
				s = r.set(s, a.Name.Value, variable{odd: true})
			} else if variant == "local" || variant == "declare" || variant == "typeset" {
				if r.local(a.Name.Value) {
					s = r.forget(s, a.Name.Value)
				}
			}
			continue
		}
		var v variable
		s, v = r.assign(a, s)
		if odd {
			if v.known && syntax.ValidName(v.text) { // a reference
				s = r.set(s, v.text, variable{odd: true})
			}
			s = r.set(s, a.Name.Value, variable{odd: true})
		}
		if variant != "export" && variant != "readonly" && a.Name != nil {
			r.local(a.Name.Value)
		}
	}
	return s
}

// oddOption reports whether an option of declare changes what an assignment
// does: -i, -l, -u, -c, -n, -a, -A, and -+ of any other letter than these.
func oddOption(opt string) bool {
	return len(opt) > 1 && (opt[0] == '-' || opt[0] == '+') && strings.Trim(opt[1:], "xrgpfFtI") != ""
}

// declareFields follows the same builtins where the parser has not told their
// assignments from other words.
func (r *run) declareFields(variant string, args []field, s *state) *state {
	odd := false
	for _, f := range args {
		name, val, ok := strings.Cut(f.text, "=")
		name, plus := strings.CutSuffix(name, "+")
		switch {
		case strings.HasPrefix(f.text, "-") || strings.HasPrefix(f.text, "+"):
			odd = odd || oddOption(f.text)
		case !syntax.ValidName(name):
			r.judge(f, s, Argument)
			s = r.forgetAll(s)
		case ok:
			g := f
			g.text = val
			r.assigned(name, g)
			v := variable{text: val, known: !f.partly() && !plus, odd: odd}
			if !v.known {
				v.text = ""
			}
			s = r.set(s, name, v)
			if variant != "export" && variant != "readonly" {
				r.local(name)
			}
		default:
			s = r.set(s, name, variable{odd: odd})
		}
	}
	return s
}

// local notes a variable of the function that is being followed, and reports
// whether there is one.
func (r *run) local(name string) bool {
	for i := len(r.frames) - 1; i >= 0; i-- {
		if f := r.frames[i]; !f.loop {
			f.locals = append(f.locals, name)
			return true
		}
	}
	return false
}
