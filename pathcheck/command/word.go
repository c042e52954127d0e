package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A word is what one word of the text expands to; a pattern counts as it is
// written. why says why the text is not all known.
type word struct {
	text, why string
	pos       int
}

func (c *checker) expand(w *syntax.Word, s *state) word {
	x, pos := &expansion{checker: c, s: s}, c.base
	if c.nested == 0 {
		pos = int(w.Pos().Offset())
	}
	x.parts(w.Parts, false)
	return word{x.b.String(), x.why, pos}
}

// An expansion builds a word.
type expansion struct {
	*checker
	s     *state
	b     strings.Builder
	why   string
	brace bool // one was opened
}

func (x *expansion) parts(parts []syntax.WordPart, quoted bool) {
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			x.literal(p.Value, i == 0, quoted)
		case *syntax.SglQuoted:
			x.add(p.Value, !p.Dollar || !strings.Contains(p.Value, `\`), "escapes")
		case *syntax.DblQuoted:
			x.parts(p.Parts, true)
		case *syntax.ParamExp:
			x.parameter(p, quoted)
		default:
			x.node(p, x.s)
			x.add("$(…)", false, "output of a command, or a pattern")
		}
	}
}

// add adds a value, or what stands for one that is not known.
func (x *expansion) add(v string, known bool, why string) {
	if x.step(len(v) / 64); x.b.Len()+len(v) > maxLength {
		v, known, why = "…", false, "a long value"
	}
	if x.b.WriteString(v); !known {
		x.why = why
	}
}

// literal adds text, in double quotes or not. first says that the word begins.
func (x *expansion) literal(v string, first, quoted bool) {
	x.step(len(v) / 64)
	if first && !quoted && strings.HasPrefix(v, "~") {
		if home, ok := x.lookup("HOME", x.s); ok && (v == "~" || v[1] == '/') {
			v = home + v[1:]
		} else {
			x.why = "home is not known"
		}
	}
	for i := 0; i < len(v); i++ {
		switch b := v[i]; {
		case b == '\\' && i+1 < len(v) && (!quoted || strings.IndexByte("$`\"\\\n", v[i+1]) >= 0):
			if i++; v[i] == '\n' {
				continue
			}
		case b == '{' && !quoted:
			x.brace = true
		case x.brace && !quoted && (b == ',' || strings.HasPrefix(v[i:], "..")):
			x.why = "braces"
		}
		x.b.WriteByte(v[i])
	}
}

// parameter adds $name and ${name}; whatever more is asked for is not known.
func (x *expansion) parameter(p *syntax.ParamExp, quoted bool) {
	const plain = nameBytes + "/.-+:=@%,~" // neither split nor matched
	name := "{…}"
	if p.Param != nil && !p.Excl && !p.Length && !p.Width && !p.IsSet && p.Index == nil && p.Modifiers == nil &&
		p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil {
		name = p.Param.Value
	} else {
		x.node(p, x.s)
	}
	v, ok := x.lookup(name, x.s)
	if ok = ok && (quoted || strings.Trim(v, plain) == ""); !ok {
		v = "$" + name
	}
	x.add(v, ok, "value is not known")
}

// lookup returns the value of a variable if it is known.
func (c *checker) lookup(name string, s *state) (string, bool) {
	for v := s.vars; v != nil; v = v.before {
		if c.step(1); v.name == name || v.name == "" {
			return v.text, v.known
		}
	}
	if name == "PWD" {
		return s.dir, s.dir != ""
	}
	c.step(8)
	return c.Lookup(name)
}
