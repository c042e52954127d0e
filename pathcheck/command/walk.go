package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// An outcome is the state after a command that succeeded and after one that
// failed; nil where that cannot be, as after exit.
type outcome struct{ ok, fail *state }

func both(s *state) outcome { return outcome{s, s} }

func (o outcome) not() outcome { return outcome{o.fail, o.ok} }

// after is the state behind a command whose status nobody looks at.
func (r *run) after(o outcome) *state { return r.join(o.ok, o.fail) }

// either joins two outcomes.
func (r *run) either(a, b outcome) outcome {
	return outcome{r.join(a.ok, b.ok), r.join(a.fail, b.fail)}
}

// stmts follows a list. With a nil state, which nothing reaches, the words are
// still looked at, from an unknown state, and the outcome stays nil.
func (r *run) stmts(list []*syntax.Stmt, s *state) outcome {
	out := outcome{ok: s}
	for _, st := range list {
		out = r.stmt(st, r.after(out))
	}
	return out
}

// inSubshell follows statements whose state nobody sees afterwards.
func (r *run) inSubshell(list []*syntax.Stmt, s *state) {
	r.stmts(list, s)
}

func (r *run) stmt(st *syntax.Stmt, s *state) outcome {
	if s == nil {
		r.muted++
		r.stmt(st, r.lost(&state{}))
		r.muted--
		return outcome{}
	}
	r.step(1)
	if st.Background || st.Coprocess || st.Disown {
		r.command(st, s)
		return outcome{ok: s}
	}
	out := r.command(st, s)
	if st.Negated {
		out = out.not()
	}
	return out
}

func (r *run) command(st *syntax.Stmt, s *state) outcome {
	if call, ok := st.Cmd.(*syntax.CallExpr); ok {
		return r.call(call, st.Redirs, s)
	}
	s = r.redirs(st.Redirs, s)
	out := r.compound(st.Cmd, s)
	if len(st.Redirs) > 0 {
		out.fail = r.join(out.fail, s) // a redirection may fail
	}
	return out
}

func (r *run) compound(cmd syntax.Command, s *state) outcome {
	switch cmd := cmd.(type) {
	case nil:
		return both(s) // redirections alone
	case *syntax.BinaryCmd:
		return r.binary(cmd, s)
	case *syntax.Block:
		return r.stmts(cmd.Stmts, s)
	case *syntax.Subshell:
		r.inSubshell(cmd.Stmts, s)
		return both(s)
	case *syntax.IfClause:
		return r.ifClause(cmd, s)
	case *syntax.WhileClause:
		return r.while(cmd, s)
	case *syntax.ForClause:
		return r.forClause(cmd, s)
	case *syntax.CaseClause:
		return r.caseClause(cmd, s)
	case *syntax.FuncDecl:
		return r.funcDecl(cmd, s)
	case *syntax.TimeClause:
		if cmd.Stmt == nil {
			return both(s)
		}
		return r.stmt(cmd.Stmt, s)
	case *syntax.CoprocClause:
		if cmd.Stmt != nil {
			r.stmt(cmd.Stmt, s)
		}
		return both(r.forget(s, "COPROC"))
	case *syntax.ArithmCmd:
		return both(r.arithmetic(cmd.X, s))
	case *syntax.LetClause:
		for _, x := range cmd.Exprs {
			s = r.arithmetic(x, s)
		}
		return both(s)
	case *syntax.TestClause:
		return both(r.test(cmd.X, s))
	case *syntax.DeclClause:
		return both(r.declare(cmd, s))
	}
	r.unclear(r.source(cmd), r.pos(cmd), "construct is not followed")
	return both(r.lost(s))
}

// binary follows a && b || c | d. The parser nests them to the left, as deep as
// the text is long, so that side is unrolled.
func (r *run) binary(cmd *syntax.BinaryCmd, s *state) outcome {
	var spine []*syntax.BinaryCmd
	first := cmd.X
	for spine = append(spine, cmd); ; {
		next, ok := first.Cmd.(*syntax.BinaryCmd)
		if !ok || first.Negated || len(first.Redirs) > 0 || first.Background {
			break
		}
		spine = append(spine, next)
		first = next.X
	}
	out := outcome{}
	start := func() {
		if spine[len(spine)-1].Op == syntax.Pipe || spine[len(spine)-1].Op == syntax.PipeAll {
			r.stmt(first, s)
			out = both(s)
			return
		}
		out = r.stmt(first, s)
	}
	start()
	for i := len(spine) - 1; i >= 0; i-- {
		b := spine[i]
		switch b.Op {
		case syntax.AndStmt:
			y := r.stmt(b.Y, out.ok)
			out = outcome{y.ok, r.join(out.fail, y.fail)}
		case syntax.OrStmt:
			y := r.stmt(b.Y, out.fail)
			out = outcome{r.join(out.ok, y.ok), y.fail}
		default: // each side of a pipe has a shell of its own
			y := r.stmt(b.Y, s)
			out = both(s)
			if r.lastpipe {
				out = r.either(out, both(r.after(y)))
			}
		}
	}
	return out
}

func (r *run) ifClause(c *syntax.IfClause, s *state) outcome {
	if len(c.Cond) == 0 { // else
		return r.stmts(c.Then, s)
	}
	cond := r.stmts(c.Cond, s)
	out := r.stmts(c.Then, cond.ok)
	if c.Else == nil {
		return r.either(out, outcome{ok: cond.fail})
	}
	return r.either(out, r.ifClause(c.Else, cond.fail))
}

// rounds is how often a loop is followed before everything is given up.
const rounds = 5

// loop follows once, which takes the state at the loop's head and returns that
// at its end and that in which the loop is left, until the head's state settles.
func (r *run) loop(s *state, once func(*state) (again, leave *state)) outcome {
	f := &frame{loop: true}
	r.frames = append(r.frames, f)
	defer func() { r.frames = r.frames[:len(r.frames)-1] }()
	head := s
	for i := 0; ; i++ {
		again, leave := once(head)
		next := r.join(head, r.join(again, f.again))
		r.step(head.size())
		if i > rounds+2 {
			r.unclear("", 0, "a loop that does not settle")
			return both(r.lost(head))
		}
		if next.equal(head) {
			return both(r.join(leave, f.leave))
		}
		if i == rounds-1 {
			next = r.lost(next)
		}
		head = next
	}
}

func (r *run) while(c *syntax.WhileClause, s *state) outcome {
	return r.loop(s, func(head *state) (again, leave *state) {
		cond := r.stmts(c.Cond, head)
		if c.Until {
			cond = cond.not()
		}
		return r.after(r.stmts(c.Do, cond.ok)), cond.fail
	})
}

func (r *run) forClause(c *syntax.ForClause, s *state) outcome {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		style := c.Loop.(*syntax.CStyleLoop)
		s = r.arithmetic(style.Init, s)
		return r.loop(s, func(head *state) (again, leave *state) {
			head = r.arithmetic(style.Cond, head)
			return r.arithmetic(style.Post, r.after(r.stmts(c.Do, head))), head
		})
	}
	items, s := r.words(iter.Items, s)
	known := iter.InPos.IsValid() && !c.Select && len(items) <= 16
	for _, f := range items {
		r.judge(f, s, Argument)
		known = known && !f.partly()
	}
	name := iter.Name.Value
	if !known {
		return r.loop(s, func(head *state) (again, leave *state) {
			return r.after(r.stmts(c.Do, r.forget(head, name))), head
		})
	}
	f := &frame{loop: true}
	r.frames = append(r.frames, f)
	defer func() { r.frames = r.frames[:len(r.frames)-1] }()
	cur := s
	for _, it := range items {
		if cur == nil {
			break
		}
		f.again = nil
		end := r.after(r.stmts(c.Do, r.set(cur, name, variable{text: it.text, known: true})))
		cur = r.join(end, f.again)
	}
	return both(r.join(cur, f.leave))
}

func (r *run) caseClause(c *syntax.CaseClause, s *state) outcome {
	_, s = r.value(c.Word, s, false)
	out := outcome{}
	none := s
	var through *state
	for _, it := range c.Items {
		r.step(1)
		for _, p := range it.Patterns {
			_, s = r.value(p, s, false)
			if p.Lit() == "*" {
				none = nil
			}
		}
		arm := r.stmts(it.Stmts, r.join(s, through))
		through = nil
		if it.Op == syntax.Fallthrough || it.Op == syntax.Resume || it.Op == syntax.ResumeKorn {
			through = r.after(arm)
		}
		out = r.either(out, arm)
	}
	return r.either(out, outcome{ok: none})
}

func (r *run) funcDecl(d *syntax.FuncDecl, s *state) outcome {
	f := &function{run: r, body: d.Body}
	r.uncalled = append(r.uncalled, f)
	names := d.Names
	if d.Name != nil {
		names = append(names, d.Name)
	}
	for _, n := range names {
		s = r.bind(s, n.Value, binding{bodies: []*function{f}, always: true})
	}
	return both(s)
}

// arithmetic follows an arithmetic expression. Whatever it computes is a
// number; what it assigns is not known afterwards.
func (r *run) arithmetic(x syntax.ArithmExpr, s *state) *state {
	r.step(1)
	if x == nil || s == nil {
		return s
	}
	target := func(x syntax.ArithmExpr) {
		if w, ok := x.(*syntax.Word); ok {
			if name := w.Lit(); syntax.ValidName(name) {
				s = r.forget(s, name)
			}
		}
	}
	switch x := x.(type) {
	case *syntax.BinaryArithm:
		s = r.arithmetic(x.X, s)
		s = r.arithmetic(x.Y, s)
		switch x.Op {
		case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn,
			syntax.RemAssgn, syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn,
			syntax.ShrAssgn, syntax.AndBoolAssgn, syntax.OrBoolAssgn, syntax.XorBoolAssgn, syntax.PowAssgn:
			target(x.X)
		}
	case *syntax.UnaryArithm:
		s = r.arithmetic(x.X, s)
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			target(x.X)
		}
	case *syntax.ParenArithm:
		s = r.arithmetic(x.X, s)
	case *syntax.FlagsArithm:
		s = r.arithmetic(x.X, s)
	case *syntax.Word:
		var f field
		f, s = r.value(x, s, false)
		// A variable's value is an expression again, and may run commands in
		// an index.
		v := f.text
		if val, ok := s.vars[v]; ok && val.known {
			v = val.text
		}
		if strings.ContainsAny(v, "$`=[") {
			r.unclear(f.src, f.pos, "arithmetic evaluates text")
			s = r.forgetAll(s)
		}
	}
	return s
}

// test follows [[ … ]]. The operands of its file operators are read.
func (r *run) test(x syntax.TestExpr, s *state) *state {
	r.step(1)
	switch x := x.(type) {
	case *syntax.BinaryTest:
		s = r.test(x.X, s)
		s = r.test(x.Y, s)
		switch x.Op {
		case syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
			s = r.testFile(x.X, s)
			s = r.testFile(x.Y, s)
		}
	case *syntax.UnaryTest:
		s = r.test(x.X, s)
		switch x.Op {
		case syntax.TsExists, syntax.TsRegFile, syntax.TsDirect, syntax.TsCharSp, syntax.TsBlckSp,
			syntax.TsNmPipe, syntax.TsSocket, syntax.TsSmbLink, syntax.TsSticky, syntax.TsGIDSet,
			syntax.TsUIDSet, syntax.TsGrpOwn, syntax.TsUsrOwn, syntax.TsModif, syntax.TsRead,
			syntax.TsWrite, syntax.TsExec, syntax.TsNoEmpty:
			s = r.testFile(x.X, s)
		}
	case *syntax.ParenTest:
		s = r.test(x.X, s)
	case *syntax.Word:
		_, s = r.value(x, s, false)
	}
	return s
}

func (r *run) testFile(x syntax.TestExpr, s *state) *state {
	if w, ok := x.(*syntax.Word); ok {
		var f field
		f, s = r.value(w, s, false)
		r.judge(f, s, Argument)
	}
	return s
}
