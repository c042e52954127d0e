package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
)

// A policyText is a policy with the text it came from, which may be changed
// without losing what only the text says.
type policyText struct {
	*rules.Policy
	text []byte
	opts load.Options
}

// readPolicyText reads a policy from a file, from standard input for "-", or from
// the variable for "".
func (a *admin) readPolicyText(command, file string, opts load.Options) (*policyText, error) {
	if opts.PolicyEnv == "" {
		opts.PolicyEnv = rules.DefaultPolicyEnv
	}
	t := &policyText{opts: opts}
	var err error
	if file == "" {
		value, _, _, pickErr := rules.Pick(a.environ, opts.PolicyEnv)
		switch name, isFile := strings.CutPrefix(value, "@"); {
		case pickErr != nil:
			return nil, pickErr
		case rules.Blank(value):
			return nil, &usageError{command, "no policy: give --policy FILE, or set " + opts.PolicyEnv}
		case isFile:
			t.text, err = os.ReadFile(name)
		default:
			t.text = []byte(value)
		}
	} else {
		t.text, err = a.readAll(file)
	}
	if err == nil {
		t.Policy, err = opts.Parse(t.text)
	}
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return t, nil
}

// with returns the text with members set, or taken away where the value is nil.
// The policy is known to be an object without duplicate keys.
func (t *policyText) with(changes map[string]any) (string, error) {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(t.text, &members); err != nil {
		return "", err
	}
	for key, value := range changes {
		if value == nil {
			delete(members, key)
			continue
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return "", err
		}
		members[key] = raw
	}
	out, err := json.Marshal(members)
	if err != nil {
		return "", err
	}
	if _, err := t.opts.Parse(out); err != nil {
		return "", fmt.Errorf("policy: %w", err)
	}
	return string(out), nil
}

// versioned reports whether the text has the form with a version.
func (t *policyText) versioned() bool {
	var members struct{ Version *json.RawMessage }
	return json.Unmarshal(t.text, &members) == nil && members.Version != nil
}

// withRoot returns the text with another root.
func (t *policyText) withRoot(root string) (string, error) {
	if t.versioned() {
		return t.with(map[string]any{"root": root, "report": nil, "log": nil})
	}
	return t.with(map[string]any{"instanceRoot": root})
}

// quiet returns the text without the places for report and log.
func (t *policyText) quiet() (string, error) {
	if t.versioned() {
		return t.with(map[string]any{"report": nil, "log": nil})
	}
	return string(t.text), nil
}
