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
	loops = strings.Repeat("for i in a b c d; do ", 40)
	done  = strings.Repeat("; done", 40)
)

// growths are what takes a reader or an expander of shell text long, if anything
// does. A % in a unit is another number each time.
var growths = []growth{
	// Braces.
	{"brace", ": ", "{", ""},
	{"brace with a comma", ": ", "{a,", ""},
	{"brace with a range", ": ", "a{1..", ""},
	{"braces, closed", ": ", "{a,", strings.Repeat("}", 1000)},
	{"commas in a brace", ": {", "a,", "}"},
	{"products", ": ", "{a,b}", ""},
	{"ranges", ": ", "{1..99999}", ""},

	// Quotes and nesting.
	{"double quote", ": ", `"`, ""},
	{"single quote", ": ", `'`, ""},
	{"ansi-c quote", ": ", `$'`, ""},
	{"quotes in substitutions", ": ", `"$(`, ""},
	{"backquote", ": ", "`", ""},
	{"escaped backquote", ": `", "\\`", ""},
	{"backslash", ": ", `\`, ""},
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
	{"variables", ": ", "$a", ""},
	{"many variables", ": ", "$v%", ""},
	{"variables in loops", loops + ": ", "$a", done},

	// Lists, pipes and compounds.
	{"semicolon", "", "a;", ""},
	{"and", "a", "&&a", ""},
	{"or", "a", "||a", ""},
	{"pipe", "a", "|a", ""},
	{"bang", "", "! ", "a"},
	{"case", "", "case a in ", ""},
	{"cases", "case a in ", "a) b;; ", "esac"},
	{"fallthrough", "case a in ", "a) v%=1;;& ", "esac"},
	{"if", "", "if ", ""},
	{"if inside if", "", "if a; then ", ""},
	{"while", "", "while ", ""},
	{"for", "", "for a in b; do ", ""},
	{"loops", loops, ":;", ":" + done},
	{"while loops", strings.Repeat("while a; do ", 40), "x;", "x" + done},
	{"words in loops", loops + ": ", "abcdefgh", done},
	{"test", "[[ ", "(", ""},
	{"tests", "", "[[ a ]];", ""},
	{"joined tests", "[[ a", " && a", " ]]"},
	{"expression of a test", "[[ a =~ ", "(a|", ""},

	// Here-documents and redirections.
	{"here-document", "", "cat <<a\n", ""},
	{"here-documents", "cat ", "<<a ", "\na\n"},
	{"here-documents, closed", "", "cat <<a\na\n", ""},
	{"substitutions in a here-document", "cat <<a\n", "$(b)", "\na\n"},
	{"here-document in loops", loops + "cat <<a\n", "abcdefg\n", "a\n" + strings.Repeat("done;", 40)},
	{"here-string", ": ", "<<<a ", ""},
	{"duplication", ": ", "2>&1 ", ""},

	// Arithmetic.
	{"arithmetic", ": ", "$((", ""},
	{"arithmetic command", "", "((", ""},
	{"minus", "((", "- ", "1))"},
	{"sum", "((1", "+1", "))"},
	{"power", "((1", "**1", "))"},
	{"array index", "((", "a[", "))"},

	// Variables.
	{"assignment", "", "a=", "b"},
	{"assignments", "", "a=b ", ""},
	{"many assignments", "", "v%=1;", ""},
	{"doubling", "a=xx;", "a=$a$a;", ""},
	{"a long value", "a=" + strings.Repeat("x", 5000) + ";: ", `"$a" `, ""},
	{"a list", "a=" + strings.Repeat("/w/x:", 1000) + ";", "b=$a;", ""},
	{"array", "", "a=(", ""},
	{"elements", "a=(", "b ", ")"},
	{"declare", "", "declare a=b;", ""},
	{"read", "", "read v%;", ""},

	// Functions and texts that run.
	{"functions", "", "f%() { :; };", ""},
	{"calls", "f() { f; f; f; };", "f;", ""},
	{"calls of each other", "f() { g; g; }; g() { f; f; };", "f;g;", ""},
	{"eval", "", "eval ", "a"},
	{"evals", "", "eval a;", ""},
	{"shells", "", "sh -c a;", ""},
	{"shell in a shell", "", "sh -c '", ""},
	{"command", "", "command ", "a"},
	{"env", "", "env ", "a"},

	// Directories and paths.
	{"cd", "", "cd a;", ""},
	{"cd and cd", "cd a", "&&cd a", ""},
	{"cd and cd up", "cd a", "&&cd a/..", ""},
	{"tilde", ": ", "~", ""},
	{"tildes", ": ", "~ ", ""},
	{"path", ": ", "/a", ""},
	{"path up", ": ", "../", "x"},
	{"path down and up", ": ", "/usr/..", "/usr"},
	{"paths", ": ", "/v% ", ""},
	{"paths up", ": ", "../v% ", ""},
	{"keys", ": ", "a=", "/x"},

	// Patterns.
	{"asterisk", ": ", "*", ""},
	{"bracket", ": ", "[", ""},
	{"extended patterns", ": ", "@(a|b)", ""},
	{"alternatives of a pattern", ": @(a", "|b", ")"},
	{"comments", "", "#\n", ""},
}
