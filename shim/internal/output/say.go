package output

import (
	"strconv"
	"strings"
)

// The voice of the shim: every byte it says goes through this file. One line
// is one write, so that the lines of many launches do not mix; untrusted text
// is quoted; nothing ever goes to standard output.

const speaker = "sandbox-exec-shim: "

// Say writes one line: the parts, joined by ": ".
func Say(parts ...string) {
	line := []byte(speaker + OneLine(strings.Join(parts, ": ")) + "\n")
	_, _ = write(2, line) // stderr may be closed; there is nobody else to tell
}

// OneLine keeps a message on its line: errors may hold text of others.
func OneLine(s string) string {
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unprintable(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func unprintable(r rune) bool { return r < ' ' || r == 0x7f || !strconv.IsPrint(r) && r != ' ' }

// Name prints a target's name as it is when it is made of ordinary characters,
// and quoted when it is not.
func Name(s string) string {
	for _, r := range s {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-/@[", r) {
			return strconv.Quote(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}
