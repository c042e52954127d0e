package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Exit codes of a launch that did not become its program. 126 and 127 are
// those of a shell (bash(1), EXIT STATUS).
const (
	exitShim     = 125 // the shim could not do its job
	exitRefused  = 126 // refused, or the program could not be executed
	exitNotFound = 127 // the program was not found
)

// A failure ends the launch before the program was started.
type failure struct {
	code int
	// what is the step that ended it, a few plain words.
	what string
	err  error
	// hint is a second line, or "".
	hint string
}

func (f *failure) Error() string {
	if f.err == nil {
		return f.what
	}
	return f.what + ": " + f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// fail makes a failure of the shim itself.
func fail(what string, err error) *failure { return &failure{code: exitShim, what: what, err: err} }

// asFailure gives any error an exit code.
func asFailure(what string, err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	return fail(what, err)
}

// The voice of the shim: every byte it says goes through this file. One line
// is one write, so that the lines of many launches do not mix; untrusted text
// is quoted; nothing ever goes to standard output.

const speaker = "sandbox-exec-shim: "

func say(parts ...string) {
	line := []byte(speaker + oneLine(strings.Join(parts, ": ")) + "\n")
	_, _ = write(2, line) // stderr may be closed; there is nobody else to tell
}

// sayFailure prints a failure and its hint.
func sayFailure(target string, f *failure) {
	say(name(target), f.Error())
	if f.hint != "" {
		say("hint", f.hint)
	}
}

// oneLine keeps a message on its line: errors may hold text of others.
func oneLine(s string) string {
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

// name prints a target's name as it is when it is made of ordinary characters,
// and quoted when it is not.
func name(s string) string {
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

// shorn takes an operation and a path out of an error that the message names
// itself.
func shorn(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }
