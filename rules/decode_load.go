package rules

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// A Source says where the text of a policy stood.
type Source struct {
	// File is the absolute path of the policy file as the variable named it,
	// or "" when the variable held the text.
	File string
}

// Blank reports whether the value of the policy variable means "no policy":
// it is empty or ASCII white space.
func Blank(value string) bool { return strings.Trim(value, " \t\r\n\v\f") == "" }

// Load reads the policy from the value of the policy variable: the text
// itself, or "@" and the absolute path of a regular file that holds it, of at
// most 1 MiB. A blank value gives no policy and no error. A blank file is an
// error: it is more likely half written than meant.
//
// What is wrong with the text is an [*Error]; an errno of the file stays
// reachable by [errors.Is].
func Load(value string, opts Options) (*Policy, Source, error) {
	if Blank(value) {
		return nil, Source{}, nil
	}
	path, ok := strings.CutPrefix(value, "@")
	if !ok {
		p, err := opts.Parse([]byte(value))
		return p, Source{}, err
	}
	if !strings.HasPrefix(path, "/") {
		// What is not a path may be anything, so it is not repeated.
		return nil, Source{}, fmt.Errorf("policy file: %s", notAbsolute)
	}
	src := Source{File: path}
	p, err := opts.loadFile(path)
	if err != nil {
		return nil, src, fmt.Errorf("policy file %s: %w", quoteCut(path, maxPathShown), err)
	}
	return p, src, nil
}

func (o Options) loadFile(path string) (*Policy, error) {
	data, err := o.readFile(path)
	if err != nil {
		return nil, err
	}
	if len(data) <= maxText && Blank(string(data)) {
		return nil, errors.New("is empty")
	}
	return o.Parse(data)
}

// readFile reads a policy or a profile, as much of it as is taken and a byte more.
func (o Options) readFile(path string) ([]byte, error) {
	open := o.Open
	if open == nil {
		open = OpenRegular
	}
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("open: %w", withoutPath(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", withoutPath(err))
	}
	return data, nil
}

// withoutPath takes the path out of an error that names it a second time.
func withoutPath(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// errNotRegular is why a policy is not read from a pipe or a device.
var errNotRegular = errors.New("not a regular file")
