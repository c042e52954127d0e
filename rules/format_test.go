package rules

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// byPath compares entries without their numbers, which change when equal
// entries were dropped.
var byPath = cmp.Comparer(func(a, b Entry) bool { return a.Path == b.Path && reflect.DeepEqual(a.Template, b.Template) })

func format(t *testing.T, p *Policy) []byte {
	t.Helper()
	text, err := Format(p)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func checkRoundTrip(t *testing.T, p *Policy) {
	t.Helper()
	text := format(t, p)
	again, err := Parse(text)
	if err != nil {
		t.Fatalf("Parse(Format) of %s: %v", text, err)
	}
	if diff := cmp.Diff(p, again, byPath); diff != "" {
		t.Errorf("Parse(Format) (-want +got)\n%s", diff)
	}
	if second := format(t, again); !bytes.Equal(second, text) {
		t.Errorf("Format is not stable:\n%s\n%s", text, second)
	}
}

func TestFormatRoundTrip(t *testing.T) {
	for _, row := range acceptedPolicies {
		t.Run(row.name, func(t *testing.T) { checkRoundTrip(t, row.want) })
	}
}

func TestFormat(t *testing.T) {
	const text = `{"version":1,"required":false,"hidden":["/a","/b"],"exposed":["/a/\"c\\\n"],"precreate":["/p"],` +
		`"frozen":"allow","capabilities":"keep","env":{"unset":["X"],"set":{"A":"1","B":"2"}},` +
		`"program":"/bin/true","report":"fd:3","log":{"level":"info","to":"/l"}}`
	p, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(format(t, p)); got != text {
		t.Errorf("\n got %s\nwant %s", got, text)
	}
}

// A path that JSON cannot hold may not become another path.
func TestFormatInvalidUTF8(t *testing.T) {
	for _, p := range []*Policy{policyHiding("/a\xff"), policyWith(func(p *Policy) { p.Program = "/a\xff" })} {
		if text, err := Format(p); err == nil {
			t.Errorf("a path that is not UTF-8 went through: %s", text)
		}
	}
	if text, err := Format(policyHiding("/a\uFFFD")); err != nil || !bytes.Contains(text, []byte("/a\uFFFD")) {
		t.Errorf("a path that is UTF-8: %s, %v", text, err)
	}
}
