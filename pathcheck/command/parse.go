package command

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var errDeep = errors.New("nested too deep")

// A run is one parsed text: the command string, or a string nested in it.
type run struct {
	*checker
	src  string
	list []*syntax.Stmt
	err  error
	// base is the offset to report for a nested text, or -1 for the outermost,
	// whose offsets are its own.
	base int
	// dialect is the name of the shell that runs the text.
	dialect string
	// lastpipe says that the last part of a pipeline may run in the shell itself.
	lastpipe bool
}

// simple reports whether the shell lacks some of bash's syntax without saying
// so: what bash expands, it takes as it stands.
func (r *run) simple() bool { return r.dialect == "sh" || r.dialect == "dash" }

// A frame is a function call or a loop that control may leave early.
type frame struct {
	loop   bool
	leave  *state // states at break or return
	again  *state // states at continue
	locals []string
}

func (c *checker) parse(text string, base int, shell string) *run {
	r := &run{checker: c, src: text, base: base, dialect: shell}
	r.lastpipe = strings.HasPrefix(shell, "zsh") || strings.HasPrefix(shell, "ksh") ||
		strings.Contains(text, "lastpipe")
	if c.nested == 0 {
		r.base = -1
	}
	switch {
	case len(text) > MaxLength:
		r.err = errors.New("longer than 64 KiB")
	case strings.IndexByte(text, 0) >= 0:
		r.err = errors.New("holds a NUL byte")
	default:
		for i, lang := range dialects(shell) {
			if c.nested > 0 { // the outermost is read in any case
				c.step(perParser + len(text))
			}
			list, err := parseAs(text, lang)
			if i == 0 || err == nil {
				r.list, r.err = list, err
			}
			if err == nil || errors.Is(err, errDeep) {
				break
			}
		}
	}
	if r.err != nil {
		// A shell runs the lines before the one that it cannot read, so the
		// statements that were read are followed as well.
		c.unclear(text, max(base, 0), "cannot be read: "+r.err.Error())
	}
	return r
}

// dialects returns what to try, the likeliest first.
func dialects(shell string) []syntax.LangVariant {
	switch shell {
	case "zsh":
		return []syntax.LangVariant{syntax.LangZsh, syntax.LangBash}
	case "ksh", "ksh93", "mksh", "lksh":
		return []syntax.LangVariant{syntax.LangMirBSDKorn, syntax.LangBash}
	default:
		return []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX, syntax.LangMirBSDKorn, syntax.LangZsh}
	}
}

// parseAs returns the statements before the first error too. A panic of the
// parser, which reads hostile text, is an error like another.
func parseAs(text string, lang syntax.LangVariant) (list []*syntax.Stmt, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the parser stopped: %v", p)
		}
	}()
	p := syntax.NewParser(syntax.Variant(lang))
	// The parser may hand out more after an error, so the loop must not end early.
	for st, e := range p.StmtsSeq(&guard{rest: text}) {
		if e != nil && err == nil {
			err = e
		}
		if err == nil {
			list = append(list, st)
		}
	}
	return list, err
}

// guard feeds the parser in small bites. The parser is recursive and asks for
// more from the depth that it has reached, so each read can look how deep that
// is, whatever the construct.
type guard struct {
	rest string
}

// bite is how many bytes the parser gets at once. A look at the depth takes time
// that grows with it.
const bite = 256

func (g *guard) Read(p []byte) (int, error) {
	var pc [1]uintptr
	if runtime.Callers(maxFrames, pc[:]) > 0 {
		return 0, errDeep
	}
	if g.rest == "" {
		return 0, io.EOF
	}
	n := copy(p, g.rest[:min(bite, len(g.rest))])
	g.rest = g.rest[n:]
	return n, nil
}

// pos is the offset to report for a node.
func (r *run) pos(n syntax.Node) int {
	if r.base >= 0 {
		return r.base
	}
	return int(n.Pos().Offset())
}

// source is the text of a node.
func (r *run) source(n syntax.Node) string {
	a, b := int(n.Pos().Offset()), int(n.End().Offset())
	if a < 0 || b > len(r.src) || a > b {
		return ""
	}
	return r.src[a:b]
}
