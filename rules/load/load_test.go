package load_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
)

// TestPolicy: what each value of the variable gives. In value, source and err,
// DIR stands for the directory of the policy file "p\nq".
func TestPolicy(t *testing.T) {
	const text = `{"version":1,"hidden":["/a"]}`
	long := strings.Repeat("n", 255)
	full := text + strings.Repeat(" ", rules.MaxText-len(text))
	for _, row := range []struct {
		name, value, file string
		hides             bool // "/a", and nothing else
		source            string
		err               string
	}{
		{name: "unset", value: ""},
		{name: "blank", value: " \t\r\n\v\f"},
		{name: "no-break space is not blank", value: "\u00a0", err: "not a JSON object"},
		{name: "inline", value: text, hides: true},
		{name: "inline with space", value: "\n " + text + "\n", hides: true},
		{name: "inline broken", value: `{"/secret`, err: "not valid JSON (byte 9)"},
		{name: "file", value: "@DIR/p\nq", file: text, hides: true, source: "DIR/p\nq"},
		{name: "file of 1 MiB", value: "@DIR/p\nq", file: full, hides: true, source: "DIR/p\nq"},
		{name: "file of 1 MiB and a byte", value: "@DIR/p\nq", file: full + " ", source: "DIR/p\nq", err: `policy file "DIR/p\nq": larger than 1 MiB`},
		{name: "file of blanks, too large", value: "@DIR/p\nq", file: strings.Repeat(" ", 2*rules.MaxText), source: "DIR/p\nq", err: `policy file "DIR/p\nq": larger than 1 MiB`},
		{name: "file empty", value: "@DIR/p\nq", source: "DIR/p\nq", err: `policy file "DIR/p\nq": is empty`},
		{name: "file blank", value: "@DIR/p\nq", file: " \n", source: "DIR/p\nq", err: `policy file "DIR/p\nq": is empty`},
		{name: "file with an error", value: "@DIR/p\nq", file: `{"version":2}`, source: "DIR/p\nq", err: `policy file "DIR/p\nq": version: must be 1`},
		{name: "file that names a file", value: "@DIR/p\nq", file: `@/p`, source: "DIR/p\nq", err: `policy file "DIR/p\nq": not a JSON object`},
		{name: "file missing", value: "@DIR/none", source: "DIR/none", err: `policy file "DIR/none": open: no such file or directory`},
		{name: "line feed belongs to the name", value: "@DIR/p\nq\n", file: text, source: "DIR/p\nq\n", err: `policy file "DIR/p\nq\n": open: no such file or directory`},
		{name: "file relative", value: "@p", err: `policy file: not an absolute path`},
		{name: "file without name", value: "@", err: `policy file: not an absolute path`},
		{name: "blank in front of @", value: " @DIR/p\nq", file: text, err: "not a JSON object"},
		{name: "long name", value: "@/" + long, source: "/" + long, err: `policy file "/` + long[:159] + `"…: open: no such file or directory`},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir, err := os.MkdirTemp("/tmp", "load-")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			if err := os.WriteFile(filepath.Join(dir, "p\nq"), []byte(row.file), 0o600); err != nil {
				t.Fatal(err)
			}
			at := func(s string) string { return strings.ReplaceAll(s, "DIR", dir) }
			got, source, err := load.Policy(at(row.value), load.Options{})
			if row.err == "" && err != nil || row.err != "" && (err == nil || err.Error() != at(row.err)) {
				t.Errorf("error %v, want %q", err, at(row.err))
			}
			var want *rules.Policy
			if row.hides {
				if want, err = rules.Parse([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("policy (-want +got)\n%s", diff)
			}
			if source.File != at(row.source) {
				t.Errorf("source %q, want %q", source.File, at(row.source))
			}
		})
	}
}

// TestPolicyErrorIsReachable: a caller can tell the key that is wrong in a file.
func TestPolicyErrorIsReachable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy")
	if err := os.WriteFile(file, []byte(`{"version":1,"program":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := load.Policy("@"+file, load.Options{})
	if e, ok := errors.AsType[*rules.Error](err); !ok || e.Key != "program" {
		t.Errorf("the error of the text is not reachable: %v", err)
	}
}

func TestPolicyEnv(t *testing.T) {
	_, _, err := load.Policy(`{"version":1,"env":{"unset":["P"]}}`, load.Options{PolicyEnv: "P"})
	if want := "env.unset[0]: is the variable of the policy itself"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}
