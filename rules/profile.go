package rules

import (
	_ "embed" // for the built-in profiles
	"errors"
	"slices"
	"strings"
)

// A Profile is a named part of a policy, which a policy joins to itself with the
// key "profile". It has the keys of a policy but "profile" and "program", and
// "description" and "targets" besides.
type Profile struct {
	// Name is one safe file name.
	Name string
	// File is the absolute path it was read from, "" when it is built in.
	File string
	// Text is the JSON.
	Text []byte
	// Description is for people.
	Description string
	// Targets are the names of the programs for which the profile's templates
	// apply; nil means all.
	Targets []string

	members []member
}

// profilePrefix is what the keys of a profile's entries begin with in messages.
const profilePrefix = "profile."

// The built-in profiles.
var (
	//go:embed profiles/paperclip-runner.json
	paperclipRunner string
	//go:embed profiles/workspace.json
	workspaceProfile string

	builtinProfiles = [...]struct {
		name string
		text *string
	}{
		{PaperclipRunner, &paperclipRunner},
		{"workspace", &workspaceProfile},
	}
)

// PaperclipRunner is the built-in profile of the form without a version.
const PaperclipRunner = "paperclip-runner"

// BuiltinProfiles returns the names of the built-in profiles, sorted.
func BuiltinProfiles() []string {
	var names []string
	for _, p := range builtinProfiles {
		names = append(names, p.name)
	}
	slices.Sort(names)
	return names
}

const badProfileName = `must be the name of a profile: letters, digits, ".", "_" and "-"`

// Profile returns the profile of a name: what ReadProfile has, or else the
// built-in one. So an operator can replace a built-in profile. What is wrong with
// the profile's text is an [*Error]; the profile is decoded, but not yet checked
// as a part of a policy.
func (o Options) Profile(name string) (*Profile, error) {
	if safe, ok := SafeName(name); !ok || safe != name {
		return nil, &Error{Key: "profile", Msg: badProfileName}
	}
	if o.ReadProfile != nil {
		text, file, err := o.ReadProfile(name)
		if err != nil {
			return nil, err
		}
		if text != nil {
			p, err := parseProfile(name, text)
			if err != nil {
				return nil, err
			}
			p.File = file
			return p, nil
		}
	}
	for _, p := range builtinProfiles {
		if p.name == name {
			return parseProfile(name, []byte(*p.text))
		}
	}
	return nil, &Error{Key: "profile", Msg: "neither built in nor in the profile directory"}
}

// parseProfile reads what a profile has besides the keys of a policy, and checks
// the rest for its syntax. The error is an [*Error].
func parseProfile(name string, text []byte) (*Profile, error) {
	p := &Profile{Name: name, Text: text}
	if len(text) > MaxText {
		return nil, &Error{Key: "profile", Msg: "larger than 1 MiB"}
	}
	members, err := splitMembers(text)
	if err != nil {
		return nil, inProfile(err)
	}
	hasVersion := false
	for _, m := range members {
		r := &jsonReader{data: text[:m.end], pos: m.start}
		switch m.key {
		case "description":
			p.Description, err = r.text(m.key, "must be a string")
		case "targets":
			p.Targets, err = r.targets(m.key)
		case "profile", "program":
			err = &Error{Key: m.key, Msg: "not allowed in a profile"}
		default:
			hasVersion = hasVersion || m.key == "version"
			p.members = append(p.members, m)
		}
		if err != nil {
			return nil, inProfile(err)
		}
	}
	if !hasVersion {
		return nil, &Error{Key: profilePrefix + "version", Msg: `missing (add "version":1)`}
	}
	return p, nil
}

// targets reads the names of programs.
func (r *jsonReader) targets(key string) ([]string, error) {
	list := []string{}
	err := r.array(key, "must be a list of names of programs", func(at string) error {
		name, err := r.text(at, badTarget)
		if err == nil && (name == "" || strings.Contains(name, "/")) {
			err = &Error{Key: at, Msg: badTarget}
		}
		list = append(list, name)
		return err
	})
	if err == nil && len(list) == 0 {
		err = &Error{Key: key, Msg: "is empty: the profile's templates would apply to nothing"}
	}
	return list, err
}

const badTarget = "not the name of a program"

// inProfile says of an error that it is in the profile.
func inProfile(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		e.Key = strings.TrimSuffix(profilePrefix+e.Key, ".")
	}
	return err
}

// decode reads the profile's keys of a policy into p.
func (prof *Profile) decode(p *Policy, o Options) error {
	for _, m := range prof.members {
		r := &jsonReader{data: prof.Text[:m.end], pos: m.start}
		if err := o.decodeMember(p, r, m.key); err != nil {
			return inProfile(err)
		}
	}
	for _, list := range [][]Entry{p.Hidden, p.Exposed, p.Precreate, p.Writable} {
		for i := range list {
			list[i].Key = profilePrefix + list[i].Key
			if list[i].Template != nil {
				list[i].Template.OfProfile = true
			}
		}
	}
	p.Profile, p.ProfileFile, p.Targets = prof.Name, prof.File, prof.Targets
	return nil
}

// namedProfile loads the profile that a policy names, or returns nil.
func (o Options) namedProfile(data []byte, members []member) (*Profile, error) {
	for _, m := range members {
		if m.key == "profile" {
			r := &jsonReader{data: data[:m.end], pos: m.start}
			name, err := r.text(m.key, badProfileName)
			if err != nil {
				return nil, err
			}
			return o.Profile(name)
		}
	}
	return nil, nil
}

// keys returns the keys of a profile as messages name them.
func (prof *Profile) keys() []string {
	if prof == nil {
		return nil
	}
	var keys []string
	for _, m := range prof.members {
		keys = append(keys, profilePrefix+m.key)
	}
	return keys
}

// compose decodes a policy on top of its profile, which may be nil. A scalar of
// the policy takes the place of the profile's, lists are joined, and required
// holds if either says so, or if neither does.
func (o Options) compose(prof *Profile, saysRequired bool, decode func(*Policy) error) (*Policy, error) {
	p := newPolicy()
	if prof == nil {
		return p, decode(p)
	}
	if err := prof.decode(p, o); err != nil {
		return nil, err
	}
	of := p.takeLists()
	asked := hasKey(prof.members, "required")
	required := p.Required && (asked || !saysRequired)
	p.Required = false
	if err := decode(p); err != nil {
		return nil, err
	}
	p.Required = p.Required || required
	p.join(of)
	return p, nil
}

// checkRoot refuses templates of ${root} in a policy without a root.
func (p *Policy) checkRoot() error {
	if slices.Contains(strings.Split(p.Root, "/"), "..") {
		// Templates are cleaned lexically.
		return &Error{Key: "root", Path: p.Root, Msg: badDotDot}
	}
	if p.Root != "" {
		return nil
	}
	for _, list := range [][]Entry{p.Hidden, p.Exposed, p.Precreate} {
		for _, e := range list {
			if e.Template != nil && e.Template.uses(source.trusted) {
				return &Error{Key: e.Key, Msg: `needs the key "root"`}
			}
		}
	}
	return nil
}

// join puts the lists of a profile behind those of the policy that names it.
// What the policy's env says of a variable goes before what the profile's says.
func (p *Policy) join(of *Policy) {
	p.Hidden = joinEntries(p.Hidden, of.Hidden)
	p.Exposed = joinEntries(p.Exposed, of.Exposed)
	p.Precreate = joinEntries(p.Precreate, of.Precreate)
	p.Writable = joinEntries(p.Writable, of.Writable)
	p.Isolate |= of.Isolate
	named := func(name string) bool {
		return slices.Contains(p.Env.Unset, name) || slices.ContainsFunc(p.Env.Set, func(v EnvVar) bool { return v.Name == name })
	}
	var unset []string
	var set []EnvVar
	for _, name := range of.Env.Unset {
		if !named(name) {
			unset = append(unset, name)
		}
	}
	for _, v := range of.Env.Set {
		if !named(v.Name) {
			set = append(set, v)
		}
	}
	p.Env.Unset = append(p.Env.Unset, unset...)
	for _, v := range set {
		p.Env.add(v)
	}
}

// joinEntries appends the entries of more, but for plain paths that list has.
func joinEntries(list, more []Entry) []Entry {
	for _, e := range more {
		if e.Template == nil && slices.ContainsFunc(list, func(x Entry) bool { return x.Template == nil && x.Path == e.Path }) {
			continue
		}
		list = append(list, e)
	}
	return list
}

// takeLists empties what [Policy.join] joins and returns it.
func (p *Policy) takeLists() *Policy {
	of := &Policy{
		Hidden: p.Hidden, Exposed: p.Exposed, Precreate: p.Precreate, Writable: p.Writable,
		Isolate: p.Isolate, Env: p.Env,
	}
	p.Hidden, p.Exposed, p.Precreate, p.Writable = nil, nil, nil, nil
	p.Isolate, p.Env = 0, EnvChange{}
	return of
}
