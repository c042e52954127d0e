package launch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
)

// Reports reads the launch reports in a file, one a line, in their order. A
// file that does not exist has none. Every line must be a whole report without
// unknown keys.
func Reports(tb testing.TB, path string) []report.Report {
	tb.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		tb.Fatal(err)
	}
	return ParseReports(tb, string(data))
}

// ParseReports is [Reports] for text that was read elsewhere.
func ParseReports(tb testing.TB, text string) []report.Report {
	tb.Helper()
	var out []report.Report
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			tb.Errorf("a report without a newline: %q", line)
		}
		dec := json.NewDecoder(bytes.NewReader([]byte(line)))
		dec.DisallowUnknownFields()
		var r report.Report
		if err := dec.Decode(&r); err != nil {
			tb.Fatalf("report %q: %v", line, err)
		}
		out = append(out, r)
	}
	return out
}

// Report reads the only launch report in a file.
func Report(tb testing.TB, path string) report.Report {
	tb.Helper()
	rs := Reports(tb, path)
	if len(rs) != 1 {
		tb.Fatalf("%d reports in %s, want 1: %+v", len(rs), path, rs)
	}
	return rs[0]
}

// Enforced reports whether a report says that what is enforced.
func Enforced(r report.Report, what string) bool {
	for _, e := range r.Enforced {
		if e.What == what {
			return true
		}
	}
	return false
}

// NotEnforced returns the limits and failures of that name, in one of "limit"
// or "failure" each, in the report's order.
func NotEnforced(r report.Report, what string) []string {
	var out []string
	for _, g := range r.NotEnforced {
		switch {
		case g.What != what:
		case g.Limit:
			out = append(out, "limit")
		default:
			out = append(out, "failure")
		}
	}
	return slices.Clip(out)
}

// A LogLine is the line of a log about one launch.
type LogLine struct {
	PID        int      `json:"pid"`
	RunHidden  []string `json:"run_hidden"`
	RunExposed []string `json:"run_exposed"`
}

// LogLines returns the lines about launches in the text of a log.
func LogLines(tb testing.TB, log []byte) []LogLine {
	tb.Helper()
	var out []LogLine
	for line := range bytes.Lines(log) {
		var l struct {
			Message string `json:"@message"`
			LogLine
		}
		if err := json.Unmarshal(line, &l); err != nil {
			tb.Fatalf("log line %s: %v", line, err)
		}
		if l.Message == "launch" {
			out = append(out, l.LogLine)
		}
	}
	return out
}
