package command

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mvdan.cc/sh/v3/syntax"
)

// expanded returns what the words of a text expand to, behind the first, or why
// that is not known.
func expanded(t *testing.T, text string) (out []string, why string) {
	t.Helper()
	c := newChecker(Options{Scope: ScopeWorkspace, Workspace: "/w"})
	r := c.parse(text, 0, "bash")
	if r.err != nil {
		t.Fatalf("%q: %v", text, r.err)
	}
	s := c.start()
	for _, name := range []string{"v", "e"} {
		s = r.set(s, name, variable{text: map[string]string{"v": "V"}[name], known: true})
	}
	fields, _ := r.words(r.list[0].Cmd.(*syntax.CallExpr).Args[1:], s)
	for _, f := range fields {
		if f.partly() {
			return nil, f.why
		}
		out = append(out, f.text)
	}
	return out, ""
}

// TestBracesAsBash expands random words and asks bash the same.
func TestBracesAsBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"{", "{", "{", "}", "}", "}", ",", ",", ",", "a", "bc", "'x,{'", `"y}"`, `\{`, `\,`, `\}`, `""`, "${v}", "$e", ".", "..", "1", "é"}
	var words []string
	var script strings.Builder
	script.WriteString("set -f; v=V; e=\n")
	for len(words) < 3000 {
		word := ""
		for range 1 + rnd.IntN(14) {
			word += pieces[rnd.IntN(len(pieces))]
		}
		if strings.Contains(word, "$ebc") || strings.Contains(word, "$ea") || strings.Contains(word, "$e1") {
			continue // another name
		}
		words = append(words, word)
		fmt.Fprintf(&script, "f() { printf '[%%s]' \"$@\"; }; f %s; echo\n", word)
	}
	cmd := exec.Command(bash, "--norc", "-s")
	cmd.Stdin = strings.NewReader(script.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(out), "\n")
	many, opaque := 0, 0
	for i, word := range words {
		got, why := expanded(t, ": "+word)
		switch {
		case why != "":
			opaque++
			continue
		case strings.Contains(strings.Join(got, ""), "0"):
			continue // a range, which is told apart from nothing
		}
		if len(got) > 1 {
			many++
		}
		text := "[]"
		if len(got) > 0 {
			text = "[" + strings.Join(got, "][") + "]"
		}
		if diff := cmp.Diff(lines[i], text); diff != "" {
			t.Errorf("%s (-bash +here):\n%s", word, diff)
		}
	}
	if many < len(words)/20 || opaque > len(words)/20 {
		t.Errorf("of %d words, %d have alternatives, %d are opaque", len(words), many, opaque)
	}
}
