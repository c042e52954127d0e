package layout

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
)

// page returns a file of the module as text.
func page(t *testing.T, name string) string {
	t.Helper()
	return string(read(t, filepath.Join(root, name)))
}

// goFiles returns the Go files of a package and of those below it.
func goFiles(t *testing.T, tree string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(root, tree), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// tableKeys returns what stands in back quotes in the first column of the
// tables of a page.
func tableKeys(text string) []string {
	var keys []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(text, -1) {
		keys = append(keys, m[1])
	}
	return keys
}

// TestReportKeys: the page has a line for each key that a report can hold, and
// for no other.
func TestReportKeys(t *testing.T) {
	_, rest, ok := strings.Cut(page(t, "docs/report.md"), "\n## Keys\n")
	table, _, ok2 := strings.Cut(rest, "\nKeys with nothing to say")
	if !ok || !ok2 {
		t.Fatal("docs/report.md has no section about keys")
	}
	documented := tableKeys(table)
	var keys []string
	for f := range reflect.TypeFor[report.Report]().Fields() {
		if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() {
			keys = append(keys, key)
		}
	}
	same(t, "docs/report.md", documented, keys)
}

// TestReportExample: a report in the page is one that the shim could write.
func TestReportExample(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```json report\n(.*?)```").FindAllStringSubmatch(page(t, "docs/report.md"), -1)
	if len(blocks) == 0 {
		t.Fatal("no example found")
	}
	for _, b := range blocks {
		dec := json.NewDecoder(strings.NewReader(b[1]))
		dec.DisallowUnknownFields()
		var r report.Report
		if err := dec.Decode(&r); err != nil {
			t.Errorf("%v in\n%s", err, b[1])
		}
	}
}

// TestReportWhat: the page explains every value of "what" that the code has.
func TestReportWhat(t *testing.T) {
	_, table, ok := strings.Cut(page(t, "docs/report.md"), "\n| `what` | meaning |\n")
	if !ok {
		t.Fatal("docs/report.md has no table of what")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	var values []string
	// In package rules the table of promises has it in lower case; in package
	// shim that is the field of something else.
	for tree, pattern := range map[string]string{
		"rules": `\b[wW]hat:\s+"([a-z-]+)"`,
		"shim":  `\bWhat:\s+"([a-z-]+)"`,
	} {
		for _, file := range goFiles(t, tree) {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(read(t, file)), -1) {
				values = append(values, m[1])
			}
		}
	}
	if !slices.Contains(values, "hidden") || !slices.Contains(values, "self-protection") {
		t.Fatalf("the values were not found in the source: %q", values)
	}
	same(t, "docs/report.md", tableKeys(table), values)
}

// same reports what is in one list and not in the other.
func same(t *testing.T, where string, documented, inCode []string) {
	t.Helper()
	slices.Sort(inCode)
	for _, k := range slices.Compact(inCode) {
		if !slices.Contains(documented, k) {
			t.Errorf("%s does not explain %q", where, k)
		}
	}
	for _, k := range documented {
		if !slices.Contains(inCode, k) {
			t.Errorf("%s explains %q, which the code does not have", where, k)
		}
	}
}

// TestLinks: a link between pages leads to a file, and to a heading in it.
func TestLinks(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md"} {
		files = append(files, filepath.Join(root, name))
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	found := 0
	for _, file := range files {
		text := read(t, file)
		for _, m := range link.FindAllSubmatch(text, -1) {
			target := string(m[1])
			if strings.Contains(target, "://") {
				continue
			}
			found++
			path, anchor, _ := strings.Cut(target, "#")
			at := file
			if path != "" {
				at = filepath.Join(filepath.Dir(file), path)
			}
			body, err := os.ReadFile(at)
			if err != nil {
				t.Errorf("%s: the link %s leads nowhere", file, target)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(body), anchor) {
				t.Errorf("%s: the link %s names no heading", file, target)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d links found", found)
	}
}

// anchors returns the names that the headings of a page have in links.
func anchors(text []byte) []string {
	var list []string
	for line := range bytes.Lines(text) {
		heading, ok := strings.CutPrefix(strings.TrimLeft(string(line), "#"), " ")
		if !ok || line[0] != '#' {
			continue
		}
		heading = strings.ToLower(strings.TrimSpace(heading))
		heading = regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(heading, "")
		list = append(list, strings.ReplaceAll(heading, " ", "-"))
	}
	return list
}

// TestMessages: what the page about exit codes quotes is said by the code.
func TestMessages(t *testing.T) {
	var source []byte
	for _, tree := range []string{"pathcheck/command", "rules", "shim"} {
		for _, file := range goFiles(t, tree) {
			source = append(source, read(t, file)...)
		}
	}
	text := page(t, "docs/exit-codes.md")
	_, text, _ = strings.Cut(text, "\n## 125\n")
	quoted := regexp.MustCompile("`([^`]+)`")
	found := 0
	for _, row := range regexp.MustCompile(`(?m)^\| (.+?) \|`).FindAllStringSubmatch(text, -1) {
		for _, m := range quoted.FindAllStringSubmatch(row[1], -1) {
			for part := range strings.SplitSeq(m[1], "…") {
				part = strings.TrimSuffix(strings.TrimSpace(part), ":")
				part = strings.TrimSuffix(part, "SANDBOX_EXEC_SHIM_POLICY")
				if part == "" {
					continue
				}
				found++
				if !bytes.Contains(source, []byte(strings.TrimSpace(part))) {
					t.Errorf("docs/exit-codes.md quotes %q, which nothing says", part)
				}
			}
		}
	}
	if found < 12 {
		t.Errorf("only %d messages found", found)
	}
}
