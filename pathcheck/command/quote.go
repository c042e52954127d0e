package command

import (
	"strings"
	"unicode/utf8"
)

// unescape removes the backslashes of unquoted text.
func unescape(v string) string {
	if !strings.Contains(v, `\`) {
		return v
	}
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		if v[i] == '\\' && i+1 < len(v) {
			i++
			if v[i] == '\n' {
				continue
			}
		}
		b.WriteByte(v[i])
	}
	return b.String()
}

// unescapeQuoted removes a backslash before one of the bytes in set or a
// newline, as double quotes and here-documents do.
func unescapeQuoted(v, set string) string {
	if !strings.Contains(v, `\`) {
		return v
	}
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		if v[i] == '\\' && i+1 < len(v) {
			if v[i+1] == '\n' {
				i++
				continue
			}
			if strings.IndexByte(set, v[i+1]) >= 0 {
				i++
			}
		}
		b.WriteByte(v[i])
	}
	return b.String()
}

// ansiC decodes the text of $'…' (QUOTING in bash(1)). Like bash, it ends the
// string at an escaped NUL.
func ansiC(v string) string {
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' || i+1 == len(v) {
			b.WriteByte(v[i])
			continue
		}
		i++
		switch e := v[i]; e {
		case 'a':
			b.WriteByte('\a')
		case 'b':
			b.WriteByte('\b')
		case 'e', 'E':
			b.WriteByte(0x1b)
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'v':
			b.WriteByte('\v')
		case '\\', '\'', '"', '?':
			b.WriteByte(e)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n, used := numeral(v[i:], 8, 3)
			i += used - 1
			if n &= 0xff; n == 0 {
				return b.String()
			}
			b.WriteByte(byte(n))
		case 'x', 'u', 'U':
			most := 2
			switch e {
			case 'u':
				most = 4
			case 'U':
				most = 8
			}
			n, used := numeral(v[i+1:], 16, most)
			if used == 0 {
				b.WriteByte('\\')
				b.WriteByte(e)
				continue
			}
			i += used
			switch {
			case n == 0:
				return b.String()
			case e == 'x':
				b.WriteByte(byte(n))
			default:
				b.Write(utf8.AppendRune(nil, rune(n)))
			}
		case 'c':
			if i+1 < len(v) {
				i++
				if v[i]&0x1f == 0 {
					return b.String()
				}
				b.WriteByte(v[i] & 0x1f)
			}
		default:
			b.WriteByte('\\')
			b.WriteByte(e)
		}
	}
	return b.String()
}

// numeral reads up to most digits and says how many there were.
func numeral(v string, base uint32, most int) (n uint32, used int) {
	for used < len(v) && used < most {
		digit := v[used]
		if digit >= 'A' && digit <= 'F' {
			digit += 'a' - 'A'
		}
		d := strings.IndexByte("0123456789abcdef", digit)
		if d < 0 || uint32(d) >= base {
			break
		}
		n = n*base + uint32(d)
		used++
	}
	return n, used
}
