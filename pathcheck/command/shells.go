package command

import (
	"path"
	"slices"
	"strings"
)

// ShellCommand returns the command string of a shell that is started with argv,
// as with `bash -lc 'text'`. ok is false if there is none: an interactive shell,
// a script, commands from the input, or options that the shell refuses.
//
// name is the shell (a path is cut to its last component); if it is empty that
// is taken from argv[0], where a leading "-" of a login shell does not count.
// Known are bash, sh, dash, ash, busybox (with the applet in argv[1]), zsh, ksh93,
// mksh and yash by their own option grammars. The rules are those of the
// manuals, tried against the shells.
func ShellCommand(argv []string, name string) (text string, ok bool) {
	if s := parseShell(argv, name); s.text > 0 {
		return argv[s.text], true
	}
	return "", false
}

// A started says what a shell was told to run.
type started struct {
	text     int  // index of the command string; 0 if there is none
	operand  int  // index of the script; 0 if there is none
	stdin    bool // commands come from the input
	physical bool // cd -P is the default
}

// grammars are how shells read their options.
var grammars = []struct {
	names   []string
	options func([]string) started
}{
	{[]string{"bash", "rbash"}, bashOptions},
	{[]string{"sh"}, shOptions},
	{[]string{"dash"}, dashOptions},
	{[]string{"ash", "hush"}, busyboxOptions},
	{[]string{"zsh", "rzsh"}, zshOptions},
	{[]string{"ksh", "ksh93", "rksh", "rksh93"}, kshOptions},
	{[]string{"mksh", "lksh", "rmksh", "pdksh"}, mkshOptions},
	{[]string{"yash"}, yashOptions},
}

// grammar returns how the shell of a name reads its options, or nil.
func grammar(name string) func([]string) started {
	for _, g := range grammars {
		if slices.Contains(g.names, name) {
			return g.options
		}
	}
	return nil
}

// shellName returns the name of a known shell, or "".
func shellName(name string) string {
	base := strings.TrimPrefix(path.Base(name), "-")
	if grammar(base) != nil {
		return base
	}
	return ""
}

func parseShell(argv []string, name string) started {
	if len(argv) == 0 {
		return started{}
	}
	if name == "" {
		name = argv[0]
	}
	base := strings.TrimPrefix(path.Base(name), "-")
	if base == "busybox" {
		if len(argv) < 2 {
			return started{}
		}
		applet := argv[1]
		if applet == "sh" || applet == "bash" {
			applet = "ash"
		}
		if applet != "ash" && applet != "hush" {
			return started{}
		}
		s := busyboxOptions(argv[1:])
		if s.text > 0 {
			s.text++
		}
		return s
	}
	options := grammar(base)
	if options == nil {
		return started{}
	}
	s := options(argv)
	if s.text >= len(argv) {
		return started{}
	}
	for _, a := range argv[1:max(s.text, 1)] {
		s.physical = s.physical || a == "physical" || strings.HasPrefix(a, "-") && strings.Contains(a, "P")
	}
	return s
}

// shOptions is for a shell of which only the name sh is known: bash's grammar
// takes all that dash's does, and busybox ignores long options that bash refuses.
func shOptions(argv []string) started {
	if s := bashOptions(argv); s.text > 0 || s.stdin {
		return s
	}
	if s := dashOptions(argv); s.text > 0 || s.stdin {
		return s
	}
	return busyboxOptions(argv)
}

// finish makes the result behind the options: argv[i] is the first operand.
func finish(argv []string, i int, c, s bool) started {
	switch {
	case c && i < len(argv):
		return started{text: i}
	case c:
		return started{}
	case s || i >= len(argv):
		return started{stdin: true}
	}
	return started{operand: i}
}

// bashLong are bash's long options, bashLongArg those that take an argument.
var (
	bashLong = []string{
		"debug", "debugger", "dump-po-strings", "dump-strings", "login", "noediting", "noprofile", "norc",
		"posix", "pretty-print", "protected", "restricted", "verbose", "wordexp",
	}
	bashLongArg = []string{"init-file", "rcfile"}
)

const bashShort = "abefhkmnprtuvxBCDEHPTlis"

// bashOptions: long options first, with one dash or two, then clusters of short
// ones, in which -o and -O take the next word each and -c or +c asks for the
// first operand behind all of them.
func bashOptions(argv []string) started {
	i := 1
	for i < len(argv) && strings.HasPrefix(argv[i], "-") {
		opt := strings.TrimPrefix(argv[i][1:], "-")
		if opt == "help" || opt == "version" {
			return started{}
		}
		arg := slices.Contains(bashLongArg, opt)
		if !arg && !slices.Contains(bashLong, opt) {
			break // short options, or one that is refused below
		}
		i++
		if arg {
			if i >= len(argv) {
				return started{}
			}
			i++
		}
	}
	c, s := false, false
	for i < len(argv) && argv[i] != "" && (argv[i][0] == '-' || argv[i][0] == '+') {
		opt := argv[i]
		i++
		if opt == "-" || opt == "--" {
			break
		}
		for _, o := range []byte(opt[1:]) {
			switch {
			case o == 'c':
				c = true
			case o == 'o' || o == 'O':
				if i < len(argv) {
					i++
				}
			case strings.IndexByte(bashShort, o) < 0:
				return started{}
			default:
				s = s || o == 's'
			}
		}
	}
	return finish(argv, i, c, s)
}

// dashOptions: clusters only; -o takes the next word.
func dashOptions(argv []string) started {
	return clusters(argv, "efIimnsvVxbuElpqaC", "o", false)
}

// busyboxOptions: as dash, and long options are accepted without a word.
func busyboxOptions(argv []string) started {
	return clusters(argv, "efIimnsvVxbuElpqaCcPh", "o", true)
}

func clusters(argv []string, flags, withArg string, long bool) started {
	c, s := false, false
	i := 1
	for i < len(argv) && argv[i] != "" && (argv[i][0] == '-' || argv[i][0] == '+') {
		opt := argv[i]
		i++
		if opt == "-" || opt == "--" {
			break
		}
		if long && strings.HasPrefix(opt, "--") {
			continue
		}
		for _, o := range []byte(opt[1:]) {
			switch {
			case o == 'c':
				c = true
			case strings.IndexByte(withArg, o) >= 0:
				if i < len(argv) {
					i++
				}
			case strings.IndexByte(flags, o) < 0:
				return started{}
			default:
				s = s || o == 's'
			}
		}
	}
	return finish(argv, i, c, s)
}

// gluedOptions reads clusters in which -o takes the rest of its word or the next one,
// and --name is an option by its long name.
func gluedOptions(argv []string, withArg string) started {
	c, s := false, false
	i := 1
	for i < len(argv) && argv[i] != "" && (argv[i][0] == '-' || argv[i][0] == '+') {
		opt := argv[i]
		i++
		if opt == "-" || opt == "--" || opt == "+" {
			break
		}
		if strings.HasPrefix(opt, "--") || strings.HasPrefix(opt, "+-") {
			if opt == "--help" || opt == "--version" {
				return started{}
			}
			continue
		}
		for j := 1; j < len(opt); j++ {
			switch o := opt[j]; {
			case o == 'c':
				c = true
			case strings.IndexByte(withArg, o) >= 0:
				if j+1 == len(opt) && i < len(argv) {
					i++
				}
				j = len(opt)
			case o == 's':
				s = true
			}
		}
	}
	return finish(argv, i, c, s)
}

func zshOptions(argv []string) started  { return gluedOptions(argv, "o") }
func mkshOptions(argv []string) started { return gluedOptions(argv, "oT") }

// kshOptions: ksh93 runs an operand that is no file as a command.
func kshOptions(argv []string) started {
	s := gluedOptions(argv, "oR")
	if s.operand > 0 && strings.ContainsAny(argv[s.operand], " \t\n;&|<>()$`") {
		s.text = s.operand
	}
	return s
}

// yashOptions: --rcfile and --profile take the next word.
func yashOptions(argv []string) started {
	var words []string
	var at []int
	for i := 0; i < len(argv); i++ {
		words, at = append(words, argv[i]), append(at, i)
		if argv[i] == "--rcfile" || argv[i] == "--profile" {
			i++
		}
	}
	s := gluedOptions(words, "o")
	if s.text > 0 {
		s.text = at[s.text]
	}
	return s
}
