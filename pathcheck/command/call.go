package command

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// call follows a simple command.
func (c *checker) call(call *syntax.CallExpr, s *state) {
	var cmd []word
	for _, a := range call.Args {
		if w := c.expand(a, s); w.text != "" {
			cmd = append(cmd, w)
		}
	}
	during := *s
	for _, a := range call.Assigns {
		c.assign(a, len(cmd) > 0, &during)
	}
	switch {
	case len(cmd) == 0:
		*s = during
	case c.functions[cmd[0].text]:
		c.judge(argument, s, cmd[1:]...)
		c.unclear(cmd[0].text, cmd[0].pos, "a function")
		s.lose()
	default:
		c.program(cmd, s)
	}
}

// program follows a command that is no function.
func (c *checker) program(cmd []word, s *state) {
	c.step(len(cmd))
	name, args := cmd[0], cmd[1:]
	if name.why != "" || strings.Contains(name.text, "/") {
		c.locate(name, program, s)
	}
	base := path.Base(name.text)
	p := rowOf(base)
	switch {
	case name.why != "":
		c.judge(argument, s, args...)
		s.lose()
	case has(shells, base):
		c.shell(cmd, s)
	case has("cd chdir pushd popd", base):
		c.cd(base, args, s)
	case has(". source eval", base):
		c.unclear(name.text, name.pos, "runs a file or a text in this shell")
		s.lose()
	default:
		if p.opaque {
			c.unclear(name.text, name.pos, "what it runs is not followed")
		}
		c.arguments(p, args, s)
	}
}

// arguments follows the words of a program by its row in the table.
func (c *checker) arguments(p *row, args []word, s *state) {
	use, operands := p.use, p.operands
	for _, w := range args {
		if stop, _ := option(p.unless, w.text); stop && p.starts {
			return
		} else if p.starts && !strings.HasPrefix(w.text, "-") {
			break
		} else if stop {
			use = argument
		}
	}
	for i := 0; i < len(args); i++ {
		w, of := args[i], use
		is, next := option(p.data, w.text)
		writes, after := option(p.writes, w.text)
		name, _, assigns := strings.Cut(w.text, "=")
		switch {
		case is:
			of, operands = data, min(operands, p.operands-1)
		case writes:
			of, next = argument, after
		case strings.HasPrefix(w.text, "-"), p.starts && assigns && has(otherVariables, name):
		case p.starts && assigns && syntax.ValidName(name):
			of = argument
		case operands > 0:
			of, operands = data, operands-1
		case p.starts:
			c.program(args[i:], s)
			return
		}
		if c.judge(of, s, w); next && i+1 < len(args) {
			i++
			c.judge(of, s, args[i])
		}
		if p.sets {
			s.set(w.text, "", false)
		}
	}
}

// cd follows a change of directory, which is taken to succeed.
func (c *checker) cd(name string, args []word, s *state) {
	from, to := *s, word{}
	if to.text, _ = c.lookup("HOME", s); len(args) > 0 {
		to = args[0]
	}
	s.dir = ""
	switch {
	case name != "cd" && len(args) == 0 || to.text == "" || to.text[0] == '-' || to.why != "" || len(args) > 1:
		c.unclear(name, to.pos, "the directory is not known")
		return
	case to.text[0] == '/':
		s.dir = path.Clean(to.text)
	case from.dir != "":
		s.dir = path.Clean(pathcheck.Join(from.dir, to.text))
		if climbs(to.text) && pathcheck.Within(c.Workspace, c.real(from.dir)) && !pathcheck.Within(c.Workspace, c.real(s.dir)) {
			c.violate(ScopeWorkspace, leaves) // be it into an allowed root
		}
	}
	c.locate(to, enter, &from)
}

// assign follows one assignment. exported says that programs are given it.
func (c *checker) assign(a *syntax.Assign, exported bool, s *state) {
	if a.Naked && a.Name != nil && exported {
		return
	} else if a.Naked || a.Value == nil || a.Index != nil || a.Append {
		c.children(a, s)
		return
	}
	w, name := c.expand(a.Value, s), a.Name.Value
	s.set(name, w.text, w.why == "")
	if !exported && strings.Contains(w.text, "/") {
		_, exported = c.Lookup(name) // else it counts where it is used
	}
	for rest, more := w.text, exported && !has(otherVariables, name); more; {
		w.text, rest, more = strings.Cut(rest, ":")
		if c.step(len(rest) / 64); strings.HasPrefix(w.text, "/") && !strings.HasPrefix(w.text, "//") {
			c.locate(w, assign, s)
		}
	}
}

// shell follows a shell that is started with arguments.
func (c *checker) shell(cmd []word, s *state) {
	argv := make([]string, len(cmd))
	for i, w := range cmd {
		argv[i] = w.text
	}
	i, ok := ShellCommand(argv, "")
	switch {
	case !ok && len(cmd) > 1 && argv[len(argv)-1][0] != '-': // a script
		return
	case !ok || cmd[i].why != "" || c.nested >= maxNested:
		c.unclear(argv[0], cmd[0].pos, "what the shell runs is not known")
		return
	}
	text, inner, outer := cmd[i], state{dir: s.dir}, c.base
	if s.vars != nil { // they may have been exported
		inner.vars = &variable{}
	}
	c.nested, c.base = c.nested+1, text.pos
	c.step(40 + len(text.text))
	list, err := c.parse(text.text, text.pos)
	c.node(&syntax.Block{Stmts: list}, &inner)
	if c.nested, c.base = c.nested-1, outer; err != nil {
		c.scan(text.text, text.pos)
	}
}

const (
	shells   = "bash rbash sh dash ash hush zsh rzsh ksh ksh93 rksh rksh93 mksh lksh rmksh pdksh yash"
	withWord = "rcfile init-file profile"
	bashLong = "debug debugger login noediting noprofile norc posix pretty-print protected restricted verbose" // one dash will do
)

// ShellCommand returns the index of the command string of a shell that is started
// with argv, as with bash -lc 'text'. ok is false if there is none: an interactive
// shell, a script, commands from the input. Options that it would refuse count, too.
//
// name is the shell, or busybox with the applet in argv[1], without a directory; if
// it is empty that is taken from argv[0].
func ShellCommand(argv []string, name string) (index int, ok bool) {
	if name == "" && len(argv) > 0 {
		name = argv[0]
	}
	name = strings.TrimPrefix(path.Base(name), "-")
	if name == "busybox" && len(argv) > 1 && has("ash hush sh bash", argv[1]) {
		index, ok = ShellCommand(argv[1:], "ash")
		return index + 1, ok
	}
	i, c, short := 1, false, false
	for i < len(argv) && argv[i] != "" && strings.Contains("-+", argv[i][:1]) {
		opt := argv[i]
		i++
		long := strings.TrimPrefix(opt[1:], "-")
		if opt == "-" || opt == "--" {
			break
		}
		if has(withWord, long) && !short {
			i++
			continue
		}
		if short = short || !has(bashLong, long); strings.HasPrefix(opt, "--") || !short {
			continue
		}
		c = c || strings.Contains(opt, "c")
		i += strings.Count(opt, "o") + strings.Count(opt, "O") // a word each
	}
	return i, c && i < len(argv) && has(shells, name)
}
