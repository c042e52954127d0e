package command

import (
	"fmt"
	"strings"
)

// A growth is a text that grows by repeating something.
type growth struct{ name, head, unit, tail string }

// of returns a text of some n bytes.
func (g growth) of(n int) string {
	var b strings.Builder
	b.WriteString(g.head)
	for i := 0; ; i++ {
		unit := strings.ReplaceAll(g.unit, "%", fmt.Sprintf("%05x", i))
		if i > 0 && b.Len()+len(unit)+len(g.tail) > n {
			break
		}
		b.WriteString(unit)
	}
	b.WriteString(g.tail)
	return b.String()
}

var (
	loops  = strings.Repeat("for i in a b c d; do ", 40)
	done   = strings.Repeat("; done", 40)
	halves = ": " + strings.Repeat("{1,2}", 6)
)

// growths are what takes a reader or an expander of shell text long, if anything
// does. A % in a unit is another number each time.
var growths = []growth{
	// Braces.
	{"brace", ": ", "{", ""},
	{"brace with a comma", ": ", "{a,", ""},
	{"brace with a range", ": ", "a{1..", ""},
	{"brace with two ranges", ": ", "{1..2..", ""},
	{"brace in a brace", ": ", "{a,{b}", ""},
	{"braces, closed", ": ", "{a,", strings.Repeat("}", 1000)},
	{"braces of one", ": ", "{x}", ""},
	{"empty braces", ": ", "{}", ""},
	{"closing brace", ": {a,b", "}", ""},
	{"commas in a brace", ": {", "a,", "}"},
	{"commas", ": {a", ",b", ""},
	{"products", ": ", "{a,b}", ""},
	{"products behind commas", ": ", "{a,b},", ""},
	{"ranges", ": ", "{1..99999}", ""},
	{"a long range", ": {1..", "9", "}"},
	{"words of products", "", ": {a,b}{a,b}{a,b}{a,b}{a,b}{a,b};", ""},
	{"alternatives and variables", halves, "$a", ""},
	{"alternatives and quotes", halves, "''", ""},
	{"alternatives and a path", halves, "/usr/..", ""},
	{"open braces and variables", ": " + strings.Repeat("{a,", 60), "$a", ""},
	{"braces in loops", loops + ": {", "a,", "}" + done},
	{"products in loops", loops + ": {1,2}{3,4}{5,6}", "x", done},

	// Quotes and nesting.
	{"double quote", ": ", `"`, ""},
	{"single quote", ": ", `'`, ""},
	{"quoted letters", ": ", `'a'"b"`, ""},
	{"ansi-c quote", ": ", `$'`, ""},
	{"ansi-c quote in loops", loops + ": $'", `\x41`, "'" + done},
	{"localized quote", ": ", `$"`, ""},
	{"quotes in substitutions", ": ", `"$(`, ""},
	{"quotes in expansions", ": ", `"${a:-`, ""},
	{"quotes in backquotes", ": ", "\"`", ""},
	{"backquote", ": ", "`", ""},
	{"escaped backquote", ": `", "\\`", ""},
	{"backslash", ": ", `\`, ""},
	{"backslashes in loops", loops + ": ", `\a`, done},
	{"continued lines", ":", " \\\n", ""},
	{"substitution", ": ", "$(", ""},
	{"substitutions", ": ", "$(a)", ""},
	{"subshell", "", "(", ""},
	{"subshells", "", "(a);", ""},
	{"group", "", "{ ", ""},
	{"process substitution", ": ", "<(", ""},
	{"process substitutions", ": ", "<(a) ", ""},
	{"expansion", ": ", "${a:-", ""},
	{"expansions", ": ", "${a:-b}", ""},
	{"replacement", ": ", "${a/", ""},
	{"index", ": ", "${a[", ""},
	{"indirection", ": ", "${!a}", ""},
	{"variables", ": ", "$a", ""},
	{"many variables", ": ", "$v%", ""},
	{"variables in loops", loops + ": ", "$a", done},

	// Lists, pipes and compounds.
	{"semicolon", "", "a;", ""},
	{"newline", "", "a\n", ""},
	{"background", "", "a&", ""},
	{"and", "a", "&&a", ""},
	{"or", "a", "||a", ""},
	{"pipe", "a", "|a", ""},
	{"pipe at the end", "", "a|", ""},
	{"bang", "", "! ", "a"},
	{"case", "", "case a in ", ""},
	{"cases", "case a in ", "a) b;; ", "esac"},
	{"fallthrough", "case a in ", "a) v%=1;;& ", "esac"},
	{"patterns", "case a in a", "|a", ") ;; esac"},
	{"if", "", "if ", ""},
	{"if inside if", "", "if a; then ", ""},
	{"elif", "if a; then b; ", "elif a; then b; ", "fi"},
	{"while", "", "while ", ""},
	{"while inside while", "", "while a; do ", ""},
	{"for", "", "for a in b; do ", ""},
	{"loops", loops, ":;", ":" + done},
	{"while loops", strings.Repeat("while a; do ", 40), "x;", "x" + done},
	{"words in loops", loops + ": ", "abcdefgh", done},
	{"single quotes in loops", loops + ": '", "abcdefgh", "'" + done},
	{"break", strings.Repeat("while a; do ", 100), "break 9 $X;", "a" + strings.Repeat("; done", 100)},
	{"test", "[[ ", "(", ""},
	{"tests", "", "[[ a ]];", ""},
	{"negated test", "[[ ", "! ", "a ]]"},
	{"joined tests", "[[ a", " && a", " ]]"},
	{"expression of a test", "[[ a =~ ", "(a|", ""},
	{"coprocess", "", "coproc ", ""},
	{"time", "", "time ", ""},

	// Here-documents and redirections.
	{"here-document", "", "cat <<a\n", ""},
	{"here-documents", "cat ", "<<a ", "\na\n"},
	{"here-documents, closed", "", "cat <<a\na\n", ""},
	{"quoted here-documents", "", "cat <<'a'\n", ""},
	{"here-document in a here-document", "", "cat <<a\n$(", ""},
	{"lines of a here-document", "cat <<a\n", "\n", "a\n"},
	{"substitutions in a here-document", "cat <<a\n", "$(b)", "\na\n"},
	{"here-document in loops", loops + "cat <<a\n", "abcdefg\n", "a\n" + strings.Repeat("done;", 40)},
	{"script in a here-document in loops", loops + "sh <<a\n", "b;c\n", "a\n" + strings.Repeat("done;", 40)},
	{"here-string", ": ", "<<<a ", ""},
	{"redirection", ": ", ">a ", ""},
	{"duplication", ": ", "2>&1 ", ""},

	// Arithmetic.
	{"arithmetic", ": ", "$((", ""},
	{"arithmetic command", "", "((", ""},
	{"parentheses", ": $((", "(", ""},
	{"minus", "((", "- ", "1))"},
	{"sum", "((1", "+1", "))"},
	{"power", "((1", "**1", "))"},
	{"comma", "((a", ",a=1", "))"},
	{"condition", "((a", "?a:a", "))"},
	{"array index", "((", "a[", "))"},
	{"old arithmetic", ": ", "$[", ""},
	{"let", "", "let a=1;", ""},

	// Variables.
	{"assignment", "", "a=", "b"},
	{"assignments", "", "a=b ", ""},
	{"many assignments", "", "v%=1;", ""},
	{"doubling", "a=xx;", "a=$a$a;", ""},
	{"appending", "a=xx;", "a+=$a;", ""},
	{"doubling in a word", "a=xx;", "a=$a$a ", ""},
	{"a long value", "a=" + strings.Repeat("x", 5000) + ";: ", `"$a" `, ""},
	{"a list", "a=" + strings.Repeat("/w/x:", 1000) + ";", "b=$a;", ""},
	{"array", "", "a=(", ""},
	{"arrays", "", "a=(b);", ""},
	{"elements", "a=(", "b ", ")"},
	{"element", "", "a[1]=2 ", ""},
	{"index of an element", "", "a[", ""},
	{"declare", "", "declare a=b;", ""},
	{"many variables, then shells", "", "v%=1;sh -c a;", ""},
	{"unset", "", "unset a;", ""},
	{"read", "", "read v%;", ""},

	// Functions and texts that run.
	{"function in a function", "", "f() { ", ""},
	{"functions", "", "f%() { :; };", ""},
	{"functions, then what is not known", "", "f%() { :; };$X;", ""},
	{"one function, many bodies", "", "if a; then f() { b; }; fi;", "f"},
	{"calls", "f() { f; f; f; };", "f;", ""},
	{"calls of each other", "f() { g; g; }; g() { f; f; };", "f;g;", ""},
	{"calls with doubled arguments", "f() { f $1$1; f $1$1; };", "f abc;", ""},
	{"calls with many arguments", "f() { if a; then b=1; fi; if a; then c=1; fi; };f ", "a ", ";f;f"},
	{"locals", "f() { ", "local a=b;", "};f;f;f"},
	{"eval", "", "eval ", "a"},
	{"evals", "", "eval a;", ""},
	{"eval in eval", "", "eval '", ""},
	{"eval in loops", loops + "eval '", "x;", "'" + done},
	{"eval of what cannot be read", loops + "eval '(", "x;", "'" + done},
	{"trap", "", "trap a EXIT;", ""},
	{"trap of calls", "f() { :; };", "trap 'f;f' EXIT;", ""},
	{"shells", "", "sh -c a;", ""},
	{"shell in a shell", "", "sh -c '", ""},
	{"command", "", "command ", "a"},
	{"exec", "", "exec ", "a"},
	{"env", "", "env ", "a"},
	{"find", "", "find -exec sh -c ", "a"},
	{"alias", "", "alias a=b;", ""},
	{"source", "", ". a;", ""},
	{"set", "", "set -- a;", ""},
	{"not known", "", "$X;", ""},

	// Directories and paths.
	{"cd", "", "cd a;", ""},
	{"cd and cd", "cd a", "&&cd a", ""},
	{"cd and cd up", "cd a", "&&cd a/..", ""},
	{"cd of its own", "", "cd v%;", ""},
	{"cd back", "", "cd -;", ""},
	{"physical cd", "cd -P a", "&&cd -P a/../a", ""},
	{"pushd", "", "pushd a;", ""},
	{"popd", "", "popd;", ""},
	{"tilde", ": ", "~", ""},
	{"tildes", ": ", "~ ", ""},
	{"tildes of users", ": ", "~u% ", ""},
	{"tildes in a list", ": a=", ":~", ""},
	{"path", ": ", "/a", ""},
	{"path up", ": ", "../", "x"},
	{"path down and up", ": ", "/usr/..", "/usr"},
	{"paths", ": ", "/v% ", ""},
	{"paths up", ": ", "../v% ", ""},
	{"paths in loops", loops + ": ", "/usr/..", "/usr" + done},
	{"paths down and up in loops", loops + ": ", "x/../", "x" + done},
	{"keys", ": ", "a=", "/x"},
	{"keys that climb", ": ", "a=", "../x"},
	{"equals", ": ", "=", ""},
	{"commas in an option", ": -x", ",/", ""},
	{"at signs", ": ", "@", "/x"},
	{"files", ": ", "file:", "/x"},

	// Patterns.
	{"asterisk", ": ", "*", ""},
	{"question mark", ": ", "?", ""},
	{"bracket", ": ", "[", ""},
	{"closing bracket", ": ", "[]", ""},
	{"class", ": ", "[[:", ""},
	{"brackets in loops", loops + ": ", "[", done},
	{"extended pattern", ": ", "@(", ""},
	{"extended patterns", ": ", "@(a|b)", ""},
	{"alternatives of a pattern", ": @(a", "|b", ")"},
	{"negated pattern", ": ", "!(", ""},
	{"comment", "", "#", ""},
	{"comments", "", "#\n", ""},
}
