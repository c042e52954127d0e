package rules

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Limits of the kernel: NAME_MAX, and PATH_MAX without its NUL (limits.h).
const (
	maxName = 255
	maxPath = 4095
)

const notAbsolute = "not an absolute path"

func (r *jsonReader) boolean(key string) (bool, error) {
	switch string(r.data[r.pos:]) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, &Error{Key: key, Msg: "must be true or false"}
}

// text reads a string; want is the complaint when the value is none.
func (r *jsonReader) text(key, want string) (string, error) {
	if r.next() != '"' {
		return "", &Error{Key: key, Msg: want}
	}
	return r.str(key)
}

// choice reads a string that must be one of values.
func (r *jsonReader) choice(key, want string, values ...string) (string, error) {
	s, err := r.text(key, want)
	if err != nil {
		return "", err
	}
	if !slices.Contains(values, s) {
		return "", &Error{Key: key, Msg: want}
	}
	return s, nil
}

func (r *jsonReader) scope(key string) (Scope, error) {
	s, err := r.choice(key, `must be "workspace", "local" or "unrestricted"`,
		string(ScopeWorkspace), string(ScopeLocal), string(ScopeUnrestricted))
	return Scope(s), err
}

// path reads the absolute path at key and cleans it.
func (r *jsonReader) path(key string) (string, error) {
	s, err := r.text(key, notAbsolute)
	if err != nil {
		return "", err
	}
	return checkPath(key, s)
}

// checkPath is [cleanPath] with the key in the error.
func checkPath(key, s string) (string, error) {
	clean, err := cleanPath(s)
	if e, ok := errors.AsType[*Error](err); ok {
		e.Key = key
	}
	return clean, err
}

// cleanPath removes empty and "." components and a trailing slash from an
// absolute path. It keeps "..": behind a symbolic link only the file system
// knows where that leads, and removing "link/.." from the text would name
// another file than the kernel finds (path_resolution(7)). Only a ".."
// directly below / goes, since it is / itself. The error is an [*Error]
// without a key.
func cleanPath(s string) (string, error) {
	if !strings.HasPrefix(s, "/") {
		// What is not a path may be anything, so it is not repeated.
		return "", &Error{Msg: notAbsolute}
	}
	var b strings.Builder
	for name := range strings.SplitSeq(s, "/") {
		if name == "" || name == "." || name == ".." && b.Len() == 0 {
			continue
		}
		if len(name) > maxName {
			return "", &Error{Path: s, Msg: "a name in the path is longer than 255 bytes"}
		}
		b.WriteByte('/')
		b.WriteString(name)
	}
	switch {
	case b.Len() == 0:
		return "/", nil
	case b.Len() > maxPath:
		return "", &Error{Path: s, Msg: "path is longer than 4095 bytes"}
	}
	return b.String(), nil
}

// entries reads a list of absolute paths, and of launch templates where the key
// has some. Of equal paths the first stays.
func (r *jsonReader) entries(key string, templates bool) ([]Entry, error) {
	var list []Entry
	seen := make(map[string]bool)
	want := "must be a list of absolute paths"
	if templates {
		want = badEntries
	}
	err := r.array(key, want, func(at string) error {
		if templates && r.next() == '{' {
			t, err := r.template(key, at)
			list = append(list, Entry{Key: at, Template: t})
			return err
		}
		path, err := r.path(at)
		if err != nil {
			return err
		}
		if path == "/" && key == "hidden" {
			return &Error{Key: at, Msg: "hiding / would hide everything"}
		}
		if !seen[path] {
			seen[path] = true
			list = append(list, Entry{Path: path, Key: at})
		}
		return nil
	})
	return list, err
}

const badDestination = "must be an absolute path, or fd:N with N at least 2"

// destination reads a path or "fd:N". Descriptor 0 is the program's input,
// and 1 its output, in which the shim may put nothing.
func (r *jsonReader) destination(key string) (Destination, error) {
	s, err := r.text(key, badDestination)
	if err != nil {
		return Destination{}, err
	}
	if number, ok := strings.CutPrefix(s, "fd:"); ok {
		// The comparison refuses "+3", "03" and the like.
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 2 || strconv.FormatInt(n, 10) != number {
			return Destination{}, &Error{Key: key, Msg: badDestination}
		}
		return Destination{FD: int(n), IsFD: true}, nil
	}
	if !strings.HasPrefix(s, "/") {
		return Destination{}, &Error{Key: key, Msg: badDestination}
	}
	s, err = checkPath(key, s)
	return Destination{Path: s}, err
}

func (r *jsonReader) logConfig(key string) (LogConfig, error) {
	var c LogConfig
	err := r.object(key, `must be an object with "level" and "to"`, func(name string) (err error) {
		at := joinKey(key, name)
		switch name {
		case "level":
			c.Level, err = r.choice(at, `must be "trace", "debug", "info", "warn" or "error"`,
				"trace", "debug", "info", "warn", "error")
		case "to":
			c.To, err = r.destination(at)
		default:
			err = &Error{Key: at, Msg: unknownKey}
		}
		return err
	})
	switch {
	case err != nil:
		return LogConfig{}, err
	case c.Level == "":
		return LogConfig{}, &Error{Key: key + ".level", Msg: "missing"}
	case c.To.IsZero():
		return LogConfig{}, &Error{Key: key + ".to", Msg: "missing"}
	}
	return c, nil
}

// envChange reads the changes to the program's environment. PolicyEnv is the
// variable that no change may name: it is gone before the program runs.
func (r *jsonReader) envChange(key, policyEnv string) (EnvChange, error) {
	var c EnvChange
	unset := make(map[string]bool)
	err := r.object(key, `must be an object with "unset" and "set"`, func(name string) error {
		at := joinKey(key, name)
		switch name {
		case "unset":
			return r.array(at, "must be a list of variable names", func(at string) error {
				name, err := r.text(at, badVariable)
				if err == nil {
					err = checkVariable(at, name, policyEnv)
				}
				if err == nil && !unset[name] {
					unset[name] = true
					c.Unset = append(c.Unset, name)
				}
				return err
			})
		case "set":
			return r.object(at, "must be an object of variables and values", func(name string) error {
				at := joinKey(at, name)
				if err := checkVariable(at, name, policyEnv); err != nil {
					return err
				}
				value, err := r.text(at, "must be a string")
				c.add(EnvVar{name, value})
				return err
			})
		}
		return &Error{Key: at, Msg: unknownKey}
	})
	if err != nil {
		return EnvChange{}, err
	}
	for _, v := range c.Set {
		if unset[v.Name] {
			return EnvChange{}, &Error{Key: joinKey(key+".set", v.Name), Msg: "also in env.unset"}
		}
	}
	return c, nil
}

// add puts a variable in its place in c.Set, which is in order of names.
// Sorting afterwards would link 20 KB for this one type.
func (c *EnvChange) add(v EnvVar) {
	index, _ := slices.BinarySearchFunc(c.Set, v.Name, func(x EnvVar, name string) int { return strings.Compare(x.Name, name) })
	c.Set = slices.Insert(c.Set, index, v)
}

const badVariable = "not the name of a variable"

func checkVariable(key, name, policyEnv string) error {
	switch {
	case name == "" || strings.Contains(name, "="):
		return &Error{Key: key, Msg: badVariable}
	case name == policyEnv:
		return &Error{Key: key, Msg: "is the variable of the policy itself"}
	}
	return nil
}
