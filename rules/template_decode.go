package rules

import (
	"slices"
	"strconv"
	"strings"
)

const (
	badEntries  = "must be a list of absolute paths and templates"
	badTemplate = "must be a template: a text with sources"
	launchLifts = "a value of the launch may not decide whether what the policy itself names is hidden"
	badCount    = "must be a number from 1 to 64"
)

// template reads one template of the list at key.
func (r *jsonReader) template(list, key string) (*Template, error) {
	t := &Template{}
	err := r.object(key, badEntries, func(name string) (err error) {
		at := joinKey(key, name)
		switch name {
		case "path":
			t.Path, err = r.templateText(at)
		case "beneath":
			if t.Beneath, err = r.templateText(at); err == nil && strings.Trim(t.Beneath, "/.") == "" {
				err = &Error{Key: at, Msg: "is /, and everything lies beneath /"}
			}
		case "unless":
			err = r.array(at, "must be a list of templates", func(at string) error {
				text, err := r.templateText(at)
				t.Unless = append(t.Unless, text)
				return err
			})
		case "keep":
			t.Keep, err = r.count(at)
		case "depth":
			t.Depth, err = r.count(at)
		case "kind":
			var s string
			s, err = r.choice(at, `must be "dir" or "file"`, string(KindDir), string(KindFile))
			t.Kind = EntryKind(s)
		default:
			err = &Error{Key: at, Msg: unknownKey}
		}
		return err
	})
	if err == nil {
		err = t.check(list, key)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// check holds a template of the list to what its keys mean together.
func (t *Template) check(list, key string) error {
	bad := func(name, msg string) error { return &Error{Key: key + "." + name, Msg: msg} }
	switch {
	case t.Path == "":
		return bad("path", "missing")
	case t.Beneath == "" && list == "exposed":
		return bad("beneath", "missing, and a template in exposed must have it")
	case t.Beneath == "" && list == "precreate" && textUses(t.Path, untrusted):
		return bad("beneath", "missing, and in precreate a path of the launch's own values must have it")
	case t.Beneath == "" && t.Keep > 0:
		return bad("keep", `needs "beneath"`)
	case t.Beneath == "" && t.Depth > 0:
		return bad("depth", `needs "beneath"`)
	case t.Keep > 0 && t.Depth > 0:
		return bad("depth", `not together with "keep"`)
	case list == "hidden" && !textUses(t.Path, untrusted) && textUses(t.Beneath, untrusted):
		return bad("beneath", launchLifts)
	case list == "hidden" && !textUses(t.Path, untrusted) && slices.ContainsFunc(t.Unless, func(s string) bool { return textUses(s, untrusted) }):
		return bad("unless", launchLifts)
	case t.Kind != KindNone && list == "hidden":
		return bad("kind", "nothing is made of a hidden path")
	case t.Kind == KindFile && list == "precreate":
		return bad("kind", "precreate makes directories")
	}
	if list == "precreate" {
		t.Kind = KindDir
	}
	return nil
}

func (r *jsonReader) templateText(key string) (string, error) {
	s, err := r.text(key, badTemplate)
	if err != nil {
		return "", err
	}
	if _, complaint := splitTemplate(s); complaint != "" {
		return "", &Error{Key: key, Msg: complaint}
	}
	return s, nil
}

// maxCount bounds keep and depth.
const maxCount = 64

// count reads a number of components.
func (r *jsonReader) count(key string) (int, error) {
	start := r.pos
	if err := r.skip(0); err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(string(r.data[start:r.pos]))
	if err != nil || n < 1 || n > maxCount || strconv.Itoa(n) != string(r.data[start:r.pos]) {
		return 0, &Error{Key: key, Msg: badCount}
	}
	return n, nil
}
