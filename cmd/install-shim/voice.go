package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// How this command sounds:
//
//   - What was done goes to standard output, one line for each name.
//   - What went wrong, warnings and hints go to standard error, one line each,
//     with the path concerned first.
//   - A path is quoted when it holds anything that could be mistaken.
//   - No line says that something was done before it is done.

type voice struct{ out, err io.Writer }

func (v voice) print(text string) { _, _ = io.WriteString(v.out, text) }

// did says that something was done to a path.
func (v voice) did(what, path, more string) {
	line := what + " " + show(path)
	if more != "" {
		line += " " + more
	}
	v.print(line + "\n")
}

func (v voice) say(parts ...string) {
	_, _ = io.WriteString(v.err, "install-shim: "+strings.Join(parts, ": ")+"\n")
}

func (v voice) warn(path, what string) { v.say("warning", show(path), what) }

func (v voice) hint(text string) { v.say("hint", text) }

// fail prints an error and the hint in it.
func (v voice) fail(err error) {
	v.say(err.Error())
	var h *hinted
	var u *usageError
	switch {
	case errors.As(err, &h):
		v.hint(h.hint)
	case errors.As(err, &u):
		v.hint("see: " + strings.TrimSpace("install-shim help "+u.command))
	}
}

// A hinted error knows what the reader can do about it.
type hinted struct {
	err  error
	hint string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// A usageError is a mistake in the command line.
type usageError struct{ command, msg string }

func (u *usageError) Error() string {
	if u.command == "" {
		return u.msg
	}
	return u.command + ": " + u.msg
}

// errSaid ends a command with exitFailed after everything was printed.
var errSaid = errors.New("already said")

// refused is an error about one path: the operation was not tried.
func refused(path, format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{show(path)}, args...)...)
}

// show prints a path as it is when it is made of ordinary characters, and
// quoted when it is not.
func show(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-/@[,="
	if s == "" {
		return `""`
	}
	for _, r := range s {
		if !strings.ContainsRune(plain, r) {
			return strconv.Quote(s)
		}
	}
	return s
}

// bare takes operation and path out of an error that the message names itself.
func bare(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
