package load

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// An Options says how a policy is read.
type Options struct {
	// PolicyEnv is the name of the variable that carries the policy, which
	// the policy's own env may not touch. "" means [rules.DefaultPolicyEnv].
	PolicyEnv string
	// ProfileDir is the absolute path of the directory of profiles, or "":
	// then only the built-in ones are known.
	ProfileDir string
}

// A Source says where the text of a policy stood.
type Source struct {
	// File is the absolute path of the policy file as the variable named it,
	// or "" when the variable held the text.
	File string
}

// Policy reads the policy from the value of the policy variable: the text
// itself, or "@" and the absolute path of a regular file that holds it, of at
// most 1 MiB. A blank value gives no policy and no error. A blank file is an
// error: it is more likely half written than meant.
//
// What is wrong with the text is a [*rules.Error]; an errno of the file stays
// reachable by [errors.Is].
func Policy(value string, opts Options) (*rules.Policy, Source, error) {
	if rules.Blank(value) {
		return nil, Source{}, nil
	}
	path, ok := strings.CutPrefix(value, "@")
	if !ok {
		p, err := opts.Parse([]byte(value))
		return p, Source{}, err
	}
	if !strings.HasPrefix(path, "/") {
		// What is not a path may be anything, so it is not repeated.
		return nil, Source{}, errors.New("policy file: not an absolute path")
	}
	src := Source{File: path}
	p, err := opts.policyFile(path)
	if err != nil {
		return nil, src, fmt.Errorf("policy file %s: %w", rules.QuotePath(path), err)
	}
	return p, src, nil
}

func (o Options) policyFile(path string) (*rules.Policy, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	if len(text) <= rules.MaxText && rules.Blank(string(text)) {
		return nil, errors.New("is empty")
	}
	return o.Parse(text)
}

// Parse decodes the text of a policy, with the profiles of the directory. What
// is wrong with the text is a [*rules.Error].
func (o Options) Parse(text []byte) (*rules.Policy, error) { return o.rules().Parse(text) }

// Profile returns the profile of a name: the file name.json in the profile
// directory, or else the built-in one.
func (o Options) Profile(name string) (*rules.Profile, error) { return o.rules().Profile(name) }

func (o Options) rules() rules.Options {
	return rules.Options{PolicyEnv: o.PolicyEnv, ReadProfile: o.readProfile}
}

func (o Options) readProfile(name string) (text []byte, file string, err error) {
	if o.ProfileDir == "" {
		return nil, "", nil
	}
	file = strings.TrimSuffix(o.ProfileDir, "/") + "/" + name + ".json"
	text, err = readFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("profile %s: %w", rules.QuotePath(file), err)
	}
	return text, file, nil
}

// readFile reads a policy or a profile, as much of it as is taken and a byte
// more, by which its text is too long. It is not nil.
func readFile(path string) ([]byte, error) {
	return pathcheck.ReadHead(path, rules.MaxText+1)
}
