package report

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// jsonOf is what encoding/json writes, without its HTML escapes.
func jsonOf(tb testing.TB, v any) string {
	tb.Helper()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func testQuote(tb testing.TB, s string) {
	tb.Helper()
	var l jsonLine
	l.value(s)
	if got, want := string(l), jsonOf(tb, s); got != want {
		tb.Errorf("%q is written as %s, want %s", s, got, want)
	}
}

func TestJSONLineStrings(t *testing.T) {
	for r := range utf8.MaxRune + 1 {
		if r < 0x3000 || r%97 == 0 {
			testQuote(t, "a"+string(r)+"b")
		}
	}
	for b := range 256 {
		testQuote(t, string([]byte{byte(b)}))
		testQuote(t, string([]byte{0xe2, 0x80, byte(b), 'z', byte(b)}))
	}
	for _, s := range []string{"", `[{:,"`, "\xff\xfe", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\u2027\u2028\u2029\u202a", "<a&b>"} {
		testQuote(t, s)
	}
}

func FuzzJSONLineString(f *testing.F) {
	f.Add("a\x00\"\\\u2028\xff")
	f.Fuzz(func(t *testing.T, s string) { testQuote(t, s) })
}

// TestReportLine compares a report's line with what its tags say: empty, full,
// and with each field of it set alone.
func TestReportLine(t *testing.T) {
	check := func(t *testing.T, r *Report) {
		t.Helper()
		if got, want := string(r.encode()), jsonOf(t, r); got != want {
			t.Errorf("the report is\n%s\nwant\n%s", got, want)
		}
	}
	check(t, &Report{})
	var full Report
	fields := reflect.TypeFor[Report]()
	for i := range fields.NumField() {
		if !fields.Field(i).IsExported() {
			continue
		}
		var one Report
		fill(t, reflect.ValueOf(&one).Elem().Field(i))
		if reflect.DeepEqual(one, Report{}) {
			t.Errorf("the field %s was not set", fields.Field(i).Name)
		}
		check(t, &one)
		fill(t, reflect.ValueOf(&full).Elem().Field(i))
	}
	check(t, &full)
}

// fill sets v, and all that is in it, to something else than its zero value.
// A list gets an element that is set and one that is not.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("a \"b\"\n\xff")
	case reflect.Int, reflect.Int64:
		v.SetInt(-7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("%s: not a kind that a report holds", v.Type())
	}
}
