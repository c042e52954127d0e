package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A promised is one line of docs/promises.md.
type promised struct {
	section string
	// promise is a name of the table of guarantees in back quotes, or words of
	// docs/policy.md.
	promise string
	tests   []string
}

// what returns the name that a line has in the table of guarantees, or "".
func (p promised) what() string {
	if m := regexp.MustCompile("^`([a-z-]+)`$").FindStringSubmatch(p.promise); m != nil {
		return m[1]
	}
	return ""
}

// promisesOf reads the tables of docs/promises.md.
func promisesOf(t *testing.T, text string) []promised {
	t.Helper()
	var list []promised
	section := ""
	quoted := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			section = heading
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if !strings.HasPrefix(line, "| ") || section == "" || line == "| promise | held by |" {
			continue
		}
		if len(cells) != 2 {
			t.Errorf("docs/promises.md: not two columns: %s", line)
			continue
		}
		p := promised{section: section, promise: strings.TrimSpace(cells[0])}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			p.tests = append(p.tests, m[1])
		}
		list = append(list, p)
	}
	return list
}

// guaranteed returns the lines of the table of guarantees, as "key what": the
// elements of the variable "promises" in a package below rules.
func guaranteed(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, file := range sources(t, "rules", func(name string) bool { return !strings.HasSuffix(name, "_test.go") }) {
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Names) != 1 || spec.Names[0].Name != "promises" || len(spec.Values) != 1 {
				return true
			}
			table, ok := spec.Values[0].(*ast.CompositeLit)
			if !ok {
				return true
			}
			for _, e := range table.Elts {
				fields := map[string]string{}
				for _, f := range e.(*ast.CompositeLit).Elts {
					if kv, ok := f.(*ast.KeyValueExpr); ok {
						if text, ok := kv.Value.(*ast.BasicLit); ok && text.Kind == token.STRING {
							fields[kv.Key.(*ast.Ident).Name], _ = strconv.Unquote(text.Value)
						}
					}
				}
				list = append(list, fields["key"]+" "+fields["what"])
			}
			return false
		})
	}
	return list
}

// sources are the Go files below a directory of the module.
func sources(t *testing.T, dir string, which func(name string) bool) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if strings.HasSuffix(path, ".go") && which(d.Name()) && !strings.Contains(path, "/testdata/") {
			list = append(list, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A unit is a paragraph or an item of a list of docs/policy.md.
type unit struct{ section, text string }

// units returns what stands in the sections of docs/policy.md that promise
// something: about the text, about paths, and about each key.
func units(text string) []unit {
	var list []unit
	section, words, fenced, promises := "", []string{}, false, false
	end := func() {
		if len(words) > 0 && promises {
			list = append(list, unit{section, plain(strings.Join(words, " "))})
		}
		words = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		heading := strings.TrimLeft(line, "#")
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
			end()
		case fenced:
		case heading != line:
			end()
			section = strings.Trim(heading, " `")
			promises = section == "The text" || strings.HasPrefix(line, "###")
		case line == "" || line[0] == '|':
			end()
		default:
			if strings.HasPrefix(line, "- ") {
				end()
				line = line[len("- "):]
			}
			words = append(words, line)
		}
	}
	end()
	return list
}

// plain takes the links out of Markdown, and joins its lines.
func plain(text string) string {
	text = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(text, "$1")
	return strings.Join(strings.Fields(text), " ")
}

// TestPromises: docs/promises.md has a line for each line of the table of
// guarantees and for each paragraph of the reference that promises something,
// for no other, and each line names tests that run.
func TestPromises(t *testing.T) {
	lines := promisesOf(t, page(t, "docs/promises.md"))
	inCode := guaranteed(t)
	if len(lines) < 100 || len(inCode) < 20 {
		t.Fatalf("%d lines in docs/promises.md, %d in the table of guarantees", len(lines), len(inCode))
	}
	reference := units(page(t, "docs/policy.md"))
	held := make([]bool, len(reference))
	var whats []string
	for _, p := range lines {
		if len(p.tests) == 0 {
			t.Errorf("docs/promises.md: %s: no test holds %q", p.section, p.promise)
		}
		if what := p.what(); what != "" {
			whats = append(whats, p.section+" "+what)
			continue
		}
		found := false
		for i, u := range reference {
			if u.section == p.section && strings.Contains(u.text, p.promise) {
				found, held[i] = true, true
			}
		}
		if !found {
			t.Errorf("docs/promises.md: %s: the reference does not say %q", p.section, p.promise)
		}
	}
	same(t, "docs/promises.md", whats, inCode)
	for i, u := range reference {
		// What ends so leads to a list or to an example, and what begins so comes after one.
		if !held[i] && !strings.HasSuffix(u.text, ":") && !strings.HasPrefix(u.text, "says ") {
			t.Errorf("docs/policy.md: %s: docs/promises.md names no test of %q", u.section, u.text)
		}
	}
	checkTests(t, lines)
}

// checkTests: each test of the lines exists and is not always skipped.
func checkTests(t *testing.T, lines []promised) {
	t.Helper()
	packages := map[string]map[string]bool{}
	for _, p := range lines {
		for _, name := range p.tests {
			pkg, test, ok := cutLast(name, ".")
			if !ok || !strings.HasPrefix(test, "Test") {
				t.Errorf("docs/promises.md: %q is no test", name)
				continue
			}
			if !strings.Contains(pkg, "/") {
				pkg = "tests/integration/" + pkg
			}
			if packages[pkg] == nil {
				packages[pkg] = testsOf(t, pkg)
			}
			switch runs, exists := packages[pkg][test]; {
			case !exists:
				t.Errorf("docs/promises.md: %s: there is no %s in %s", p.section, test, pkg)
			case !runs:
				t.Errorf("docs/promises.md: %s: %s is always skipped", p.section, name)
			}
		}
	}
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// testsOf returns the test functions of a directory, and whether each can run.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, file := range files {
		for _, d := range parse(t, file).Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && len(f.Type.Params.List) == 1 {
				tests[f.Name.Name] = !skips(f.Body)
			}
		}
	}
	return tests
}

// skips reports whether a body skips its test whatever holds: a call of Skip
// that stands under no condition.
func skips(body *ast.BlockStmt) bool {
	return slices.ContainsFunc(body.List, func(s ast.Stmt) bool {
		expr, ok := s.(*ast.ExprStmt)
		if !ok {
			return false
		}
		call, ok := expr.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		return ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, method.Sel.Name)
	})
}

func TestPromisesAreRead(t *testing.T) {
	lines := promisesOf(t, "| not | `yet` |\n## key\n\n| promise | held by |\n|---|---|\n| `what` | `a.TestA`, `b/c.TestB` |\n| `1.0` is | `a.TestA` |\n")
	if len(lines) != 2 || lines[0].what() != "what" || len(lines[0].tests) != 2 || lines[1].what() != "" || lines[1].section != "key" {
		t.Errorf("%+v", lines)
	}
	got := units("# Page\nno\n## The text\n- a\n  [b](c#d)\n- e\n\n## Keys\nno\n### `key`\n\nOne\ntwo.\n```json\n{}\n```\n| x |\n")
	want := []unit{{"The text", "a b"}, {"The text", "e"}, {"key", "One two."}}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	dir := t.TempDir()
	const source = "package p\nfunc TestRuns(t *T) { if x { t.Skip() } }\nfunc TestNever(t *T) { f(); t.Skipf(\"\") }\nfunc Testing() {}\n"
	if err := os.WriteFile(filepath.Join(dir, "x_test.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	if rel, err = filepath.Rel(rel, dir); err != nil {
		t.Fatal(err)
	}
	if tests := testsOf(t, rel); len(tests) != 2 || !tests["TestRuns"] || tests["TestNever"] {
		t.Errorf("%v", tests)
	}
}
