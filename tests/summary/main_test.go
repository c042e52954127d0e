package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummary(t *testing.T) {
	tests := []struct {
		name   string
		events []string
		want   string
		ok     bool
	}{
		{
			name: "a passing package shows its result line only",
			events: []string{
				`{"Action":"start","Package":"m/a"}`,
				`{"Action":"output","Package":"m/a","Test":"TestX","Output":"=== RUN   TestX\n"}`,
				`{"Action":"output","Package":"m/a","Test":"TestX","Output":"    a_test.go:3: chatter\n"}`,
				`{"Action":"output","Package":"m/a","Test":"TestX","Output":"--- PASS: TestX (0.00s)\n"}`,
				`{"Action":"pass","Package":"m/a","Test":"TestX"}`,
				`{"Action":"output","Package":"m/a","Output":"PASS\n"}`,
				`{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.01s\n"}`,
				`{"Action":"pass","Package":"m/a"}`,
			},
			want: "ok  \tm/a\t0.01s\n\n1 passed, 0 failed, 0 skipped\n",
			ok:   true,
		},
		{
			name: "a failing test shows all that it said",
			events: []string{
				`{"Action":"output","Package":"m/a","Test":"TestX","Output":"=== RUN   TestX\n"}`,
				`{"Action":"output","Package":"m/a","Test":"TestX","Output":"    a_test.go:3: got 1\n"}`,
				`{"Action":"output","Package":"m/a","Test":"TestX","Output":"--- FAIL: TestX (0.00s)\n"}`,
				`{"Action":"fail","Package":"m/a","Test":"TestX"}`,
				`{"Action":"output","Package":"m/a","Output":"FAIL\n"}`,
				`{"Action":"output","Package":"m/a","Output":"FAIL\tm/a\t0.01s\n"}`,
				`{"Action":"fail","Package":"m/a"}`,
			},
			want: "    a_test.go:3: got 1\n--- FAIL: TestX (0.00s)\nFAIL\tm/a\t0.01s\n\n0 passed, 1 failed, 0 skipped\n",
		},
		{
			name: "a skipped test is listed with its reason",
			events: []string{
				`{"Action":"output","Package":"m/a","Test":"TestX","Output":"    a_test.go:3: no Landlock here\n"}`,
				`{"Action":"output","Package":"m/a","Test":"TestX","Output":"--- SKIP: TestX (0.00s)\n"}`,
				`{"Action":"skip","Package":"m/a","Test":"TestX"}`,
				`{"Action":"pass","Package":"m/a","Test":"TestY"}`,
			},
			want: "\nskipped:\n  a TestX: no Landlock here\n\n1 passed, 0 failed, 1 skipped\n",
			ok:   true,
		},
		{
			name: "a build error is a failure though every test passed",
			events: []string{
				`{"Action":"pass","Package":"m/a","Test":"TestX"}`,
				`{"ImportPath":"m/b","Action":"build-output","Output":"b.go:1: bad\n"}`,
				`{"ImportPath":"m/b","Action":"build-fail"}`,
			},
			want: "b.go:1: bad\n\n1 passed, 0 failed, 0 skipped\n",
		},
		{
			name: "a process that died is a failure and its test is named",
			events: []string{
				`{"Action":"pass","Package":"m/a","Test":"TestW"}`,
				`{"Action":"output","Package":"m/a","Test":"TestX","Output":"=== RUN   TestX\n"}`,
				`{"Action":"output","Package":"m/a","Test":"TestX","Output":"last words\n"}`,
				`{"Action":"output","Package":"m/a","Output":"FAIL\tm/a\t0.01s\n"}`,
				`{"Action":"fail","Package":"m/a"}`,
			},
			want: "FAIL\tm/a\t0.01s\n    TestX did not finish\nlast words\n\n1 passed, 0 failed, 0 skipped\n",
		},
		{
			name:   "no test is a failure",
			events: []string{`go: cannot find module`},
			want:   "go: cannot find module\n\n0 passed, 0 failed, 0 skipped\nno test ran\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			s := newSummary(&out)
			if err := s.read(strings.NewReader(strings.Join(tt.events, "\n") + "\n")); err != nil {
				t.Fatal(err)
			}
			ok := s.close()
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if ok != tt.ok {
				t.Errorf("close() = %v, want %v", ok, tt.ok)
			}
		})
	}
}
