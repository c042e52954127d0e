package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A mutant is one edit of file, relative to the top of the module, and the tests that
// must notice it. The row stands at.
type mutant struct {
	name, why, at  string
	file, old, new string
	tests          []target
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
	for i, line := range strings.Split(string(data), "\n") {
		at := fmt.Sprintf("%s:%d", path, i+1)
		word, rest, _ := strings.Cut(line, " ")
		if line == "" || line[0] == '#' {
			continue
		}
		if word == "==" {
			out = append(out, mutant{name: rest, at: at})
			continue
		}
		if out == nil {
			return nil, fmt.Errorf("%s: a row begins with ==", at)
		}
		m := &out[len(out)-1]
		switch {
		case line[0] == '-':
			m.old += line[1:] + "\n"
		case line[0] == '+':
			m.new += line[1:] + "\n"
		case word == "why":
			m.why = strings.TrimSpace(rest)
		case word == "file":
			m.file = rest
		case word == "test":
			pkg, run, _ := strings.Cut(rest, " ")
			m.tests = append(m.tests, target{pkg, run})
		default:
			return nil, fmt.Errorf("%s: %q is no part of a row", at, word)
		}
	}
	for i := range out {
		m := &out[i]
		m.old, m.new = strings.TrimSuffix(m.old, "\n"), strings.TrimSuffix(m.new, "\n")
		if m.name == "" || m.file == "" || m.old == "" || m.old == m.new || m.tests == nil {
			return nil, fmt.Errorf("%s: a row has a name, a file, a test and an edit", m.at)
		}
	}
	return out, nil
}

// apply writes the file at path with the edit beside an overlay for the compiler
// (go help build).
func (m mutant) apply(path, overlay string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return fmt.Errorf("the old text occurs %d times in %s", n, m.file)
	}
	changed := filepath.Join(filepath.Dir(overlay), filepath.Base(path))
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	return errors.Join(err, os.WriteFile(overlay, replace, 0o644),
		os.WriteFile(changed, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o644))
}
