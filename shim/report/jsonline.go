package report

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// A jsonLine is a line of JSON that is being written: members in the order of
// the calls, no spaces, strings as encoding/json writes them without its HTML
// escapes. That package builds a table of each type in each launch, which was
// measured to take a twentieth of it.
type jsonLine []byte

// open begins an object or a list, as a value or as an element.
func (l *jsonLine) open(bracket byte) {
	l.separate()
	*l = append(*l, bracket)
}

func (l *jsonLine) close(bracket byte) { *l = append(*l, bracket) }

// key begins a member: its value comes next.
func (l *jsonLine) key(name string) {
	l.value(name)
	*l = append(*l, ':')
}

// member writes a key and a value.
func (l *jsonLine) member(name string, v any) {
	l.key(name)
	l.value(v)
}

// nonEmpty writes a member unless its value is empty.
func (l *jsonLine) nonEmpty(name, v string) {
	if v != "" {
		l.member(name, v)
	}
}

// nonEmptyList writes a member unless its list is empty.
func (l *jsonLine) nonEmptyList(name string, v []string) {
	if len(v) > 0 {
		l.member(name, v)
	}
}

// value writes a value. One of another type than these is written as text.
func (l *jsonLine) value(v any) {
	switch v := v.(type) {
	case string:
		l.separate()
		l.quote(v)
	case int:
		l.separate()
		*l = strconv.AppendInt(*l, int64(v), 10)
	case int64:
		l.separate()
		*l = strconv.AppendInt(*l, v, 10)
	case bool:
		l.separate()
		*l = strconv.AppendBool(*l, v)
	case []string:
		l.open('[')
		for _, s := range v {
			l.value(s)
		}
		l.close(']')
	default:
		l.value(fmt.Sprint(v))
	}
}

// separate puts a comma between two values. A string ends in a quote, so a
// bracket or a colon is never part of one.
func (l *jsonLine) separate() {
	if n := len(*l); n > 0 {
		switch (*l)[n-1] {
		case '{', '[', ':':
		default:
			*l = append(*l, ',')
		}
	}
}

// quote writes a string. What is no UTF-8, as a file name may be, becomes
// U+FFFD.
func (l *jsonLine) quote(s string) {
	const hex = "0123456789abcdef"
	out := append(*l, '"')
	for i := 0; i < len(s); {
		if b := s[i]; b >= ' ' && b < utf8.RuneSelf && b != '"' && b != '\\' {
			out = append(out, b)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(out, `\ufffd`...)
		case r == '"', r == '\\':
			out = append(out, '\\', byte(r))
		case r == '\b':
			out = append(out, `\b`...)
		case r == '\f':
			out = append(out, `\f`...)
		case r == '\n':
			out = append(out, `\n`...)
		case r == '\r':
			out = append(out, `\r`...)
		case r == '\t':
			out = append(out, `\t`...)
		case r < ' ':
			out = append(out, `\u00`...)
			out = append(out, hex[r>>4], hex[r&15])
		case r == '\u2028', r == '\u2029':
			// JavaScript takes these for ends of lines.
			out = append(out, `\u202`...)
			out = append(out, hex[r&15])
		default:
			out = append(out, s[i:i+size]...)
		}
		i += size
	}
	*l = append(out, '"')
}
