package voice

import (
	"errors"
	"flag"
	"io"
	"strings"
)

// Flags are the options of one command.
type Flags struct{ *flag.FlagSet }

// NewFlags makes the options of a command. Errors come back from Read; the
// package flag prints nothing itself.
func NewFlags(command string) Flags {
	f := flag.NewFlagSet(command, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return Flags{f}
}

// Text adds an option with a value. What to holds is the default.
func (f Flags) Text(to *string, name string) { f.StringVar(to, name, *to, "") }

// Switch adds an option without a value.
func (f Flags) Switch(to *bool, name string) { f.BoolVar(to, name, false, "") }

// List adds an option that may be given more than once.
func (f Flags) List(to *[]string, name string) {
	f.Func(name, "", func(s string) error { *to = append(*to, s); return nil })
}

// Read reads the options and returns the other arguments.
func (f Flags) Read(args []string) ([]string, error) {
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil, &HelpWanted{f.Name()}
	case err != nil:
		return nil, f.Wrong(err.Error())
	}
	return f.Args(), nil
}

// ReadAll reads the options of a command that takes nothing else.
func (f Flags) ReadAll(args []string) error {
	rest, err := f.Read(args)
	if err == nil && len(rest) > 0 {
		err = f.Wrong(Show(rest[0]) + ": unexpected")
	}
	return err
}

// Given reports whether the command line has the option, whatever its value.
func (f Flags) Given(name string) (given bool) {
	f.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

// Wrong is a mistake in this command's line.
func (f Flags) Wrong(text string) error { return &UsageError{f.Name(), text} }

// FirstOptions refuses an option behind the first operand, where it would be
// taken for one.
func (f Flags) FirstOptions(operands []string, what string) error {
	for _, o := range operands {
		if strings.HasPrefix(o, "-") {
			return f.Wrong(Show(o) + ": options go before the first " + what)
		}
	}
	return nil
}

// IsHelp reports whether an argument asks for the help text.
func IsHelp(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" }
