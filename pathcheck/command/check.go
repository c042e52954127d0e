package command

import (
	"fmt"
	"strings"
)

// Bounds. Text beyond them is opaque and only searched for absolute paths.
const (
	maxLength  = 64 << 10 // bytes of a text that is parsed, and of a word
	maxNested  = 8        // sh -c within sh -c
	maxSteps   = 300_000  // work, see step
	maxLookups = 30_000   // directories looked into
)

// Values of [Options.Scope] and [Options.Network].
const (
	ScopeWorkspace = "workspace"
	ScopeLocal     = "local"
	NetworkAllow   = "allow"
	NetworkDeny    = "deny"
)

// Options say what a command string may name. Directories are absolute, clean
// and free of symlinks; Workspace and Roots are what is allowed.
type Options struct {
	// Scope is "workspace" (paths are checked), "local" (only the network words
	// are, if Network is "deny"), "unrestricted" or "" (nothing is).
	Scope     string
	Network   string // "allow", "deny" or "", which means allow
	Workspace string
	Roots     []string
	Dir       string // where the command starts
	// Lookup returns a variable of the environment in which the shell will start.
	Lookup func(name string) (string, bool)
	// Resolve follows the symlinks of the nearest existing ancestor of an absolute
	// path, in which ".." stands behind the symlink before it, and appends the
	// missing rest. With an error the clean path counts as it stands.
	Resolve func(path string) (string, error)
}

// A Use says what the text does with a path.
type Use string

const (
	argument Use = "argument" // a word of a command, which may write it
	program  Use = "exec"
	read     Use = "read" // never refused
	write    Use = "write"
	enter    Use = "dir"    // the target of cd
	assign   Use = "assign" // the value of a variable that programs are given
	data     Use = ""       // no path of this system; never listed
)

// Named is a path that the text names.
type Named struct {
	Text    string // as it stands there, after the shell's expansions
	Path    string // absolute, symlinks resolved as far as it exists
	Use     Use
	Pos     int  // the offset of the word in bytes; in a nested text that of the word that holds it
	Outside bool // of the allowed roots, and no harmless device
}

// Result lists what a command string names, and what of it cannot be evaluated
// from the text alone, in the order in which it was found.
type Result struct {
	Paths  []Named
	Opaque []Opaque
}

// Opaque is a part of the text that cannot be evaluated.
type Opaque struct {
	Text, Why string
	Pos       int
}

// A Violation is the error of [Check] for a text that names what it may not.
type Violation string

func (v Violation) Error() string { return "sandbox violation: " + string(v) }

const (
	leaves  = "cd outside workspace is not permitted in workspace sandbox scope"
	reaches = "%q reaches the network, which is denied"
)

type checker struct {
	Options
	Result
	violation error
	functions map[string]bool
	looked    int // directories; past maxLookups paths count as they stand
	steps     int
	scanning  bool // steps do not end it
	nested    int
	base      int // the offset to report in a nested text
}

// Check reads a command string. The error is a [Violation] for the first path or
// word that the options do not allow, or says what is wrong with the options.
//
// Refused is a path outside the roots, absolute or by ".." or a symlink: as a word
// that a program may write (also in --opt=/path, -I/path, key=/path), the program, a
// redirection that writes, or the value of a variable that programs are given; and
// a cd that leaves the workspace.
func Check(text string, o Options) (Result, error) {
	switch {
	case o.Network != "" && o.Network != NetworkAllow && o.Network != NetworkDeny:
		return Result{}, fmt.Errorf("unknown sandbox network %q", o.Network)
	case o.Scope == "", o.Scope == "unrestricted", o.Scope == ScopeLocal && o.Network != NetworkDeny:
		return Result{}, nil
	case o.Scope != ScopeWorkspace && o.Scope != ScopeLocal:
		return Result{}, fmt.Errorf("unknown sandbox scope %q", o.Scope)
	}
	c := &checker{Options: o, functions: map[string]bool{}}
	c.Roots = append([]string{o.Workspace, "/dev/shm", "/dev/pts", c.real("/dev/shm")}, o.Roots...)
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !strings.ContainsRune(nameBytes, r) }) {
		if has(networkPrograms, strings.ToLower(word)) {
			c.violate(ScopeLocal, reaches, word)
		}
	}
	list, err := c.parse(text, 0)
	if !c.walk(list) || err != nil {
		c.scanning = true
		c.scan(text, 0)
	}
	if c.looked > maxLookups {
		c.unclear(text, 0, "too many paths to look up")
	}
	return c.Result, c.violation
}

// step charges n units of work; past maxSteps the text is opaque.
func (c *checker) step(n int) {
	if c.steps += n; c.steps > maxSteps && !c.scanning {
		panic(maxSteps)
	}
}

func (c *checker) unclear(text string, pos int, why string) {
	if len(text) > 120 {
		text = strings.ToValidUTF8(text[:120], "") + "…"
	}
	c.Opaque = append(c.Opaque, Opaque{text, why, pos})
}

// violate refuses the text, in one scope or in each.
func (c *checker) violate(scope, format string, args ...any) {
	if c.violation == nil && (scope == "" || scope == c.Scope) {
		c.violation = Violation(fmt.Sprintf(format, args...))
	}
}

// scan looks at text that cannot be parsed or followed to its end: words between
// blanks, bare of quotes, count if they are absolute.
func (c *checker) scan(text string, pos int) {
	before := ""
	for _, tok := range strings.Fields(text) {
		if before == "cd" && (tok == ".." || strings.HasPrefix(tok, "../")) {
			c.violate(ScopeWorkspace, leaves)
		}
		before = tok
		if tok = strings.TrimRight(strings.TrimLeft(tok, `"'`), `"';`); strings.HasPrefix(tok, "/") {
			c.locate(word{text: tok, pos: pos}, argument, &state{})
		}
	}
}
