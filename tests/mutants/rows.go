package main

import (
	"fmt"
	"os"
	"strings"
)

// A mutant is one edit and the tests that must notice it.
type mutant struct {
	name, why string
	// file is relative to the top of the module.
	file     string
	old, new string
	tests    []target
	// at is where the row stands.
	at string
}

// A target is a package, as ./path, and the names of tests in it.
type target struct{ pkg, run string }

// readRows reads the rows of one file.
func readRows(path string) ([]mutant, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []mutant
	var before, after []string
	finish := func() {
		if len(out) > 0 {
			m := &out[len(out)-1]
			m.old, m.new = strings.Join(before, "\n"), strings.Join(after, "\n")
		}
		before, after = nil, nil
	}
	for i, line := range strings.Split(string(data), "\n") {
		at := fmt.Sprintf("%s:%d", path, i+1)
		word, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		switch {
		case line == "" || line[0] == '#':
			continue
		case word == "==":
			finish()
			out = append(out, mutant{name: rest, at: at})
			continue
		case len(out) == 0:
			return nil, fmt.Errorf("%s: a row begins with ==", at)
		}
		m := &out[len(out)-1]
		switch {
		case line[0] == '-':
			before = append(before, line[1:])
		case line[0] == '+':
			after = append(after, line[1:])
		case word == "why":
			m.why = rest
		case word == "file":
			m.file = rest
		case word == "test":
			pkg, run, ok := strings.Cut(rest, " ")
			if !ok {
				return nil, fmt.Errorf("%s: a test is a package and names", at)
			}
			m.tests = append(m.tests, target{pkg, strings.TrimSpace(run)})
		default:
			return nil, fmt.Errorf("%s: %q is no part of a row", at, word)
		}
	}
	finish()
	seen := map[string]bool{}
	for _, m := range out {
		if m.name == "" || m.why == "" || m.file == "" || m.old == "" || m.tests == nil {
			return nil, fmt.Errorf("%s: a row has a name, a reason, a file, a test and an edit", m.at)
		}
		if seen[m.name] {
			return nil, fmt.Errorf("%s: the second row called %q", m.at, m.name)
		}
		seen[m.name] = true
	}
	return out, nil
}

// apply returns the text of the file after the edit.
func (m mutant) apply(text string) (string, error) {
	if n := strings.Count(text, m.old); n != 1 {
		return "", fmt.Errorf("the old text occurs %d times in %s", n, m.file)
	}
	if m.old == m.new {
		return "", fmt.Errorf("the edit changes nothing")
	}
	return strings.Replace(text, m.old, m.new, 1), nil
}
