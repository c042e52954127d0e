// Package voice is how the commands of install-shim read their command line
// and speak:
//
//   - What was done goes to standard output, one line for each name.
//   - What went wrong, warnings and hints go to standard error, one line each,
//     with the path concerned first.
//   - A path is quoted when it holds anything that could be mistaken.
//   - No line says that something was done before it is done.
package voice

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A Caller is who runs a command: standard streams and environment.
type Caller struct {
	In       io.Reader
	Out, Err io.Writer
	Environ  []string
}

// Getenv returns the first value of a variable, as getenv(3) does.
func (v *Caller) Getenv(name string) string {
	for _, s := range v.Environ {
		if v, ok := strings.CutPrefix(s, name+"="); ok {
			return v
		}
	}
	return ""
}

// Print writes to standard output.
func (v *Caller) Print(format string, args ...any) { _, _ = fmt.Fprintf(v.Out, format, args...) }

// PrintJSON writes one JSON object to standard output.
func (v *Caller) PrintJSON(object any) error {
	text, err := json.MarshalIndent(object, "", "  ")
	if err == nil {
		v.Print("%s\n", text)
	}
	return err
}

// Table returns a writer of lines whose cells end in tabs. The caller flushes it.
func (v *Caller) Table() *tabwriter.Writer { return tabwriter.NewWriter(v.Out, 0, 0, 2, ' ', 0) }

// Say writes one line to standard error.
func (v *Caller) Say(parts ...string) {
	_, _ = io.WriteString(v.Err, "install-shim: "+strings.Join(parts, ": ")+"\n")
}

// Warn says what is wrong with a path that is used all the same.
func (v *Caller) Warn(path, what string) { v.Say("warning", Show(path), what) }

// Hint says what the reader can do.
func (v *Caller) Hint(text string) { v.Say("hint", text) }

// Show prints a path as it is when it is made of ordinary characters, and
// quoted when it is not.
func Show(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-/@[,="
	for _, r := range s {
		if !strings.ContainsRune(plain, r) {
			return strconv.Quote(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}

// Dash prints a cell of a table that may be empty.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Listed gives JSON a list also when it is empty.
func Listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
