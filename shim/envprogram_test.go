package shim

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// envCalls are words behind env, with %A and %B for two directories, and what env
// then starts: a file and its arguments, or nothing.
var envCalls = []struct {
	words []string
	want  []string
}{
	{words("one"), words("%A/one")},
	{words("one", "-a", "b c"), words("%A/one", "-a", "b c")},
	{words("two"), words("%B/two")},
	{words("%B/one", "x"), words("%B/one", "x")},
	{words("nosuch"), nil},
	{words(""), nil},
	{nil, nil},

	// Assignments.
	{words("A=1", "one"), words("%A/one")},
	{words("PATH=%B", "one"), words("%B/one")},
	{words("PATH=%B", "PATH=%A", "one"), words("%A/one")},
	{words("PATH=/sys/nowhere", "one"), nil},

	// Options without a value.
	{words("-v", "one"), words("%A/one")},
	{words("--debug", "one"), words("%A/one")},
	{words("-i", "%A/one"), words("%A/one")},
	{words("-i", "one"), nil},
	{words("-iv", "PATH=%B", "one"), words("%B/one")},
	{words("-", "PATH=%B", "one"), words("%B/one")},
	{words("-", "-v", "one"), nil},
	{words("--ignore-environment", "PATH=%B", "one"), words("%B/one")},
	{words("--ignore-e", "PATH=%B", "one"), words("%B/one")},
	{words("--", "one"), words("%A/one")},
	{words("--", "-v", "one"), nil},
	{words("one", "-i"), words("%A/one", "-i")},
	{words("--ignore-signal", "one"), words("%A/one")},
	{words("--ignore-signal=PIPE", "one"), words("%A/one")},
	{words("--block-signal=USR1,USR2", "one"), words("%A/one")},
	{words("--default-signal", "one"), words("%A/one")},
	{words("--list-signal-handling", "one"), words("%A/one")},
	{words("-0", "one"), nil},
	{words("--null", "one"), nil},
	{words("--help", "one"), nil},
	{words("--version", "one"), nil},
	{words("-Z", "one"), nil},
	{words("-i one"), nil},
	{words("-v one"), nil},

	// Options with one.
	{words("-u", "X", "one"), words("%A/one")},
	{words("-uX", "one"), words("%A/one")},
	{words("-vuX", "one"), words("%A/one")},
	{words("--unset=X", "one"), words("%A/one")},
	{words("--unset", "X", "one"), words("%A/one")},
	{words("-u", "PATH", "one"), nil},
	{words("-uPATH", "PATH=%B", "one"), words("%B/one")},
	{words("-u"), nil},
	{words("-C", "%B", "./one"), words("./one")},
	{words("-C%B", "one"), words("%A/one")},
	{words("--chdir=%B", "./two"), words("./two")},
	{words("--chdir", "%B", "./two"), words("./two")},
	{words("-C", "%B", "PATH=.", "two"), words("./two")},
	{words("-a", "zero", "one", "x"), words("%A/one", "x")},
	{words("--argv0=zero", "one"), words("%A/one")},

	// One word is split.
	{words("-S", "one a b", "c d"), words("%A/one", "a", "b", "c d")},
	{words("-Sone a b"), words("%A/one", "a", "b")},
	{words("-vSone a"), words("%A/one", "a")},
	{words("-ivSPATH=%B one"), words("%B/one")},
	{words("-vS", "one"), words("%A/one")},
	{words("--split-string=one a"), words("%A/one", "a")},
	{words("--split-string", "one a", "b"), words("%A/one", "a", "b")},
	{words("--s=one"), words("%A/one")},
	{words("-S"), nil},
	{words("-S", "", "one"), words("%A/one")},
	{words("-S", " \t\n\v\f\r", "one"), words("%A/one")},
	{words("-S", "\tone\t a\n b "), words("%A/one", "a", "b")},
	{words("-S", "-i PATH=%B one"), words("%B/one")},
	{words("-S", "-u X A=1", "one"), words("%A/one")},
	{words("-S", "-S two", "b"), words("%B/two", "b")},
	{words("-S", "-S 'two a' b"), words("%B/two", "a", "b")},
	{words("-S", "-- one"), words("%A/one")},
	{words("-S", "env one a"), words("%A/one", "a")},
	{words("-S", "env -S 'env one'", "a"), words("%A/one", "a")},
	{words("-S", "PATH=%B:${PATH} env one"), words("%B/one")},
	{words("-S", `one "a b" 'c d' e"f"'g'`), words("%A/one", "a b", "c d", "efg")},
	{words("-S", `one '' ""`), words("%A/one", "", "")},
	{words("-S", `one a\_b "c\_d" '\_'`), words("%A/one", "a", "b", "c d", `\_`)},
	{words("-S", `one \"\'\\\#\$ "\"\'\\" '\'\\"'`), words("%A/one", `"'\#$`, `"'\`, `'\"`)},
	{words("-S", `one "\f\n\r\t\v" a\tb`), words("%A/one", "\f\n\r\t\v", "a\tb")},
	{words("-S", `one a#b #c d`, "e"), words("%A/one", "a#b", "e")},
	{words("-S", `one a \c b`, "c"), words("%A/one", "a", "c")},
	{words("-S", `one a\c b`, "c"), words("%A/one", "a", "c")},
	{words("-S", `one "a\cb"`), nil},
	{words("-S", `one ${X} "${X}" '${X}' a${X}b`), words("%A/one", "x y", "x y", "${X}", "ax yb")},
	{words("-S", `one ${NOSUCH} a`), words("%A/one", "a")},
	{words("-S", `-i %A/one ${X}`), words("%A/one", "x y")},
	{words("-S", `X=z %A/one ${X}`), words("%A/one", "x y")},
	{words("-S", `one $X`), nil},
	{words("-S", `one ${X`), nil},
	{words("-S", `one 'a`), nil},
	{words("-S", `one "a`), nil},
	{words("-S", `one \q`), nil},
	{words("-S", `one a\`), nil},
	{words("-S", `one a\ b`), nil},
	{words("-S", "one é"), words("%A/one", "é")},
}

func words(list ...string) []string { return list }

// An envLab has the directories of envCalls. Their programs print how they were
// called, and then their environment.
type envLab struct{ a, b string }

func newEnvLab(t *testing.T) envLab {
	t.Helper()
	l := envLab{t.TempDir(), t.TempDir()}
	for _, path := range []string{l.a + "/one", l.b + "/one", l.b + "/two"} {
		const text = "#!/bin/sh\nprintf '%s\\0' \"$0\" \"$@\" END\n/usr/bin/cat </proc/$$/environ\n"
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l envLab) fill(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, strings.NewReplacer("%A", l.a, "%B", l.b).Replace(s))
	}
	return out
}

func (l envLab) env() []string {
	return []string{"X=x y", "PATH=" + l.a + ":" + l.b + ":/usr/bin:/bin", "Y=1"}
}

// started returns what envProgram says in the form of envCalls, and the environment.
func (l envLab) started(list []string) (call, env []string) {
	env = l.env()
	for {
		path, args, after := envProgram(l.fill(list), env)
		if path == "" {
			return nil, nil
		}
		if env = after; base(path) != "env" {
			return append([]string{path}, args...), env
		}
		list = args
	}
}

func TestEnvProgram(t *testing.T) {
	l := newEnvLab(t)
	for _, c := range envCalls {
		want := l.fill(c.want)
		if len(want) > 0 && strings.HasPrefix(want[0], "./") {
			want[0] = l.b + "/" + want[0] // where env goes first
		}
		if got, _ := l.started(c.words); !cmp.Equal(want, got) {
			t.Errorf("%q: want %q, have %q", c.words, want, got)
		}
	}
}

// TestEnvProgramAsEnv calls env(1) itself.
func TestEnvProgramAsEnv(t *testing.T) {
	help, err := exec.Command("/usr/bin/env", "--help").Output()
	if err != nil || !strings.Contains(string(help), "GNU coreutils") {
		t.Skipf("no env of the GNU coreutils here: %v", err)
	}
	l := newEnvLab(t)
	ran := 0
	for _, c := range envCalls {
		if text := strings.Join(c.words, " "); (strings.HasPrefix(text, "-a ") || strings.HasPrefix(text, "--argv0")) && !strings.Contains(string(help), "--argv0") {
			continue // since coreutils 9.5
		}
		cmd := exec.Command("/usr/bin/env", l.fill(c.words)...)
		cmd.Env = l.env()
		out, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		call, environ, ok := strings.Cut(string(out), "\x00END\x00")
		var want []string
		if ok {
			ran++
			want = strings.Split(call, "\x00")
		}
		got, env := l.started(c.words)
		if len(got) > 0 && len(want) > 0 && strings.HasPrefix(want[0], "./") {
			got[0] = "./" + filepath.Base(got[0])
		}
		if !cmp.Equal(want, got) {
			t.Errorf("%q: env starts %q, expected %q", c.words, want, got)
			continue
		}
		for _, name := range []string{"PATH", "X", "Y"} {
			if !ok {
				break
			}
			want, wanted := getenv(strings.Split(environ, "\x00"), name)
			if got, found := getenv(env, name); got != want || found != wanted {
				t.Errorf("%q: %s is %q for env, expected %q", c.words, name, want, got)
			}
		}
	}
	if ran < len(envCalls)/2 {
		t.Errorf("only %d of %d calls started a program", ran, len(envCalls))
	}
}
