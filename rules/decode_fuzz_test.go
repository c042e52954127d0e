package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var (
	byteNumber = regexp.MustCompile(`\(byte \d+\)`)
	// schemaKey are the keys in errors that the schema fixes.
	schemaKey = regexp.MustCompile(`^(version|required|frozen|scope|capabilities|program|report|log|env|` +
		`(profile\.)?(hidden|exposed|precreate|writable)\[\d{1,4}\](\.(path|beneath|keep|depth|kind|unless(\[\d{1,4}\])?))?|instanceRoot|` +
		`(hidden|exposed|precreate|env\.unset|isolate|descriptors\.keep|network\.(connectTCP|bindTCP))(\[\d{1,4}\])?|network\.udp|log\.(level|to)|env\.set|` +
		`audit|commandCheck|descriptors|isolate|network|profile|root|toolchainDirs|workspace|writable)$`)
)

// inTemplate is where a key of a template stands.
var inTemplate = regexp.MustCompile(`^(hidden|exposed|precreate)\[\d+\]\.`)

// errorMessages are the fixed texts that an error may hold, taken from the rows.
var errorMessages = func() map[string]bool {
	set := map[string]bool{}
	for _, row := range rejectedPolicies {
		if _, err := Parse([]byte(row.text)); err != nil {
			if e, ok := errors.AsType[*Error](err); ok {
				set[byteNumber.ReplaceAllString(e.Msg, "(byte N)")] = true
			}
		}
	}
	return set
}()

// checkError fails when an error of Parse repeats more of the policy than one
// key and one path, or is more than one short line.
func checkError(t *testing.T, data []byte, err error) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("error is a %T", err)
	}
	text := err.Error()
	if len(text) > 1024 || strings.ContainsFunc(text, func(c rune) bool { return !strconv.IsPrint(c) }) || !utf8.ValidString(text) {
		t.Errorf("not one short line: %q", text)
	}
	// What is not key or path is fixed text: it cannot come from the policy.
	if msg := byteNumber.ReplaceAllString(e.Msg, "(byte N)"); !errorMessages[msg] {
		t.Errorf("message %q is in no row of the table", msg)
	}
	want := e.Msg
	if e.Path != "" {
		want = quoteCut(e.Path, maxPathShown) + ": " + want
		if !strings.HasPrefix(e.Path, "/") {
			t.Errorf("path %q is not absolute", e.Path)
		}
	}
	if e.Key != "" {
		want = showKey(e.Key) + ": " + want
	}
	if text != want {
		t.Errorf("text %q is not made of its parts", text)
	}
	if len(showKey(e.Key)) > 4*maxKeyShown+len(`""…`) {
		t.Errorf("key is shown in %d bytes", len(showKey(e.Key)))
	}
	if e.Key != "" && !schemaKey.MatchString(e.Key) {
		switch msg := e.Msg; {
		case msg == "unknown key", msg == "duplicate key", strings.HasPrefix(e.Key, "env.set."):
		default:
			t.Errorf("key %q does not fit message %q", e.Key, msg)
		}
		// A key that is not of the schema stands in the text as a name.
		name := inTemplate.ReplaceAllString(e.Key, "")
		for _, head := range []string{"env.set.", "env.", "log.", "network.", "descriptors."} {
			if rest, ok := strings.CutPrefix(name, head); ok {
				name = rest
				break
			}
		}
		if !isName(data, name) && !isName(data, e.Key) {
			t.Errorf("key %q is no name in the policy", e.Key)
		}
	}
}

// isName reports whether name is a string in front of a colon in data.
func isName(data []byte, name string) bool {
	for i, c := range data {
		if c != '"' {
			continue
		}
		r := &jsonReader{data: data, pos: i}
		if s, err := r.str(""); err == nil && s == name && r.next() == ':' {
			return true
		}
	}
	return false
}

// TestMessagesComplete keeps the table whole: the fuzz target takes from it
// what an error may say.
func TestMessagesComplete(t *testing.T) {
	if len(errorMessages) < 30 {
		t.Errorf("only %d messages: the table lost rows", len(errorMessages))
	}
}

func FuzzParse(f *testing.F) {
	for _, row := range acceptedPolicies {
		if len(row.text) < 1<<13 {
			f.Add([]byte(row.text))
		}
	}
	for _, row := range rejectedPolicies {
		if len(row.text) < 1<<13 {
			f.Add([]byte(row.text))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkSyntax(t, data)
		p, err := Parse(data)
		if err != nil {
			if p != nil {
				t.Errorf("policy beside an error")
			}
			checkError(t, data, err)
			return
		}
		checkRoundTrip(t, p)
		checkStrings(t, data, p)
		for _, list := range [][]Entry{p.Hidden, p.Exposed, p.Precreate} {
			for _, e := range list {
				if e.Template == nil {
					checkCleanPath(t, e.Path)
				}
			}
		}
	})
}

// checkSyntax compares the reader with encoding/json: what the one takes is
// valid for the other, and what the other takes is refused only for what
// version 1 forbids beyond the grammar.
func checkSyntax(t *testing.T, data []byte) {
	t.Helper()
	_, err := splitMembers(data)
	if err == nil {
		if !json.Valid(data) {
			t.Errorf("encoding/json refuses what split takes")
		}
		return
	}
	if strings.HasPrefix(err.Error(), "not valid JSON") || strings.HasPrefix(err.Error(), "data after") {
		if json.Valid(data) {
			t.Errorf("encoding/json takes what split refuses: %v", err)
		}
	}
}

// checkStrings compares the hidden paths and variables with what
// encoding/json reads.
func checkStrings(t *testing.T, data []byte, p *Policy) {
	t.Helper()
	var other struct {
		Hidden []any
		Env    struct{ Set map[string]string }
	}
	if err := json.Unmarshal(data, &other); err != nil {
		if bytes.Contains(data, []byte("version")) {
			t.Fatalf("encoding/json: %v", err)
		}
		return // keys are ignored, whatever they hold
	}
	var want []string
	seen := map[string]bool{}
	for _, v := range other.Hidden {
		s, ok := v.(string)
		if !ok {
			continue
		}
		if s, err := cleanPath(s); err != nil {
			t.Fatal(err)
		} else if !seen[s] {
			seen[s] = true
			want = append(want, s)
		}
	}
	var got []string
	for _, e := range p.Hidden {
		if e.Template == nil {
			got = append(got, e.Path)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hidden (-json +ours)\n%s", diff)
	}
	if !bytes.Contains(data, []byte("version")) {
		return
	}
	set := map[string]string{}
	for _, v := range p.Env.Set {
		set[v.Name] = v.Value
	}
	if other.Env.Set == nil {
		other.Env.Set = map[string]string{}
	}
	if diff := cmp.Diff(other.Env.Set, set); diff != "" {
		t.Errorf("env.set (-json +ours)\n%s", diff)
	}
}

func checkCleanPath(t *testing.T, path string) {
	t.Helper()
	again, err := cleanPath(path)
	if err != nil || again != path {
		t.Errorf("%q is not clean: %q, %v", path, again, err)
	}
	if path != "/" && (strings.HasSuffix(path, "/") || strings.Contains(path+"/", "/./") || strings.Contains(path, "//")) {
		t.Errorf("%q is not clean", path)
	}
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path+"/", "/../") || strings.ContainsRune(path, 0) {
		t.Errorf("%q is not a path", path)
	}
}
