package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSafeName is how long [SafeName] makes a name.
const maxSafeName = 120

// SafeName makes one file name of a value that is not trusted, as the filter
// |name does: every UTF-16 unit outside of A–Z, a–z, 0–9, ".", "_" and "-"
// becomes "_", and the first 120 stay. So a character beyond the Basic
// Multilingual Plane becomes two; a byte that is not UTF-8 becomes one. Different
// values may become one name.
//
// It is false for a value that gives no name: nothing but white space, "." and
// "..".
func SafeName(value string) (string, bool) {
	if strings.TrimFunc(value, func(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' }) == "" {
		return "", false
	}
	var name strings.Builder
	for _, r := range value {
		if name.Len() >= maxSafeName {
			break
		}
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
			name.WriteByte(byte(r))
		case r > 0xFFFF && r <= utf8.MaxRune:
			name.WriteString("__")
		default:
			name.WriteByte('_')
		}
	}
	s := name.String()
	s = s[:min(len(s), maxSafeName)]
	return s, s != "." && s != ".."
}
