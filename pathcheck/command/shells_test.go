package command

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// argvs are ways to start a shell; TEXT stands for a command string.
var argvs = []string{
	"-c TEXT", "-lc TEXT", "-cl TEXT", "-ec TEXT", "-ce TEXT", "-c -e TEXT", "-e -c TEXT", "-xc TEXT",
	"-c -- TEXT", "-c - TEXT", "-- -c TEXT", "- -c TEXT", "-c -x -e TEXT other words", "+c TEXT", "+x -c TEXT", "+xc TEXT",
	"-o errexit -c TEXT", "-c -o errexit TEXT", "-co errexit TEXT", "-oc errexit TEXT", "+o errexit -c TEXT",
	"-o errexit -o nounset -c TEXT", "-eo nounset -c TEXT", "-oo errexit nounset -c TEXT",
	"-O extglob -c TEXT", "-OO extglob nullglob -c TEXT", "+O extglob -c TEXT", "-cO extglob TEXT", "-Oo extglob errexit -c TEXT",
	"--norc -c TEXT", "-norc -c TEXT", "--rcfile /dev/null -c TEXT", "-rcfile /dev/null -c TEXT", "--init-file /dev/null -c TEXT",
	"--rcfile -c TEXT", "--noprofile --norc -lc TEXT", "--posix -c TEXT", "--login -c TEXT", "-c --norc TEXT", "-e --norc -c TEXT",
	"--help -c TEXT", "--version -c TEXT", "--nosuch -c TEXT", "-norcx -c TEXT", "-Z -c TEXT", "-c", "-c --", "-s -c TEXT", "-sc TEXT", "-cs TEXT",
	"-oerrexit -c TEXT", "-c -oerrexit TEXT", "--errexit -c TEXT", "TEXT -c TEXT", "-c TEXT -c TEXT", "-cc TEXT", "-c -c TEXT",
	"-ic TEXT", "--norc -ic TEXT", "-i -c TEXT", "--noediting -c TEXT", "--verbose -c TEXT", "-p -c TEXT", "-b -c TEXT", "-bc TEXT",
	"--restricted -c TEXT", "-c TEXT TEXT", "-a -b -e -f -h -k -c TEXT", "-u -c TEXT", "+e +u -c TEXT", "+- -c TEXT", "--login -lc TEXT", "-ofoo -c TEXT",
	"-o posix -c TEXT", "-o pipefail -c TEXT", "-o nosuch -c TEXT", "-O nosuch -c TEXT", "-P -c TEXT", "-T x -c TEXT", "-R x -c TEXT",
}

// realShells are those that can be tried here, with the words before the options.
func realShells(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, name := range []string{"bash", "dash", "zsh", "ksh93", "mksh", "yash"} {
		if p, err := exec.LookPath(name); err == nil {
			out[name] = []string{p}
		}
	}
	if p, err := exec.LookPath("busybox"); err == nil {
		out["busybox"] = []string{p, "sh"}
	}
	for _, need := range []string{"bash", "dash"} {
		if out[need] == nil && os.Getenv("CI") != "" {
			t.Fatalf("%s is not installed", need)
		}
	}
	if len(out) == 0 {
		t.Skip("no shell to compare with")
	}
	return out
}

// ran starts a real shell and returns which of its arguments it took for the
// command string: each TEXT writes its own index.
func ran(t *testing.T, head, args []string) string {
	t.Helper()
	dir := t.TempDir()
	mark := filepath.Join(dir, "mark")
	cmd := exec.Command(head[0], append(append([]string(nil), head[1:]...), args...)...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "MARK=" + mark, "TERM=dumb", "ZDOTDIR=" + dir}
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader("")
	_ = cmd.Run() // a refusal is an answer too
	got, err := os.ReadFile(mark)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(got))
}

// fill replaces each TEXT by one that says which argument it is.
func fill(line string) []string {
	words := strings.Fields(line)
	for i, w := range words {
		if w == "TEXT" {
			words[i] = `echo ` + string(rune('A'+i)) + ` >"$MARK"`
		}
	}
	return words
}

// compare checks that what a shell runs is found. What a shell refuses may be, too.
func compare(t *testing.T, name string, head, args []string) {
	t.Helper()
	argv := append(append([]string(nil), head...), args...)
	i, ok := ShellCommand(argv, "")
	want := ran(t, head, args)
	if want != "" {
		want = want[:1]
	}
	got := ""
	if ok && strings.HasPrefix(argv[i], "echo ") {
		got = argv[i][5:6]
	}
	if got != want && want != "" {
		t.Errorf("%s %q: ShellCommand says %d (ok %v), the shell ran argument %q", name, args, i, ok, want)
	}
}

func TestShellCommandAgainstRealShells(t *testing.T) {
	for name, head := range realShells(t) {
		t.Run(name, func(t *testing.T) {
			some := 0
			for _, line := range argvs {
				args := fill(line)
				compare(t, name, head, args)
				if ran(t, head, args) != "" {
					some++
				}
			}
			if some < 10 {
				t.Fatalf("only %d command strings ran: the comparison proves nothing", some)
			}
		})
	}
}

func TestShellCommandRandomAgainstRealShells(t *testing.T) {
	parts := []string{
		"-c", "-c", "-lc", "-e", "+e", "-x", "-o errexit", "-eo nounset", "-O extglob", "--norc", "--noprofile",
		"--rcfile /dev/null", "--posix", "--", "-", "TEXT", "TEXT", "-s", "+c", "-ec", "--login", "-co errexit", "word",
	}
	for name, head := range realShells(t) {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, 2))
			for range 150 {
				var line []string
				for range 1 + rnd.IntN(5) {
					line = append(line, parts[rnd.IntN(len(parts))])
				}
				compare(t, name, head, fill(strings.Join(append(line, "TEXT"), " ")))
			}
		})
	}
}
