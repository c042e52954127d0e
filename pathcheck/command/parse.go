package command

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// parse reads a text. With an error it returns the statements before it: a shell
// runs the lines before the one that it cannot read. A panic of the parser, which
// reads hostile text, is an error like another.
func (c *checker) parse(text string, pos int) (list []*syntax.Stmt, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the parser stopped: %v", p)
		}
		if err != nil {
			c.unclear(text, pos, "cannot be read: "+err.Error())
		}
	}()
	if len(text) > maxLength || strings.IndexByte(text, 0) >= 0 {
		return nil, errors.New("longer than 64 KiB, or with a NUL byte")
	}
	// The parser may hand out more after an error, so the loop must not end early.
	for st, e := range syntax.NewParser().StmtsSeq(&guard{text}) {
		if err == nil {
			err = e
		}
		if err == nil {
			list = append(list, st)
		}
	}
	return list, err
}

// A guard feeds the parser in small bites. The parser is recursive and asks for
// more from the depth that it has reached, so each read can look how deep that is.
type guard struct{ rest string }

func (g *guard) Read(p []byte) (int, error) {
	const (
		bite      = 256
		maxFrames = 2000 // of the stack: some 150 nested command substitutions
	)
	var pc [1]uintptr
	if runtime.Callers(maxFrames, pc[:]) > 0 {
		return 0, errors.New("nested too deep")
	}
	if g.rest == "" {
		return 0, io.EOF
	}
	n := copy(p, g.rest[:min(bite, len(g.rest))])
	g.rest = g.rest[n:]
	return n, nil
}
