package rules

import (
	"slices"
	"strings"
)

// A Template is an entry of hidden, exposed or precreate that is resolved anew
// for each launch, from the program's own argv and environment, by
// [Policy.Expand]. Those values are not trusted: they choose which entry is
// meant and never widen what the policy's own text opens.
//
// Its texts may hold the sources ${arg:--flag}, ${env:NAME}, ${cwd}, ${home} and
// ${root}, each with the filter |name in it, as in ${arg:--id|name}. "$" without
// "{" is a plain character. The texts of a Template that came from [Parse] are of
// right syntax.
type Template struct {
	// Path is what the entry names. It begins with "/" or a source.
	Path string
	// Beneath is the directory strictly beneath which Path must lie, and below
	// which no component may be a symlink; "" where none is declared.
	Beneath string
	// Unless holds directories: an entry that lies in one of them is dropped.
	Unless []string
	// Keep cuts the entry to so many components below Beneath, Depth wants
	// exactly so many; 0 means that it was not given. Not both.
	Keep, Depth int
	// Kind is what is made of an entry that does not exist.
	Kind EntryKind
	// OfProfile is set for a template that a profile brought: it applies to
	// the profile's targets.
	OfProfile bool
}

// An EntryKind is the value of the key "kind" of a template.
type EntryKind string

const (
	// KindNone makes nothing.
	KindNone EntryKind = ""
	// KindDir is a directory, made with mode 0700, its parents too.
	KindDir EntryKind = "dir"
	// KindFile is a regular file, made with mode 0600 and never truncated.
	KindFile EntryKind = "file"
)

// A source is one ${…} of a template.
type source struct {
	kind sourceKind
	// arg is the flag or the name of the variable.
	arg string
	// asName asks for the filter.
	asName bool
}

type sourceKind uint8

const (
	sourceArg sourceKind = iota
	sourceEnv
	sourceCwd
	sourceHome
	sourceRoot
)

// trusted reports whether the policy itself gives the value. What the launch
// brings (argv, the environment with HOME in it, the current directory) is
// chosen by others.
func (s source) trusted() bool { return s.kind == sourceRoot }

func (s source) String() string {
	name := [...]string{sourceArg: "arg:" + s.arg, sourceEnv: "env:" + s.arg, sourceCwd: "cwd", sourceHome: "home", sourceRoot: "root"}[s.kind]
	if s.asName {
		name += "|name"
	}
	return "${" + name + "}"
}

// A part is a piece of a template: a source, or plain text.
type part struct {
	text   string
	source *source
}

// Complaints about a template's text.
const (
	badStart    = `must begin with "/" or with a source that has no filter`
	badSource   = "unknown source: want ${arg:--flag}, ${env:NAME}, ${cwd}, ${home} or ${root}"
	badFilter   = "unknown filter: want |name"
	badDotDot   = `".." is not allowed here`
	badBrace    = `"${" without "}"`
	badPosition = "${cwd}, ${home} and ${root} may only stand at the beginning"
)

// splitTemplate reads the text of a template. complaint is "" or what is wrong.
func splitTemplate(text string) (parts []part, complaint string) {
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "${")
		if slices.Contains(strings.Split(before, "/"), "..") {
			return nil, badDotDot
		}
		if before != "" {
			parts = append(parts, part{text: before})
		}
		if !found {
			break
		}
		inner, behind, closed := strings.Cut(after, "}")
		if !closed {
			return nil, badBrace
		}
		s, complaint := parseSource(inner)
		if complaint != "" {
			return nil, complaint
		}
		if len(parts) > 0 && s.kind >= sourceCwd && !s.asName {
			return nil, badPosition
		}
		parts = append(parts, part{source: &s})
		rest = behind
	}
	if len(parts) == 0 || parts[0].source == nil && parts[0].text[0] != '/' || parts[0].source != nil && parts[0].source.asName {
		return nil, badStart
	}
	return parts, ""
}

func parseSource(inner string) (s source, complaint string) {
	inner, filter, filtered := strings.Cut(inner, "|")
	if filtered && filter != "name" {
		return source{}, badFilter
	}
	s.asName = filtered
	kind, arg, hasArg := strings.Cut(inner, ":")
	switch {
	case hasArg && kind == "arg" && len(arg) > 1 && arg[0] == '-':
		s.kind, s.arg = sourceArg, arg
	case hasArg && kind == "env" && arg != "" && !strings.Contains(arg, "="):
		s.kind, s.arg = sourceEnv, arg
	case inner == "cwd":
		s.kind = sourceCwd
	case inner == "home":
		s.kind = sourceHome
	case inner == "root":
		s.kind = sourceRoot
	default:
		return source{}, badSource
	}
	return s, ""
}

// uses reports whether a text of the template has a source for which f holds.
func (t *Template) uses(f func(source) bool) bool {
	for _, text := range append([]string{t.Path, t.Beneath}, t.Unless...) {
		if textUses(text, f) {
			return true
		}
	}
	return false
}

func textUses(text string, f func(source) bool) bool {
	if text == "" {
		return false
	}
	parts, _ := splitTemplate(text)
	for _, p := range parts {
		if p.source != nil && f(*p.source) {
			return true
		}
	}
	return false
}

func untrusted(s source) bool { return !s.trusted() }
