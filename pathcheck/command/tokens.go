package command

import "strings"

// networkWords are the programs that a run without network need not start.
var networkWords = []string{"curl", "wget", "nc", "netcat", "telnet"}

// networkWord finds one of networkWords in the text as a whole word, in any case.
func networkWord(text string) (word string, pos int, ok bool) {
	for i := 0; i < len(text); {
		if !wordByte(text[i]) {
			i++
			continue
		}
		j := i
		for j < len(text) && wordByte(text[j]) {
			j++
		}
		if isNetworkWord(text[i:j]) {
			return text[i:j], i, true
		}
		i = j
	}
	return "", 0, false
}

func isNetworkWord(s string) bool {
	for _, w := range networkWords {
		if strings.EqualFold(s, w) {
			return true
		}
	}
	return false
}

func wordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// tokens is the plain scan for text that cannot be parsed or followed to its
// end: words between blanks, bare of quotes, count if they are absolute. base is
// the offset to report, or -1 if text is the whole command string.
func (c *checker) tokens(text string, base int) {
	rest := text
	for rest != "" {
		tok := rest
		if i := strings.IndexAny(rest, " \t\n\v\f\r"); i >= 0 {
			tok, rest = rest[:i], rest[i+1:]
		} else {
			rest = ""
		}
		pos := base
		if base < 0 {
			pos = max(0, len(text)-len(rest)-len(tok)-1)
		}
		tok = strings.TrimRight(strings.TrimLeft(tok, `"'`), `"';`)
		if tok == "~" || strings.HasPrefix(tok, "~/") {
			if c.Home == "" {
				continue
			}
			tok = c.Home + tok[1:]
		}
		if strings.HasPrefix(tok, "/") {
			c.locate(tok, nil, Argument, pos, false)
		}
	}
	fields := strings.Fields(text)
	for i, f := range fields {
		if f == "cd" && i+1 < len(fields) && (fields[i+1] == ".." || strings.HasPrefix(fields[i+1], "../")) {
			c.violate(Violation{Kind: Cd, Path: fields[i+1]})
		}
	}
}
