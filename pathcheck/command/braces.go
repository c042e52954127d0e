package command

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxBraces is how many opening braces of one word are looked at. For each
	// the rest of the word is read.
	maxBraces = 64
	// maxAlternatives is how many words one word's braces may make.
	maxAlternatives = 64
)

// A word whose braces are expanded is a text, in which a NUL and a rune stand for
// each part that is no literal: the index of the part and firstPart, so that the
// rune is nothing that has a meaning. No text that was parsed holds a NUL.
const firstPart = utf8.RuneSelf

// alternatives returns what the braces of a word make of it: the parts of one or
// more words. It reports false if there are too many to tell.
func (r *run) alternatives(w *syntax.Word) ([][]syntax.WordPart, bool) {
	var b strings.Builder
	open := 0
	for i, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			r.read(len(lit.Value))
			open += strings.Count(lit.Value, "{")
			b.WriteString(lit.Value)
		} else {
			b.WriteByte(0)
			b.WriteRune(firstPart + rune(i))
		}
	}
	if open == 0 {
		return [][]syntax.WordPart{w.Parts}, true
	}
	if open > maxBraces {
		return nil, false
	}
	texts, ok := r.braces(b.String())
	var out [][]syntax.WordPart
	for _, text := range texts {
		// What stands side by side is one literal: what it means may depend on
		// all of it, as with a tilde.
		var parts []syntax.WordPart
		for text != "" {
			r.step(1)
			lit, rest, more := strings.Cut(text, "\x00")
			if text = rest; lit != "" {
				if n := len(parts); n > 0 {
					if p, _ := parts[n-1].(*syntax.ParamExp); p != nil && p.Short && wordByte(lit[0]) {
						return nil, false // $a{b,c} is $ab and $ac
					}
				}
				parts = append(parts, &syntax.Lit{Value: lit})
			}
			if more {
				i, n := utf8.DecodeRuneInString(rest)
				text = rest[n:]
				parts = append(parts, w.Parts[i-firstPart])
			}
		}
		out = append(out, parts)
	}
	return out, ok
}

// braces expands the braces of a text as bash does. One that does not close, or
// holds neither a comma nor a range, stands for itself.
func (r *run) braces(text string) ([]string, bool) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
			continue
		case '{':
		default:
			continue
		}
		if i == 0 && strings.HasPrefix(text, "{}") {
			continue // as find wants it
		}
		r.read(len(text) - i)
		choices, end := inBraces(text[i+1:])
		if end < 0 {
			return nil, false
		}
		if choices == nil {
			i += end
			continue
		}
		tails, ok := r.braces(text[i+1+end:])
		var out []string
		for _, c := range choices {
			mids, more := r.braces(c)
			for _, mid := range mids {
				for _, tail := range tails {
					r.read(len(text))
					out = append(out, text[:i]+mid+tail)
				}
			}
			if ok = ok && more && len(out) <= maxAlternatives; !ok {
				return nil, false
			}
		}
		return out, true
	}
	return []string{text}, true
}

// inBraces returns the alternatives of a brace, nil if it has none, and the offset
// behind it: 0 if it does not close, negative if that is not known. text is what
// follows the opening brace.
//
// A brace closes only behind a comma or the dots of a range: {a}b,c} is a}b and c.
// Behind dots bash takes a comma for one that is quoted, too, and drops the braces.
func inBraces(text string) (choices []string, end int) {
	depth, from := 0, 0
	comma, dots := false, false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '.':
			rest, ok := strings.CutPrefix(text[i:], "..")
			dots = dots || depth == 0 && ok && !strings.HasPrefix(rest, "}")
		case ',':
			if comma = true; depth == 0 {
				choices = append(choices, text[from:i])
				from = i + 1
			}
		case '}':
			switch {
			case depth > 0:
				depth--
			case len(choices) > 0 || dots && comma:
				return append(choices, text[from:i]), i + 1
			case dots && sequence(text[:i]):
				// Numbers or letters: one component, whichever it is.
				return []string{"0"}, i + 1
			case dots && strings.ContainsAny(text[:i], "\x00\\"):
				return nil, -1
			case dots:
				return nil, i + 1
			}
		}
	}
	return nil, 0
}

// sequence reports whether a brace around v is a range of numbers or letters.
func sequence(v string) bool {
	ends := strings.Split(v, "..")
	letters := 0
	for i, e := range ends {
		if _, err := strconv.Atoi(e); err == nil {
			continue
		}
		if i > 1 || len(e) != 1 || e[0]|0x20 < 'a' || e[0]|0x20 > 'z' {
			return false
		}
		letters++
	}
	return letters != 1 && (len(ends) == 2 || len(ends) == 3)
}
