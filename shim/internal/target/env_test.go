package target

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// envCalls are words behind env, with %A and %B for two directories, and what env
// then starts: a file and its arguments, or nothing. Rows with other set are left
// to the bound on returns.
var envCalls = []struct {
	words []string
	want  []string
	other bool
}{
	{words: words("one"), want: words("%A/one")},
	{words: words("one", "-a", "b c"), want: words("%A/one", "-a", "b c")},
	{words: words("two"), want: words("%B/two")},
	{words: words("%B/one", "x"), want: words("%B/one", "x")},
	{words: words("nosuch")},
	{words: words("")},
	{words: nil},
	{words: words("A=1", "one"), want: words("%A/one")},
	{words: words("PATH=%B", "one"), want: words("%B/one")},
	{words: words("PATH=%B", "PATH=%A", "one"), want: words("%A/one")},
	{words: words("-S", "one", "a b"), want: words("%A/one", "a b")},
	{words: words("-Sone a b", "c d"), want: words("%A/one", "a", "b", "c d")},
	{words: words("-S one\t a"), want: words("%A/one", "a")},
	{words: words("--split-string=one a"), want: words("%A/one", "a")},
	{words: words("-SPATH=%B one"), want: words("%B/one")},
	{words: words("-S env one a"), want: words("%A/one", "a")},
	{words: words("-S"), want: nil},
	{words: words("-S 'one' a"), other: true},
	{words: words("-S one ${X}"), other: true},
	{words: words("-i", "%A/one"), other: true},
	{words: words("-u", "X", "one"), other: true},
	{words: words("-vS", "one"), other: true},
	{words: words("--", "one"), other: true},
}

func words(list ...string) []string { return list }

// TestEnvProgram compares with what env(1) itself starts.
func TestEnvProgram(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, path := range []string{a + "/one", b + "/one", b + "/two"} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\nprintf '%s\\0' \"$0\" \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"X=x y", "PATH=" + a + ":" + b + ":/usr/bin:/bin"}
	fill := func(list []string) (out []string) {
		for _, s := range list {
			out = append(out, strings.NewReplacer("%A", a, "%B", b).Replace(s))
		}
		return out
	}
	for _, c := range envCalls {
		path, args, after := envProgram(fill(c.words), env)
		if base(path) == "env" {
			path, args, _ = envProgram(args, after)
		}
		var got []string
		if path != "" {
			got = append([]string{path}, args...)
		}
		want := fill(c.want)
		if !cmp.Equal(want, got) {
			t.Errorf("%q: want %q, have %q", c.words, want, got)
		}
		if len(c.words) == 0 {
			continue // env alone prints
		}
		cmd := exec.Command("/usr/bin/env", fill(c.words)...)
		cmd.Env = env
		out, err := cmd.Output()
		var started []string
		if err == nil && len(out) > 0 && out[0] == '/' {
			started = strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		}
		switch {
		case c.other && len(started) == 0:
			t.Errorf("%q: env starts nothing, so the row shows nothing: %v", c.words, err)
		case !c.other && !cmp.Equal(want, started):
			t.Errorf("%q: env starts %q, want %q", c.words, started, want)
		}
	}
}
