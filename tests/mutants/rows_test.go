package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every row applies to the product as it is, and every file that plans, confines or
// proves has one. Whether a test notices is what the program itself finds out.
func TestRowsApply(t *testing.T) {
	t.Chdir("../..")
	rows, err := choose("tests/mutants/*.txt", "")
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) < 120 {
		t.Errorf("%d rows", len(rows))
	}
	has, names := map[string]bool{}, map[string]bool{}
	for _, m := range rows {
		has[m.file] = true
		if err := m.apply(m.file, filepath.Join(t.TempDir(), "overlay.json")); err != nil {
			t.Errorf("%s: %v", m.at, err)
		}
		if key := m.file + ": " + m.name; names[key] {
			t.Errorf("%s: a second row %q", m.at, key)
		} else {
			names[key] = true
		}
		for _, to := range m.tests {
			if _, err := os.Stat(to.pkg); err != nil || !strings.HasPrefix(to.pkg, "./") || to.run == "" {
				t.Errorf("%s: %q %q is no test", m.at, to.pkg, to.run)
			}
		}
	}
	for _, dir := range []string{"rules/plan", "shim/internal/confine", "shim/internal/planner"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || files == nil {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "\nfunc ") && !strings.HasSuffix(file, "_test.go") && !has[file] {
				t.Errorf("%s has no row", file)
			}
		}
	}
}

func TestReadRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.txt")
	read := func(text string) ([]mutant, error) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return readRows(path)
	}
	rows, err := read("# a list\n\n== one thing\nwhy  a reason\nfile a.go\ntest ./a TestA|TestB\ntest ./b TestC\n-\told {\n--\n+new\n\n== another\nfile a.go\ntest ./a T\n-x\n")
	if err != nil || len(rows) != 2 {
		t.Fatalf("%+v, %v", rows, err)
	}
	one := rows[0]
	if one.name != "one thing" || one.why != "a reason" || one.old != "\told {\n-" || one.new != "new" || len(one.tests) != 2 || one.tests[0] != (target{"./a", "TestA|TestB"}) || rows[1].new != "" {
		t.Errorf("%+v", rows)
	}
	for _, bad := range []string{"file a.go\n", "== x\nfile a.go\ntest ./a T\n", "== x\nfile a.go\n-a\n", "== x\nfile a\ntest ./a T\n-a\n+a\n", "== x\nfoo\n"} {
		if rows, err := read(bad); err == nil {
			t.Errorf("%q: %+v", bad, rows)
		}
	}
}
