package shim

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
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

// TestLoggerLikeHclog compares the lines with those of hclog's own logger, at
// each level of the logger and of the message.
func TestLoggerLikeHclog(t *testing.T) {
	levels := []hclog.Level{hclog.Trace, hclog.Debug, hclog.Info, hclog.Warn, hclog.Error}
	args := []any{"pid", 17, "target", "/bin/\"x\"\n", "hidden", []string{"/a b", "/<c>"}, "none", []string{}, "yes", true, "big", int64(1) << 40}
	for _, level := range levels {
		t.Run(level.String(), func(t *testing.T) {
			var own, theirs bytes.Buffer
			mine := newJSONLogger(level, &own)
			reference := hclog.New(&hclog.LoggerOptions{Name: logName, Level: level, Output: &theirs, JSONFormat: true})
			for _, l := range []hclog.Logger{mine, reference} {
				l.Trace("a trace", args...)
				l.Debug("a debug", args...)
				l.Info("an info", args...)
				l.Warn("a warning", args...)
				l.Error("an error", args...)
				l.Error("bare")
				l.With("with", "x").With("and", 3).Error("implied", "own", "y")
			}
			if diff := cmp.Diff(messages(t, &theirs), messages(t, &own)); diff != "" {
				t.Errorf("hclog's lines (-) and these (+):\n%s", diff)
			}
			if mine.GetLevel() != reference.GetLevel() || mine.IsTrace() != reference.IsTrace() || mine.IsDebug() != reference.IsDebug() ||
				mine.IsInfo() != reference.IsInfo() || mine.IsWarn() != reference.IsWarn() || mine.IsError() != reference.IsError() {
				t.Error("the two answer differently what they log")
			}
		})
	}
}

// messages decodes lines of a log, and replaces the time of each, which must
// have the form that hclog gives it.
func messages(t *testing.T, log *bytes.Buffer) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range strings.Lines(log.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in the line %q", err, line)
		}
		at, _ := m["@timestamp"].(string)
		if _, err := time.Parse(hclog.TimeFormatJSON, at); err != nil {
			t.Errorf("the time of %q: %v", line, err)
		}
		m["@timestamp"] = "then"
		out = append(out, m)
	}
	if len(out) == 0 {
		t.Fatal("no line was written")
	}
	return out
}
