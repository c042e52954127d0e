package rules

import (
	"strconv"
	"unicode/utf8"
)

// Limits of the text of a policy.
const (
	// MaxText is the size of a policy in bytes, wherever it comes from.
	MaxText = 1 << 20
	// maxDepth is how deep objects and arrays may nest.
	maxDepth = 8
	// maxEntries is how many members an object or elements a list may have.
	maxEntries = 4096
)

// A jsonReader reads JSON (RFC 8259) strictly.
//
// Package encoding/json is not used: it turns invalid UTF-8 and lone
// surrogates into U+FFFD, and so a path into another path, without a word; it
// takes the last of two equal keys; and it matches keys whatever their case.
type jsonReader struct {
	data []byte
	pos  int
}

func (r *jsonReader) syntax() error { return &Error{Msg: "not valid JSON" + atByte(r.pos)} }

// next skips white space and returns the byte after it, or 0 at the end. A
// NUL byte in the text also reads as 0 and fits no rule of the grammar.
func (r *jsonReader) next() byte {
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\r', '\n':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

// accept skips white space and then c, if c is what follows.
func (r *jsonReader) accept(c byte) bool {
	if r.next() != c || r.pos == len(r.data) {
		return false
	}
	r.pos++
	return true
}

// object reads an object and calls member with each name, the reader being
// in front of the value, which member must read. key is where the object
// stands, want the complaint when it is none.
func (r *jsonReader) object(key, want string, member func(name string) error) error {
	if !r.accept('{') {
		return &Error{Key: key, Msg: want}
	}
	if r.accept('}') {
		return nil
	}
	seen := make(map[string]bool)
	for {
		if r.next() != '"' {
			return r.syntax()
		}
		name, err := r.str(key)
		if err != nil {
			return err
		}
		if seen[name] {
			return &Error{Key: joinKey(key, name), Msg: "duplicate key"}
		}
		if len(seen) == maxEntries {
			return &Error{Key: key, Msg: tooMany}
		}
		seen[name] = true
		if !r.accept(':') {
			return r.syntax()
		}
		r.next()
		if err := member(name); err != nil {
			return err
		}
		if r.accept('}') {
			return nil
		}
		if !r.accept(',') {
			return r.syntax()
		}
	}
}

const tooMany = "more than 4096 entries"

// array reads an array and calls element with the key of each element, the reader
// being in front of the value, which element must read.
func (r *jsonReader) array(key, want string, element func(at string) error) error {
	if !r.accept('[') {
		return &Error{Key: key, Msg: want}
	}
	if r.accept(']') {
		return nil
	}
	for i := 0; ; i++ {
		if i == maxEntries {
			return &Error{Key: key, Msg: tooMany}
		}
		r.next()
		if err := element(key + "[" + strconv.Itoa(i) + "]"); err != nil {
			return err
		}
		if r.accept(']') {
			return nil
		}
		if !r.accept(',') {
			return r.syntax()
		}
	}
}

// str reads a string, the reader being in front of its quote. Key is named
// when the string cannot be taken as it stands.
func (r *jsonReader) str(key string) (string, error) {
	start := r.pos + 1
	plain, err := r.skipString()
	if err != nil {
		return "", err
	}
	body := r.data[start : r.pos-1]
	if i := invalidUTF8(body); i >= 0 {
		return "", &Error{Key: key, Msg: "invalid UTF-8" + atByte(start+i)}
	}
	if plain {
		return string(body), nil
	}
	out := make([]byte, 0, len(body))
	for i := 0; i < len(body); {
		if body[i] != '\\' {
			out = append(out, body[i])
			i++
			continue
		}
		c := body[i+1]
		if c != 'u' {
			out = append(out, unescape(c))
			i += 2
			continue
		}
		at := start + i
		v := hex4(body[i+2:])
		i += 6
		if 0xDC00 <= v && v <= 0xDFFF {
			return "", &Error{Key: key, Msg: "lone surrogate" + atByte(at)}
		}
		if 0xD800 <= v && v <= 0xDBFF {
			if i+6 > len(body) || body[i] != '\\' || body[i+1] != 'u' {
				return "", &Error{Key: key, Msg: "lone surrogate" + atByte(at)}
			}
			low := hex4(body[i+2:])
			if low < 0xDC00 || low > 0xDFFF {
				return "", &Error{Key: key, Msg: "lone surrogate" + atByte(at)}
			}
			i += 6
			v = 0x10000 + (v-0xD800)<<10 + (low - 0xDC00)
		}
		if v == 0 {
			return "", &Error{Key: key, Msg: "NUL in a string" + atByte(at)}
		}
		out = utf8.AppendRune(out, v)
	}
	return string(out), nil
}

// skipString moves behind a string of right syntax. Plain means that it
// holds no escape.
func (r *jsonReader) skipString() (plain bool, err error) {
	plain = true
	r.pos++
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; {
		case c == '"':
			r.pos++
			return plain, nil
		case c < ' ':
			return false, r.syntax()
		case c != '\\':
			r.pos++
		default:
			plain = false
			if r.pos+1 >= len(r.data) {
				return false, r.syntax()
			}
			c = r.data[r.pos+1]
			if c == 'u' && hex4(r.data[r.pos+2:]) >= 0 {
				r.pos += 6
			} else if c != 'u' && unescape(c) != 0 {
				r.pos += 2
			} else {
				return false, r.syntax()
			}
		}
	}
	return false, r.syntax()
}

// unescape returns what \c stands for, or 0 when it is no escape.
func unescape(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return 0
}

// hex4 returns the value of the four hex digits that b begins with, or -1.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var v rune
	for _, c := range b[:4] {
		v <<= 4
		switch {
		case '0' <= c && c <= '9':
			v |= rune(c - '0')
		case 'a' <= c && c <= 'f':
			v |= rune(c-'a') + 10
		case 'A' <= c && c <= 'F':
			v |= rune(c-'A') + 10
		default:
			return -1
		}
	}
	return v
}

// invalidUTF8 returns the index of the first byte that is not UTF-8, or -1.
func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		c, n := utf8.DecodeRune(b[i:])
		if c == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// joinKey names a member of the object at key.
func joinKey(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
