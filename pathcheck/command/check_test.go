package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		Roots:     []string{base + "/cache"},
		Home:      base + "/home",
		HomeOf: func(user string) (string, bool) {
			return base + "/out/" + user, user == "someone"
		},
		Lookup: func(name string) (string, bool) {
			return map[string]string{"TMPDIR": base + "/cache", "ETC": "/etc"}[name],
				name == "TMPDIR" || name == "ETC"
		},
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
	var v *Violation
	if !errors.As(err, &v) {
		if err != nil {
			return "error: " + err.Error()
		}
		return fine
	}
	return [...]string{abs, rel, cdOut, network}[v.Kind]
}

type row struct {
	text   string
	want   string
	opaque bool // and something is reported as opaque
}

// rows name $BASE for the directory around the workspace.
var rows = []row{
	// What the plain check is specified to say.
	{"cat /etc/passwd", abs, false},
	{"ls /usr/local/bin/x", abs, false},
	{"rm /var/log/messages", abs, false},
	{"echo hi", fine, false},
	{"cat $BASE/ws/f", fine, false},
	{"cat $BASE/ws", fine, false},
	{"cat $BASE/ws-evil/f", abs, false},
	{"cat $BASE/cache/a/b", fine, false},
	{"cat '$BASE/out/f'", abs, false},
	{`cat "$BASE/out/f";`, abs, false},
	{"cat ~", abs, false},
	{"cat ~/x", abs, false},
	{"cat $BASE/ws/../out/f", abs, false},
	{"cat $BASE/ws/leaves/f", abs, false},
	{"cat $BASE/ws/stays/f", fine, false},
	{"cat $BASE/to-ws/f", fine, false},
	{"cat $BASE/ws/loop/f", fine, false}, // a resolve error keeps the candidate
	{"cat $BASE/ws/no/such/dir", fine, false},
	{"cd ..", cdOut, false},
	{"cd ../", cdOut, false},
	{"cd ../x && ls", cdOut, false},
	{"ls; cd ..", cdOut, false},
	{"/bin/ls", abs, false},
	{"/usr/bin/env python3", abs, false},
	{"echo /", abs, false},

	// What passed it by, and is named all the same.
	{`D=/var/tmp; echo x > "$D/f"`, abs, false},
	{"echo x >/etc/x", abs, false},
	{"echo x>/etc/x", abs, false},
	{"echo x 2>>/etc/x", abs, false},
	{"echo x &>/etc/x", abs, false},
	{"echo x &>>/etc/x", abs, false},
	{"echo x >|/etc/x", abs, false},
	{"cat </etc/x", abs, false},
	{"cat <>/etc/x", abs, false},
	{"echo >&/etc/x", abs, false},
	{"echo 2>&1 >&2 <&0 3>&- 4<&5-", fine, false},
	{"exec 3>/etc/x", abs, false},
	{"exec {fd}>/etc/x", abs, false},
	{"VAR=/etc/x", abs, false},
	{"VAR=/etc/x env", abs, false},
	{"export VAR=/etc", abs, false},
	{"export 'VAR=/etc'", abs, false},
	{"declare -x VAR=/etc", abs, false},
	{"A=(a /etc/x)", abs, false},
	{"A[3]=/etc/x", abs, false},
	{"V=$BASE/ws/a:/etc", abs, false},
	{"PATH=/usr/bin:/bin make", fine, false},
	{"export PATH=/opt/bin:$PATH", fine, false},
	{"make prefix=/etc", abs, false},
	{"cc --sysroot=/opt f.c", abs, false},
	{"cc -I/usr/include f.c", abs, false},
	{"cc -isystem/usr/include f.c", abs, false},
	{"cc -I../inc f.c", rel, false},
	{"cc -Isub/../inc -Lsub/lib f.c", fine, false},
	{"cc -Isub/../../inc f.c", rel, false},
	{"cc -Wl,-rpath,/usr/lib f.c", abs, false},
	{"dd if=/dev/zero of=/etc/x", abs, false},
	{"dd if=/dev/zero of=x", fine, false},
	{"curl -d @/etc/passwd x", abs, false},
	{"curl -d@/etc/passwd x", abs, false},
	{"curl --data=@/etc/passwd x", abs, false},
	{"curl file:///etc/passwd", abs, false},
	{"curl file://localhost/etc/passwd", abs, false},
	{"curl http://host/etc/passwd", fine, false},
	{"curl 'http://host/x?f=/etc'", fine, false},
	{"make a=~/x", abs, false},
	{"V=x:~/y", abs, false},
	{"echo a~/x", fine, false},
	{"echo \\~/x '~/x' \"~\"/x", fine, false},
	{"cat ~someone/f", abs, false},
	{"cat ~nobody-known/f", fine, true},
	{"cat ~+/f", fine, false},
	{"cat ~+/../f", rel + "|" + abs, false},
	{"HOME=$BASE/ws; cat ~/f", fine, false},

	// Quoting.
	{`cat /e"t"c/passwd`, abs, false},
	{`cat /e't'c/passwd`, abs, false},
	{`cat \/etc/passwd`, abs, false},
	{`cat ""/etc/passwd`, abs, false},
	{`cat $'/etc/passwd'`, abs, false},
	{`cat $'\x2fetc'`, abs, false},
	{`cat $'\057etc'`, abs, false},
	{`cat $'/etc'`, abs, false},
	{`cat $"/etc"`, abs, false},
	{"cat /et\\\nc/passwd", abs, false},
	{"echo 'see /etc/passwd'", fine, false},
	{"echo 'a b' \"c d\" e\\ f", fine, false},
	{"cat sub/'a b'/../../../x", rel, false},

	// Relative paths.
	{"cat ../x", rel, false},
	{"cat sub/../x", fine, false},
	{"cat sub/../../x", rel, false},
	{"cat ..", rel, false},
	{"cat leaves/x", rel, false},
	{"cat stays/x", fine, false},
	{"cat stays/../x", fine, false},
	{"cat leaves/../x", rel, false}, // ".." stands behind the link
	{"echo x > leaves/x", rel, false},
	{"echo x > ../x", rel, false},
	{"git log a..b ..b a.. ...", fine, false},
	{"../tool", rel, false},
	{"./tool sub/x", fine, false},

	// Directories.
	{"cd sub && cd ..", fine, false},
	{"cd sub && cd .. && cd ..", cdOut, false},
	{"cd sub/deep && cat ../../x", fine, false},
	{"cd sub/deep && cat ../../../x", rel, false},
	{"cd sub; cd ..", cdOut, false}, // if there is no sub
	{"cd sub || exit 1; cd ..", fine, false},
	{"cd sub || { echo no >&2; exit 1; }; cd ..", fine, false},
	{"if cd sub; then cd ..; fi", fine, false},
	{"cd sub; cat ../x", fine, true},
	{"cd sub; echo x > ../x", rel, false},
	{"(cd sub); cat ../x", rel, false},
	{"(cd sub && cat ../x)", fine, false},
	{"cd sub | cat; cat ../x", rel, false},
	{"cd sub & cat ../x", rel, false},
	{"x=$(cd sub && pwd); cat ../x", rel, false},
	{"{ cd sub && cat ../x; }", fine, false},
	{"cd", cdOut, false},
	{"cd ~", abs, false},
	{"cd -", fine, true},
	{"cd sub && cd -", fine, false},
	{"cd sub && cd - && cat ../x", rel, false},
	{"cd $BASE/out", abs, false},
	{"cd $BASE/cache && cd ..", cdOut, false},
	{"cd $BASE/cache && cat x", fine, false},
	{"cd leaves", cdOut, false},
	{"cd -P stays && cd .. && cat x", fine, false},
	{"cd -P stays && cd ../.. && cat x", fine, false},
	{"cd -P stays && cd ../../..", cdOut, false},
	{"cd -- sub && cd ..", fine, false},
	{"command cd ..", cdOut, false},
	{"builtin cd ..", cdOut, false},
	{"'cd' ..", cdOut, false},
	{"X=cd; $X ..", cdOut, false},
	{"cd \"$WHERE\"; cat ../x", fine, true},
	{"cd \"$WHERE\"; echo > x", fine, true},
	{"pushd sub && popd && cat ../x", rel, false},
	{"pushd sub && cat ../x", fine, false},
	{"pushd ..", cdOut, false},
	{"pushd sub && pushd && cat ../x", rel, false},
	{"CDPATH=/etc; cd sub", abs, true},
	{"cd() { builtin cd \"$1\"; }; cd ..", rel, false},
	{"f() { cd sub; }; f && cd ..", fine, false},
	{"f() { cd ..; }; f", cdOut, false},
	{"f() { cat /etc/x; }", abs, false},
	{"f() { cat $1; }; f /etc/x", abs, false},
	{"f() { cd sub || return 1; cat ../x; }; f", fine, false},
	{"f() { local D=/etc; }; f; cat \"$D/x\"", abs, true},
	{"for d in sub sub/deep; do (cd $d && cat ../x); done", fine, false},
	{"for f in /etc/x a; do cat $f; done", abs, false},
	{"while true; do cd sub || break; done; cat x", fine, true},
	{"case $x in a) cd sub;; esac; echo > ../x", rel, false},
	{"for i in 1 2 3; do cd ..; done", cdOut, false},
	{"cd sub/deep && for i in 1 2 3; do cd ..; done", cdOut, false},
	{"cd sub/deep && for i in 1 2; do cd ..; done", fine + "|" + cdOut, false},
	{"while read l; do cat \"$l\"; done < list", fine, true},

	// What cannot be evaluated.
	{"cat $X", fine, true},
	{"cat \"$X/f\"", fine, true},
	{"cat /etc/$X", abs, true},
	{"cat $BASE/ws/$X", fine, true},
	{"cat $BASE/ws/$X/../../y", abs, true},
	{"cat $ETC/passwd", abs, false},
	{"cat $TMPDIR/x", fine, false},
	{"cat $HOME/x", abs, false},
	{"cat $PWD/x", fine, false},
	{"cat $(pwd)/x", fine, false},
	{"cat $(pwd)/../x", abs, false},
	{"cat `pwd`/x", fine, false},
	{"cat $(cat list)", fine, true},
	{"cat $(cat /etc/list)", abs, true},
	{"cat `cat /etc/list`", abs, true},
	{"cat ${X:-/etc/x}", fine, true},
	{"cat ${X:-$(cat /etc/x)}", abs, true},
	{"D=a; D+=/../../x; cat $D", rel, false},
	{"eval 'cat /etc/x'", abs, false},
	{"eval cat /etc/x", abs, false},
	{"eval \"$X\"", fine, true},
	{"eval 'cd sub'; echo > ../x", rel, false},
	{"$X ..; echo > x", rel, true},
	{"$X sub; echo > x", fine, true},
	{". ./env.sh", fine, true},
	{". /etc/profile", abs, true},
	{"cat /etc/*", abs, true},
	{"ls *.go", fine, true},
	{"ls /*", abs, true},
	{"cat /etc/pass?d", abs, true},
	{"cat {/etc,$BASE/ws}/x", abs, false},
	{"cat $BASE/ws/{a,b}", fine, false},
	{"cat $BASE/ws/{a,../b}", abs, false},
	{"cat $BASE/ws/{1..9}", fine, false},
	{"cat $BASE/ws/{1..a} $BASE/ws/{a,{1..2}}", fine, false},
	{"cat {~,x}/f", abs, false},
	{"cat ~{someone,nobody-known}/f", abs, true},
	{"make {a,b}=~/x", abs, false},
	{"cat {a}b,/etc/x}", abs, false},
	{"cat {a,b{c,/etc/x}", fine, false}, // b/etc/x
	{"cat {a,{b,/etc/x}", fine, false},  // {a,/etc/x
	{"find . -exec x {},/etc/x}", fine, false},
	{"cat {1..$X,/etc/x}", abs, true},
	{"cat {1..$X}", fine, true},
	{"D=sub; cat $D{,X}/y", fine, true}, // $DX
	{"D=sub; cat ${D}{,X}/y", fine, false},
	{"cat $BASE/ws/f$$ $BASE/ws/$((1+2))", fine, false},
	{"echo $? $# $!", fine, false},
	{"read D; cat $D", fine, true},
	{"D=/etc; read D; cat $D/x", abs, true},
	{"D=sub; unset D; cat $D/x", fine, true},
	{"D=sub; printf -v D /etc; cat $D/x", abs, true},
	{"D=sub; declare -n R=D; R=/etc; cat $D/x", abs, true},
	{"((D=5)); cat $D/x", fine, true},
	{"X='a[$(cat f)]'; ((X))", fine, true},
	{"D='a b'; cat $D", fine, true},
	{"D='sub/a b'; cat \"$D\"", fine, false},
	{"IFS=x; D=subx; cat $D", fine, true},
	{"xargs rm", fine, true},
	{"alias ls='cat /etc/x'", fine, true},
	{"echo ${!X}", fine, true},

	// Data.
	{"cat <<'EOF'\n/etc/passwd $(cat /etc/x)\nEOF", fine, false},
	{"cat <<EOF\n/etc/passwd\nEOF", fine, false},
	{"cat <<EOF\n$(cat /etc/x)\nEOF", abs, false},
	{"cat <<< /etc/passwd", fine, false},
	{"cat <<< $(cat /etc/x)", abs, false},
	{"cat <<-EOF > /etc/x\n\ta\n\tEOF", abs, false},
	{"# cat /etc/passwd", fine, false},
	{"echo hi # /etc/passwd", fine, false},
	{"[[ -f /etc/passwd ]]", abs, false},
	{"[ -f /etc/passwd ]", abs, false},
	{"[[ $x == /etc/* ]]", fine, false},
	{"case $x in /etc/*) ;; esac", fine, false},
	{"diff <(cat a) <(cat b)", fine, false},
	{"diff <(cat /etc/a) b", abs, false},

	// Devices.
	{"echo >/dev/null 2>&1", fine, false},
	{"cat /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty", fine, false},
	{"cat /dev/stdin /dev/stdout /dev/stderr /dev/fd/0 /dev/fd/12", fine, false},
	{"cat /dev/fd/../../etc/passwd", abs, false},
	{"cat /dev/shm/x /dev/pts/0", fine, false},
	{"cat /dev/shm/../sda", abs, false},
	{"cat /dev/sda", abs, false},
	{"cat /dev/nullx", abs, false},
	{"cat /proc/self/root/etc/x", abs, false},
	{"cat /proc/self/cwd/x", abs, false},
	{"exec 3<>/dev/tcp/1.2.3.4/80", fine, false},
	{"cat /dev/tcp/1.2.3.4/80", abs, false},

	// Nested command strings.
	{"bash -c 'cat /etc/x'", abs, false},
	{"bash -lc \"cat /etc/x\"", abs, false},
	{"sh -c 'cd ..'", cdOut, false},
	{"sh -c 'cd sub'; cat ../x", rel, false},
	{"cd sub && sh -c 'cat ../x'", fine, false},
	{"bash --norc -o pipefail -c 'cat /etc/x'", abs, false},
	{"env A=b bash -c 'cat /etc/x'", abs, false},
	{"sudo -u me timeout 5 sh -ec 'cat /etc/x'", abs, false},
	{"find . -exec sh -c 'cat /etc/x' \\;", abs, false},
	{"xargs -n1 sh -c 'cat /etc/x'", abs, true},
	{"nice -n 5 bash -c 'bash -c \"cat /etc/x\"'", abs, false},
	{"bash -c \"$X\"", fine, true},
	{"D=sub; bash -c 'cat $D/x'", fine, true},
	{"D=/etc bash -c 'cat $D/x'", abs, false},
	{"sh -c 'cat \"$1\"' _ sub/x", fine, false},
	{"sh -c 'cd \"$1\"' _ ..", rel + "|" + cdOut, false},
	{"bash <<'EOF'\ncat /etc/x\nEOF", abs, false},
	{"bash <<< 'cat /etc/x'", abs, false},
	{"echo x | bash", fine, true},
	{"bash script.sh", fine, false},
	{"su -c 'cat /etc/x'", abs, false},
	{"script -c 'cat /etc/x' out", abs, false},
	{"trap 'rm -f tmp' EXIT", fine, false},
	{"trap 'rm -f /etc/x' EXIT", abs, false},
	{"exec bash -c 'cat /etc/x'", abs, false},
	{"watch 'cat /etc/x'", fine, true},

	// Text that does not parse: what is before the error is followed, and the
	// plain scan is applied to all of it.
	{"cat <<", fine, true},
	{"echo 'unclosed /etc/passwd", abs, true},
	{"cat '$BASE/ws/f", fine, true},
	{"cd ..\n)", cdOut, true},
	{") ; cd ../x", cdOut, true},
	{"echo >/etc/x\n)", abs, true},
	{"echo a\x00 /etc/x", abs, true},
	{"", fine, false},
	{" \n\t", fine, false},
}

func TestCheck(t *testing.T) {
	base, o := tree(t)
	for _, r := range rows {
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

func TestCheckTexts(t *testing.T) {
	base, o := tree(t)
	for _, tc := range []struct{ text, want string }{
		{"cat /etc/passwd", `sandbox violation: absolute path "/etc/passwd" escapes workspace "` + base + `/ws"`},
		{"cd ..", `sandbox violation: cd outside workspace is not permitted in workspace sandbox scope`},
		{"cat ../x", `sandbox violation: path "../x" escapes workspace "` + base + `/ws"`},
		{"cat $'/et\\nc'", `sandbox violation: absolute path "/et\nc" escapes workspace "` + base + `/ws"`},
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
		{"local", "deny", "c'ur'l x", network},
		{"local", "deny", "env c\\url x", network},
		{"local", "deny", "sh -c \"sh -c 'c\\\\url x'\"", network},
		{"local", "deny", "echo > /dev/tcp/h/80", network},
		{"local", "deny", "exec 3<>/dev/udp/$H/53", network},
		{"workspace", "deny", "echo > /dev/tcp/h/80", network},
		{"workspace", "deny", "curl x", fine}, // the words are for local only
		{"workspace", "deny", "cat /etc/x", abs},
	} {
		o.Scope, o.Network = tc.scope, tc.network
		if _, err := Check(tc.text, o); kindOf(err) != tc.want {
			t.Errorf("%s/%s %q: got %v, want %q", tc.scope, tc.network, tc.text, err, tc.want)
		}
	}
	o.Scope, o.Network = "everything", ""
	if _, err := Check("x", o); !errors.Is(err, ErrScope) || err.Error() != `unknown sandbox scope "everything"` {
		t.Errorf("unknown scope: got %v", err)
	}
	o.Scope, o.Network = "workspace", "some"
	if _, err := Check("x", o); !errors.Is(err, ErrNetwork) {
		t.Errorf("unknown network: got %v", err)
	}
}

func TestCheckNames(t *testing.T) {
	base, o := tree(t)
	text := "/bin/ls sub/x > out.txt 2>>leaves/log < in; cd sub && V=/v PATH=/p:/q cat"
	res, _ := Check(text, o)
	want := []Named{
		{Text: "/bin/ls", Path: mustResolve(t, "/bin/ls"), Use: Exec, Pos: 0, Outside: true},
		{Text: "sub/x", Path: base + "/ws/sub/x", Use: Argument, Pos: 8},
		{Text: "out.txt", Path: base + "/ws/out.txt", Use: Write, Pos: 16},
		{Text: "leaves/log", Path: base + "/out/log", Use: Write, Pos: 27, Outside: true},
		{Text: "in", Path: base + "/ws/in", Use: Read, Pos: 40},
		{Text: "sub", Path: base + "/ws/sub", Use: Dir, Pos: 47},
		{Text: "/v", Path: "/v", Use: Assign, Pos: 56, Outside: true},
		{Text: "/p", Path: "/p", Use: Search, Pos: 64, Outside: true},
		{Text: "/q", Path: "/q", Use: Search, Pos: 64, Outside: true},
	}
	if diff := cmp.Diff(want, res.Paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	if len(res.Opaque) > 0 {
		t.Errorf("opaque: %+v", res.Opaque)
	}
}

func mustResolve(t *testing.T, p string) string {
	t.Helper()
	q, err := resolve(p)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestCheckResolveFunc(t *testing.T) {
	o := Options{Scope: ScopeWorkspace, Workspace: "/w", Resolve: func(p string) (string, error) {
		if p == "/elsewhere" {
			return "/w/x", nil
		}
		return p, nil
	}}
	if _, err := Check("cat /elsewhere", o); err != nil {
		t.Errorf("the function's answer does not count: %v", err)
	}
	o.Resolve = func(string) (string, error) { return "/w", errors.New("no") }
	if _, err := Check("cat /elsewhere", o); kindOf(err) != abs {
		t.Errorf("with an error the candidate must stay: %v", err)
	}
	if _, err := Check("cat /w/../w/x", o); err != nil {
		t.Errorf("with an error the clean candidate must count: %v", err)
	}
}

func TestCheckLimits(t *testing.T) {
	_, o := tree(t)
	for name, text := range map[string]string{
		"length":       "true " + strings.Repeat("x ", MaxLength),
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
		"shells":       strings.Repeat("eval ", 40) + "cat sub/x",
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
				if strings.HasPrefix(op.Why, "cannot be read") || strings.HasPrefix(op.Why, "too long") {
					t.Errorf("given up: %+v", op)
				}
			}
		})
	}
	for name, text := range map[string]string{
		"calls":     "f() { f; f; f; }; f; cat /etc/x",
		"doubling":  "a() { :; }; b() { a; a; a; a; a; a; a; a; }; c() { b; b; b; b; b; b; b; b; }; d() { c; c; c; c; c; c; c; c; }; e() { d; d; d; d; d; d; d; d; }; g() { e; e; e; e; e; e; e; e; }; h() { g; g; g; g; g; g; g; g; }; h; h; cat /etc/x",
		"loops":     strings.Repeat("while a; do ", 60) + "cd x" + strings.Repeat("; done", 60) + "; cat /etc/x",
		"variables": manyVars(4000) + "cat /etc/x",
		"values":    "a=xx; " + strings.Repeat("a=$a$a; ", 60) + "cat /etc/x",
		"appended":  "a=xx; " + strings.Repeat("a+=$a; ", 60) + "cat /etc/x",
		"fields":    "a=" + strings.Repeat("x", 20000) + "; : " + strings.Repeat(`"$a" `, 7000) + "; cat /etc/x",
		"one word":  "a=" + strings.Repeat("x", 20000) + `; : "` + strings.Repeat("$a", 20000) + `"; cat /etc/x`,
		"lists":     "a=" + strings.Repeat("/w/x:", 4000) + "; " + strings.Repeat("b=$a; ", 6000) + "cat /etc/x",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Check(text, o); kindOf(err) != abs {
				t.Errorf("got %v", err)
			}
		})
	}
}

func manyVars(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("v" + strings.Repeat("x", i%10) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + "=1;")
	}
	return b.String()
}
