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

func checkRoundTrip(t *testing.T, p *Policy) {
	t.Helper()
	text := Format(p)
	again, err := Parse(text)
	if err != nil {
		t.Fatalf("Parse(Format) of %s: %v", text, err)
	}
	if diff := cmp.Diff(p, again, byPath); diff != "" {
		t.Errorf("Parse(Format) (-want +got)\n%s", diff)
	}
	if second := Format(again); !bytes.Equal(second, text) {
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
	const want = `{"version":1,"required":false,"hidden":["/a","/b"],"exposed":["/a/\"c\\\u000a"],"precreate":["/p"],` +
		`"frozen":"allow","capabilities":"keep","env":{"unset":["X"],"set":{"A":"1","B":"2"}},` +
		`"program":"/bin/true","report":"fd:3","log":{"level":"info","to":"/l"}}`
	if got := string(Format(p)); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// A path that JSON cannot hold may not become another path.
func TestFormatInvalidUTF8(t *testing.T) {
	if _, err := Parse(Format(policyHiding("/a\xff"))); err == nil {
		t.Error("a path that is not UTF-8 went through")
	}
}
