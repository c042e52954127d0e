package command

import "mvdan.cc/sh/v3/syntax"

// A state is what is known of the shell at one point of the text.
type state struct {
	dir  string // "" if not known
	vars *variable
}

// A variable is an assignment, in front of those before it. One without a name
// says that no value from before holds, nor one of the environment.
type variable struct {
	name, text string
	known      bool
	before     *variable
}

func (s *state) set(name, text string, known bool) {
	s.vars = &variable{name, text, known, s.vars}
}

// lose forgets everything, as after a command that is not known.
func (s *state) lose() { *s = state{vars: &variable{before: s.vars}} }

// merge makes unknown in s what a branch, which may not have been taken, changed
// since base.
func (c *checker) merge(s *state, base, branch state) {
	if branch.dir != base.dir {
		s.dir = ""
	}
	for v := branch.vars; v != base.vars; v = v.before {
		c.step(1)
		s.set(v.name, "", false)
	}
}

// walk reports false when the steps did not suffice.
func (c *checker) walk(list []*syntax.Stmt) (done bool) {
	defer func() {
		if c.steps > maxSteps {
			_ = recover() // of step
			c.unclear("", 0, "too long to follow")
		}
	}()
	c.node(&syntax.Block{Stmts: list}, &state{dir: c.Dir})
	return true
}

// node follows what runs in a node, and changes s to what is known behind it.
func (c *checker) node(n syntax.Node, s *state) {
	c.step(1)
	end := *s
	switch n := n.(type) {
	case *syntax.Stmt:
		if n.Background || n.Coprocess || n.Disown {
			s = &end
		}
		for _, rd := range n.Redirs {
			c.redirect(rd, s)
		}
		if n.Cmd != nil {
			c.node(n.Cmd, s)
		}
	case *syntax.CallExpr:
		c.call(n, s)
	case *syntax.BinaryCmd:
		c.binary(n, s)
	case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst:
		c.children(n, &end)
	case *syntax.WhileClause, *syntax.ForClause, *syntax.CaseItem:
		c.children(n, &end)
		c.merge(s, *s, end)
	case *syntax.IfClause:
		for ; n != nil; n = n.Else {
			end = *s
			c.node(&syntax.Block{Stmts: n.Cond}, &end)
			c.node(&syntax.Block{Stmts: n.Then}, &end)
			c.merge(s, *s, end)
		}
	case *syntax.FuncDecl: // followed here, with nothing known, and opaque where it is called
		c.node(n.Body, &state{vars: &variable{}})
		if n.Name != nil {
			c.functions[n.Name.Value] = true
		}
	case *syntax.DeclClause:
		for _, a := range n.Args {
			c.assign(a, n.Variant.Value == "export", s)
		}
	case *syntax.Lit: // what is not evaluated may assign: ((x=1)), ${x:=1}, for x
		if syntax.ValidName(n.Value) {
			s.set(n.Value, "", false)
		}
	default:
		c.children(n, s)
	}
}

func (c *checker) children(n syntax.Node, s *state) {
	syntax.Walk(n, func(child syntax.Node) bool {
		if child != n && child != nil {
			c.node(child, s)
		}
		return child == n
	})
}

// binary follows x && y, x || y and x | y.
func (c *checker) binary(n *syntax.BinaryCmd, s *state) {
	base := *s
	switch n.Op {
	case syntax.AndStmt:
		c.node(n.X, s)
		base = *s
	case syntax.OrStmt: // if x failed, its cd may have, or what came behind it
		c.node(n.X, s)
		c.merge(&base, base, *s)
	default: // each side of a pipe has a shell of its own, the last one perhaps not
		c.node(n.X, &state{s.dir, s.vars})
	}
	end := base
	c.node(n.Y, &end)
	if c.merge(s, base, end); n.Op == syntax.AndStmt {
		s.dir = end.dir
	}
}
