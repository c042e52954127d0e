package command

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// Limits of what is read. Text beyond them is reported as opaque, and only the
// plain scan for absolute tokens is applied to it.
const (
	// MaxLength is the longest command string that is parsed, in bytes.
	MaxLength = 64 << 10
	// maxFrames is how many Go stack frames the recursive parser may use: some
	// 150 nested command substitutions.
	maxFrames = 2000
	// maxNested is how deep `sh -c` inside `sh -c` is followed.
	maxNested = 16
	// maxCalls is how deep function calls are followed.
	maxCalls = 12
	// maxSteps bounds the work on one command string, see [checker.step].
	maxSteps = 300_000
	// maxLookups bounds how many directories are looked into, for all paths.
	maxLookups = 30_000
)

// Steps of what costs more than one.
const (
	// perParser is what a parser costs before its first byte. Each byte is one
	// more.
	perParser = 40
	// bytesRead is how many bytes of a text or value are looked at in a step.
	bytesRead = 64
	// entriesCopied is how many variables, functions and arguments of a state are
	// copied in a step.
	entriesCopied = 2
	// partsCopied is how many pieces of a word are copied in a step.
	partsCopied = 8
	// perQuestion is what a variable or a user costs that somebody else knows.
	perQuestion = 100
)

// Values of [Options.Scope] and [Options.Network].
const (
	ScopeWorkspace    = "workspace"
	ScopeLocal        = "local"
	ScopeUnrestricted = "unrestricted"

	NetworkAllow = "allow"
	NetworkDeny  = "deny"
)

// Errors of [Check]; use errors.Is.
var (
	ErrScope   = errors.New("unknown sandbox scope")
	ErrNetwork = errors.New("unknown sandbox network")
)

// Options say what a command string may name.
type Options struct {
	// Scope is "workspace" (paths are checked), "local" (only the network words
	// are, if Network is "deny"), "unrestricted" or "" (nothing is).
	Scope string
	// Network is "allow", "deny" or "", which means allow.
	Network string
	// Workspace is the workspace, absolute, clean and free of symlinks. It is
	// always an allowed root.
	Workspace string
	// Roots are more allowed roots (temp and cache directories), absolute,
	// clean and free of symlinks.
	Roots []string
	// Dir is where the command starts, absolute; Workspace if empty.
	Dir string
	// Home is what "~" and $HOME stand for, absolute; empty if not known.
	Home string
	// Shell is the name of the shell that will run the text ("bash", "dash");
	// it chooses the dialect. Empty means bash.
	Shell string
	// HomeOf returns the home of a user, for "~user". Nil: such words are opaque.
	HomeOf func(user string) (string, bool)
	// Lookup returns a variable of the environment in which the shell will
	// start. Nil, or false: a variable that the text does not set is opaque.
	Lookup func(name string) (string, bool)
	// Resolve follows the symlinks of the nearest existing ancestor of an
	// absolute path and appends the missing rest. The path may hold "..",
	// which stands behind the symlink before it. With an error the clean path
	// counts as it stands. Nil: the file system of the running process.
	Resolve func(path string) (string, error)
}

// A Use says what the text does with a path.
type Use uint8

const (
	// Argument is a word of a command; only the program knows what for.
	Argument Use = iota
	// Exec is the command word.
	Exec
	// Read and Write are redirections and shell builtins that open the file.
	Read
	Write
	// Dir is the target of cd and pushd.
	Dir
	// Assign is the value of a variable.
	Assign
	// Search is an entry of PATH. It never counts as a violation: it says where
	// programs are looked for.
	Search
)

func (u Use) String() string {
	return [...]string{"argument", "exec", "read", "write", "dir", "assign", "search"}[u]
}

// Named is a path that the text names.
type Named struct {
	// Text is the path as the text has it, after the shell's expansions.
	Text string
	// Path is the location: absolute, symlinks resolved as far as it exists.
	Path string
	Use  Use
	// Pos is the offset in bytes of the word in the command string. Inside a
	// nested command string it is the offset of the word that holds it.
	Pos int
	// Outside is true if Path lies in no allowed root and is no harmless device.
	// A relative path is listed once for each directory in which it may be meant;
	// where only some lead outside, [Check] says when that is a violation.
	Outside bool
}

// Opaque is a part of the text that cannot be evaluated from the text alone.
type Opaque struct {
	Text string
	Why  string
	Pos  int
}

// Result lists what a command string names, in the order of the text.
type Result struct {
	Paths  []Named
	Opaque []Opaque
}

// Check reads a command string. The error is a *[Violation] for the first path
// or word that the options do not allow, [ErrScope], [ErrNetwork], or nil. The
// result is complete in either case, so that a caller with other rules (command
// words by absolute path, say) can apply them to Paths.
//
// Every absolute path counts, whatever it is used for: command words,
// arguments, redirections, assignments, --opt=/path, -I/path, key=/path,
// @/path and file:///path. A relative path counts if it leads outside by ".."
// or by a symlink; where it depends on whether an earlier cd succeeded, a
// redirection or cd counts if it may lead outside, an argument if it must.
// Here-documents and here-strings are data, unless a shell reads them.
func Check(text string, o Options) (Result, error) {
	switch o.Network {
	case "", NetworkAllow, NetworkDeny:
	default:
		return Result{}, fmt.Errorf("%w %q", ErrNetwork, o.Network)
	}
	switch o.Scope {
	case ScopeWorkspace:
	case ScopeLocal:
		if o.Network != NetworkDeny {
			return Result{}, nil
		}
	case ScopeUnrestricted, "":
		return Result{}, nil
	default:
		return Result{}, fmt.Errorf("%w %q", ErrScope, o.Scope)
	}
	c := newChecker(o)
	c.text(text)
	sort.Stable(namedByPos(c.result.Paths))
	sort.Stable(opaqueByPos(c.result.Opaque))
	if c.violation != nil {
		return c.result, c.violation
	}
	return c.result, nil
}

// A generic sort would be linked once for each of the two.
type (
	namedByPos  []Named
	opaqueByPos []Opaque
)

func (l namedByPos) Len() int           { return len(l) }
func (l namedByPos) Less(i, j int) bool { return l[i].Pos < l[j].Pos }
func (l namedByPos) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }

func (l opaqueByPos) Len() int           { return len(l) }
func (l opaqueByPos) Less(i, j int) bool { return l[i].Pos < l[j].Pos }
func (l opaqueByPos) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }

type checker struct {
	Options
	roots     []string
	result    Result
	violation *Violation
	named     map[Named]bool
	opaque    map[Opaque]bool
	resolved  map[string]string
	asked     map[string]variable
	looked    int
	unlooked  bool // some paths count as they stand
	steps     int
	scanning  bool // steps are counted and do not end it
	nested    int
	calls     int
	frames    []*frame
	muted     int // nothing reaches what is being followed
	uncalled  []*function
}

func newChecker(o Options) *checker {
	c := &checker{
		Options:  o,
		named:    map[Named]bool{},
		opaque:   map[Opaque]bool{},
		resolved: map[string]string{},
		asked:    map[string]variable{},
	}
	if c.Dir == "" {
		c.Dir = c.Workspace
	}
	if c.Resolve == nil {
		c.Resolve = resolve
	}
	for _, r := range append([]string{c.Workspace}, o.Roots...) {
		if r != "" {
			c.roots = append(c.roots, r)
		}
	}
	for _, d := range deviceDirs {
		c.roots = append(c.roots, d, c.real(d))
	}
	return c
}

// text checks a whole command string.
func (c *checker) text(text string) {
	if c.Scope == ScopeLocal {
		if word, pos, ok := networkWord(text); ok {
			c.violate(Violation{Kind: Network, Path: word, Pos: pos})
		}
	}
	r := c.parse(text, 0, shellName(c.Shell))
	done := c.walk(r)
	if !done {
		c.muted = 0
		c.unclear(text, 0, "too long to follow")
	}
	if !done || r.err != nil {
		c.scanning = true
		c.tokens(text, -1)
	}
	if c.unlooked {
		c.unclear(text, 0, "too many paths to look up")
	}
}

// walk follows a text, and then the functions that it does not call. It reports
// false when the steps did not suffice.
func (c *checker) walk(r *run) (done bool) {
	defer func() {
		if c.steps > maxSteps {
			_ = recover() // what step said
		}
	}()
	s := c.start()
	r.stmts(r.list, s)
	for len(c.uncalled) > 0 {
		f := c.uncalled[0]
		c.uncalled = c.uncalled[1:]
		if !f.called {
			f.called = true
			c.muted++
			f.run.stmt(f.body, c.lost(s))
			c.muted--
		}
	}
	return true
}

// step counts work. A step is less than a microsecond, so that no text, however
// it repeats and multiplies itself, is followed for long: whatever takes time
// that grows with the text or with what was made of it counts its steps first.
// Beyond maxSteps the whole text is given up.
func (c *checker) step(n int) {
	if c.steps += n; c.steps > maxSteps && !c.scanning {
		panic("too many steps")
	}
}

// read counts the work of looking at n bytes.
func (c *checker) read(n int) { c.step(1 + n/bytesRead) }

// ask asks for a variable of the environment or the home of a user, once.
func (c *checker) ask(whom func(string) (string, bool), sigil, name string) (string, bool) {
	v, ok := c.asked[sigil+name]
	if !ok && whom != nil {
		c.step(perQuestion)
		v.text, v.known = whom(name)
		c.asked[sigil+name] = v
	}
	return v.text, v.known
}

func (c *checker) unclear(text string, pos int, why string) {
	const shown = 120
	if len(text) > shown {
		text = strings.ToValidUTF8(text[:shown], "") + "…"
	}
	o := Opaque{Text: text, Why: why, Pos: pos}
	if !c.opaque[o] && c.muted == 0 {
		c.opaque[o] = true
		c.result.Opaque = append(c.result.Opaque, o)
	}
}

func (c *checker) name(n Named) {
	if !c.named[n] {
		c.named[n] = true
		c.result.Paths = append(c.result.Paths, n)
	}
}

func (c *checker) violate(v Violation) {
	if c.Scope == ScopeLocal && v.Kind != Network {
		return
	}
	v.Workspace = c.Workspace
	if c.violation == nil {
		c.violation = &v
	}
}
