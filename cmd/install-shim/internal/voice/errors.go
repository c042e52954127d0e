package voice

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Exit codes of every command but run, which has those of a launch.
const (
	ExitDone   = 0
	ExitFailed = 1 // refused, or a step went wrong
	ExitUsage  = 2
)

// ErrSaid ends a command with ExitFailed after everything was printed.
var ErrSaid = errors.New("already said")

// A UsageError is a mistake in the command line.
type UsageError struct {
	Command string // whose help text explains it, or ""
	Msg     string
}

func (u *UsageError) Error() string {
	if u.Command == "" {
		return u.Msg
	}
	return u.Command + ": " + u.Msg
}

// A HelpWanted ends a command that was asked for its help text.
type HelpWanted struct{ Command string }

func (*HelpWanted) Error() string { return "help wanted" }

type hinted struct {
	error
	hint string
}

func (h *hinted) Unwrap() error { return h.error }

// Hinted adds to an error what the reader can do about it.
func Hinted(err error, hint string) error { return &hinted{err, hint} }

type exitError struct {
	error
	code int
}

func (e *exitError) Unwrap() error { return e.error }

// Exit gives an error an exit code, unless it has one.
func Exit(code int, err error) error {
	if _, has := errors.AsType[*exitError](err); has || err == nil {
		return err
	}
	return &exitError{err, code}
}

// Refused is an error about one path: the operation was not tried.
func Refused(path, format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{Show(path)}, args...)...)
}

// Bare takes operation and path out of an error that the message names itself.
func Bare(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Finish says what went wrong, and returns the exit code for it.
func (v *Caller) Finish(err error) int {
	if err == nil {
		return ExitDone
	}
	code := ExitFailed
	usage, wrong := errors.AsType[*UsageError](err)
	if wrong {
		code = ExitUsage
	}
	if own, ok := errors.AsType[*exitError](err); ok {
		code = own.code
	}
	if errors.Is(err, ErrSaid) {
		return code
	}
	v.Say(err.Error())
	if h, ok := errors.AsType[*hinted](err); ok {
		v.Hint(h.hint)
	} else if wrong {
		v.Hint("see: " + strings.TrimSpace("install-shim help "+usage.Command))
	}
	return code
}
