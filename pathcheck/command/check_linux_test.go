package command

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// tree makes a workspace beside other directories, under a path without
// symlinks, and returns options for it.
func tree(t testing.TB) (base string, o Options) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"ws/sub/deep", "ws-evil", "cache", "home", "out"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"ws/leaves": filepath.Join(base, "out"), "ws/stays": "sub/deep", "to-ws": "ws", "ws/loop": "loop",
	} {
		if err := os.Symlink(to, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	return base, Options{
		Scope:     ScopeWorkspace,
		Workspace: base + "/ws",
		Dir:       base + "/ws",
		Roots:     []string{base + "/cache"},
		Lookup: func(name string) (string, bool) {
			v, ok := map[string]string{"HOME": base + "/home", "TMPDIR": base + "/cache", "ETC": "/etc"}[name]
			return v, ok
		},
		Resolve: resolve,
	}
}

// outcome of a row: what the check must say.
const (
	fine    = ""
	abs     = "absolute"
	rel     = "relative"
	cdOut   = "cd"
	network = "network"
)

func kindOf(err error) string {
	if err == nil {
		return fine
	}
	var v Violation
	if errors.As(err, &v) {
		for kind, text := range map[string]string{abs: "absolute path", rel: "path", cdOut: "cd outside", network: "\""} {
			if strings.HasPrefix(string(v), text) {
				return kind
			}
		}
	}
	return "error: " + err.Error()
}

func resolve(path string) (string, error) {
	loc, err := pathcheck.Resolve(pathcheck.OS{}, path)
	return loc.Path, err
}

type example struct {
	text   string
	want   string
	opaque bool // and something is reported as opaque
}

func TestCheck(t *testing.T) {
	base, o := tree(t)
	for _, r := range slices.Concat(rows, moreRows) {
		text := strings.ReplaceAll(r.text, "$BASE", base)
		t.Run(r.text, func(t *testing.T) {
			res, err := Check(text, o)
			ok := false
			for want := range strings.SplitSeq(r.want, "|") {
				ok = ok || kindOf(err) == want
			}
			if !ok {
				t.Errorf("got %q (%v), want %q\nresult %+v", kindOf(err), err, r.want, res)
			}
			if got := len(res.Opaque) > 0; got != r.opaque {
				t.Errorf("opaque %+v, want some: %v", res.Opaque, r.opaque)
			}
		})
	}
}

// A cd that leaves the workspace is refused also where it leads into an allowed
// root.
func TestCheckLeaves(t *testing.T) {
	base, o := tree(t)
	o.Roots = append(o.Roots, base)
	for text, want := range map[string]string{
		"cd ..":                        cdOut,
		"cd ../":                       cdOut,
		"cd sub/../..":                 cdOut,
		"cd sub && cd ../..":           cdOut,
		"cd ../ws-evil":                cdOut,
		"pushd .. && ls":               cdOut,
		"sh -c 'cd ..'":                cdOut,
		"(cd ..)":                      cdOut,
		"cd ../ws":                     fine,
		"cd sub && cd .. && touch f":   fine,
		"cd $BASE && touch f":          fine,
		"cd $BASE/cache && cd ../out":  fine,
		"cd leaves && touch f && cd .": fine,
		"touch ../f > ../g":            fine,
	} {
		if _, err := Check(strings.ReplaceAll(text, "$BASE", base), o); kindOf(err) != want {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestCheckTexts(t *testing.T) {
	base, o := tree(t)
	for _, tc := range []struct{ text, want string }{
		{"touch /etc/passwd", `sandbox violation: absolute path "/etc/passwd" escapes workspace "` + base + `/ws"`},
		{"cd ..", `sandbox violation: cd outside workspace is not permitted in workspace sandbox scope`},
		{"touch ../x", `sandbox violation: path "../x" escapes workspace "` + base + `/ws"`},
		{"touch '/et\nc'", `sandbox violation: absolute path "/et\nc" escapes workspace "` + base + `/ws"`},
	} {
		_, err := Check(tc.text, o)
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s: got %v, want %s", tc.text, err, tc.want)
		}
	}
	o.Scope, o.Network = ScopeLocal, NetworkDeny
	_, err := Check("curl x", o)
	if want := `sandbox violation: "curl" reaches the network, which is denied`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestCheckScopes(t *testing.T) {
	_, o := tree(t)
	for _, tc := range []struct {
		scope, network, text, want string
	}{
		{"", "", "cat /etc/x; cd ..; curl x", fine},
		{"unrestricted", "deny", "cat /etc/x; curl x", fine},
		{"local", "", "cat /etc/x; curl x", fine},
		{"local", "allow", "curl x > /dev/tcp/h/80", fine},
		{"local", "deny", "cat /etc/x; cd ..", fine},
		{"local", "deny", "curl x", network},
		{"local", "deny", "CuRl x", network},
		{"local", "deny", "a && wget x", network},
		{"local", "deny", "/usr/bin/nc -l", network},
		{"local", "deny", "echo 'netcat'", network},
		{"local", "deny", "bash -c \"telnet h\"", network},
		{"local", "deny", "curly ncurses wget2 _nc", fine},
		{"local", "deny", "c'ur'l x", fine}, // the words of the text, as they stand
		{"local", "deny", "echo > /dev/tcp/h/80", network},
		{"local", "deny", "exec 3<>/dev/udp/h/53", network},
		{"workspace", "deny", "echo > /dev/tcp/h/80", network},
		{"workspace", "deny", "curl x", fine}, // the words are for local only
		{"workspace", "deny", "touch /etc/x", abs},
	} {
		o.Scope, o.Network = tc.scope, tc.network
		if _, err := Check(tc.text, o); kindOf(err) != tc.want {
			t.Errorf("%s/%s %q: got %v, want %q", tc.scope, tc.network, tc.text, err, tc.want)
		}
	}
	o.Scope, o.Network = "everything", ""
	if _, err := Check("x", o); err == nil || err.Error() != `unknown sandbox scope "everything"` {
		t.Errorf("unknown scope: got %v", err)
	}
	o.Scope, o.Network = "workspace", "some"
	if _, err := Check("x", o); err == nil {
		t.Errorf("unknown network: got %v", err)
	}
}

func TestCheckNames(t *testing.T) {
	base, o := tree(t)
	text := "/bin/ls sub/x > out.txt 2>>leaves/log < in; cd sub && V=/v:/w PATH=/p touch ./$X y"
	res, _ := Check(text, o)
	ls, err := resolve("/bin/ls")
	if err != nil {
		t.Fatal(err)
	}
	want := Result{
		Paths: []Named{
			{Text: "out.txt", Path: base + "/ws/out.txt", Use: write, Pos: 16},
			{Text: "leaves/log", Path: base + "/out/log", Use: write, Pos: 27, Outside: true},
			{Text: "in", Path: base + "/ws/in", Use: read, Pos: 40},
			{Text: "/bin/ls", Path: ls, Use: program, Pos: 0, Outside: true},
			{Text: "sub/x", Path: base + "/ws/sub/x", Use: read, Pos: 8},
			{Text: "sub", Path: base + "/ws/sub", Use: enter, Pos: 47},
			{Text: "/v", Path: "/v", Use: assign, Pos: 56, Outside: true},
			{Text: "/w", Path: "/w", Use: assign, Pos: 56, Outside: true},
		},
		Opaque: []Opaque{{Text: "./$X", Why: "value is not known", Pos: 76}},
	}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheckResolveFunc(t *testing.T) {
	_, o := tree(t)
	o.Workspace, o.Dir = "/w", "/w"
	o.Resolve = func(p string) (string, error) { return strings.Replace(p, "/elsewhere", "/w/x", 1), nil }
	if _, err := Check("touch /elsewhere", o); err != nil {
		t.Errorf("the function's answer does not count: %v", err)
	}
	o.Resolve = func(string) (string, error) { return "/w", errors.New("no") }
	if _, err := Check("touch /elsewhere", o); kindOf(err) != abs {
		t.Errorf("with an error the candidate must stay: %v", err)
	}
	if _, err := Check("touch /w/../w/x", o); err != nil {
		t.Errorf("with an error the clean candidate must count: %v", err)
	}
}

func TestCheckLimits(t *testing.T) {
	_, o := tree(t)
	for name, text := range map[string]string{
		"length":       "true " + strings.Repeat("x ", maxLength),
		"substitution": strings.Repeat("$(", 20000),
		"closed":       strings.Repeat("$(", 5000) + "x" + strings.Repeat(")", 5000),
		"subshell":     strings.Repeat("(", 30000),
		"subshells":    strings.Repeat("( ", 30000) + "x" + strings.Repeat(" )", 1000),
		"braces":       strings.Repeat("{ ", 30000),
		"if":           strings.Repeat("if ", 20000),
		"parameters":   strings.Repeat("${x:-", 12000),
		"arithmetic":   "echo $((" + strings.Repeat("(", 60000),
		"unary":        "echo $((" + strings.Repeat("- ", 30000) + "1))",
		"backquotes":   strings.Repeat("`", 60000),
		"quotes":       strings.Repeat(`"$(`, 20000),
		"test":         "[[ " + strings.Repeat("! ", 30000) + "x ]]",
		"power":        "echo $((1" + strings.Repeat("**1", 20000) + "))",
	} {
		t.Run(name, func(t *testing.T) {
			res, err := Check(text, o)
			if err != nil || len(res.Opaque) == 0 {
				t.Errorf("got %v, %d opaque; want no error and an opaque part", err, len(res.Opaque))
			}
			if _, err := Check(text+" /etc/x", o); kindOf(err) != abs {
				t.Errorf("with an absolute path behind it: %v", err)
			}
		})
	}
	for name, text := range map[string]string{
		"pipes":      "true" + strings.Repeat(" | a", 15000),
		"and":        "true" + strings.Repeat(" && a", 12000),
		"list":       strings.Repeat("a;", 30000),
		"shells":     nestedShells(maxNested),
		"words":      "echo" + strings.Repeat(" a", 30000),
		"additions":  "echo $((1" + strings.Repeat("+1", 30000) + "))",
		"some depth": strings.Repeat("$(echo ", 50) + "x" + strings.Repeat(")", 50),
	} {
		t.Run(name, func(t *testing.T) {
			res, err := Check(text, o)
			if err != nil {
				t.Error(err)
			}
			for _, op := range res.Opaque {
				if strings.HasPrefix(op.Why, "cannot be read") || strings.HasPrefix(op.Why, "too long") || strings.HasPrefix(op.Why, "what the shell") {
					t.Errorf("given up: %+v", op)
				}
			}
		})
	}
	for name, text := range map[string]string{
		"shells":    nestedShells(maxNested + 1),
		"calls":     "f() { f; f; f; }; f",
		"variables": strings.Repeat("a=1;", 8000) + strings.Repeat("$b;", 8000),
		"values":    "a=xx; " + strings.Repeat("a=$a$a; ", 60) + "touch $a",
		"fields":    "a=" + strings.Repeat("x", 20000) + "; : " + strings.Repeat(`"$a" `, 7000),
		"one word":  "a=" + strings.Repeat("x", 20000) + `; touch "` + strings.Repeat("$a", 20000) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			res, err := Check(text, o)
			if err != nil || len(res.Opaque) == 0 {
				t.Errorf("%v, %d opaque; want some", err, len(res.Opaque))
			}
			if _, err := Check("touch /etc/x; "+text, o); kindOf(err) != abs {
				t.Errorf("with a path before it: %v", err)
			}
		})
	}
}

// nestedShells is a text for a shell in a shell in a shell.
func nestedShells(n int) string {
	text, escape := "touch x", strings.NewReplacer(`\`, `\\`, " ", `\ `)
	for range n {
		text = "sh -c " + escape.Replace(text)
	}
	return text
}
