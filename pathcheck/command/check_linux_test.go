package command

import (
	"errors"
	"os"
	"path/filepath"
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

// rows name $BASE for the directory around the workspace.
var rows = []example{
	// What the plain check is specified to say.
	{"touch /etc/passwd", abs, false},
	{"ls /usr/local/bin/x", fine, false},
	{"rm /var/log/messages", abs, false},
	{"echo hi", fine, false},
	{"touch $BASE/ws/f", fine, false},
	{"touch $BASE/ws", fine, false},
	{"touch $BASE/ws-evil/f", abs, false},
	{"touch $BASE/cache/a/b", fine, false},
	{"touch '$BASE/out/f'", abs, false},
	{`touch "$BASE/out/f";`, abs, false},
	{"touch ~", abs, false},
	{"touch ~/x", abs, false},
	{"touch $BASE/ws/../out/f", abs, false},
	{"touch $BASE/ws/leaves/f", abs, false},
	{"touch $BASE/ws/stays/f", fine, false},
	{"touch $BASE/to-ws/f", fine, false},
	{"touch $BASE/ws/loop/f", fine, false}, // a resolve error keeps the candidate
	{"touch $BASE/ws/no/such/dir", fine, false},
	{"cd ..", cdOut, false},
	{"cd ../", cdOut, false},
	{"cd ../x && ls", cdOut, false},
	{"ls; cd ..", cdOut, false},
	{"/bin/ls", abs, false},
	{"/usr/bin/env python3", abs, false},
	{"echo /", fine, false},

	// What passed it by, and is named all the same.
	{`D=/var/tmp; echo x > "$D/f"`, abs, false},
	{"echo x >/etc/x", abs, false},
	{"echo x>/etc/x", abs, false},
	{"echo x 2>>/etc/x", abs, false},
	{"echo x &>/etc/x", abs, false},
	{"echo x &>>/etc/x", abs, false},
	{"echo x >|/etc/x", abs, false},
	{"touch </etc/x", fine, false},
	{"touch <>/etc/x", abs, false},
	{"echo >&/etc/x", abs, false},
	{"echo 2>&1 >&2 <&0 3>&- 4<&5-", fine, false},
	{"exec 3>/etc/x", abs, false},
	{"exec {fd}>/etc/x", abs, false},
	{"VAR=/etc/x", fine, false},
	{"VAR=/etc/x env", abs, false},
	{"export VAR=/etc", abs, false},
	{"export 'VAR=/etc'", fine, false},
	{"declare -x VAR=/etc", fine, false},
	{"A=(a /etc/x)", fine, false},
	{"A[3]=/etc/x", fine, false},
	{"V=$BASE/ws/a:/etc", fine, false},
	{"PATH=/usr/bin:/bin make", fine, false},
	{"export PATH=/opt/bin:$PATH", fine, false},
	{"make prefix=/etc", abs, false},
	{"cc --sysroot=/opt f.c", fine, false},
	{"cc -I/usr/include f.c", fine, false},
	{"cc -isystem/usr/include f.c", fine, false},
	{"cc -I../inc f.c", fine, false},
	{"cc -Isub/../inc -Lsub/lib f.c", fine, false},
	{"cc -Isub/../../inc f.c", fine, false},
	{"cc -Wl,-rpath,/usr/lib f.c", fine, false},
	{"dd if=/dev/zero of=/etc/x", abs, false},
	{"dd if=/dev/zero of=x", fine, false},
	{"curl -d @/etc/passwd x", fine, false},
	{"curl -d@/etc/passwd x", fine, false},
	{"curl --data=@/etc/passwd x", fine, false},
	{"curl file:///etc/passwd", fine, false},
	{"curl file://localhost/etc/passwd", fine, false},
	{"curl http://host/etc/passwd", fine, false},
	{"curl 'http://host/x?f=/etc'", fine, false},
	{"make a=~/x", fine, false},
	{"V=x:~/y", fine, false},
	{"echo a~/x", fine, false},
	{"echo \\~/x '~/x' \"~\"/x", fine, false},
	{"touch ~someone/f", fine, true},
	{"touch ~+/f", fine, true},
	{"touch ~+/../f", fine, true},
	{"HOME=$BASE/ws; touch ~/f", fine, false},

	// Quoting.
	{`touch /e"t"c/passwd`, abs, false},
	{`touch /e't'c/passwd`, abs, false},
	{`touch \/etc/passwd`, abs, false},
	{`touch ""/etc/passwd`, abs, false},
	{`touch $'/etc/passwd'`, abs, false},
	{`touch $'\x2fetc'`, fine, true},
	{`touch $'\057etc'`, fine, true},
	{`touch $'/etc'`, abs, false},
	{`touch $"/etc"`, abs, false},
	{"touch /et\\\nc/passwd", abs, false},
	{"echo 'see /etc/passwd'", fine, false},
	{"echo 'a b' \"c d\" e\\ f", fine, false},
	{"touch sub/'a b'/../../../x", rel, false},

	// Relative paths.
	{"touch ../x", rel, false},
	{"touch sub/../x", fine, false},
	{"touch sub/../../x", rel, false},
	{"touch ..", rel, false},
	{"touch leaves/x", rel, false},
	{"touch stays/x", fine, false},
	{"touch stays/../x", fine, false},
	{"touch leaves/../x", rel, false}, // ".." stands behind the link
	{"echo x > leaves/x", rel, false},
	{"echo x > ../x", rel, false},
	{"git log a..b ..b a.. ...", fine, false},
	{"../tool", rel, false},
	{"./tool sub/x", fine, false},

	// Directories.
	{"cd sub && cd ..", fine, false},
	{"cd sub && cd .. && cd ..", cdOut, false},
	{"cd sub/deep && touch ../../x", fine, false},
	{"cd sub/deep && touch ../../../x", rel, false},
	{"cd sub; cd ..", fine, false}, // if there is no sub
	{"cd sub || exit 1; cd ..", fine, false},
	{"cd sub || { echo no >&2; exit 1; }; cd ..", fine, false},
	{"if cd sub; then cd ..; fi", fine, false},
	{"cd sub; touch ../x", fine, false},
	{"cd sub; echo x > ../x", fine, false},
	{"(cd sub); touch ../x", rel, false},
	{"(cd sub && touch ../x)", fine, false},
	{"cd sub | cat; touch ../x", rel, false},
	{"cd sub & touch ../x", rel, false},
	{"x=$(cd sub && pwd); touch ../x", rel, false},
	{"{ cd sub && touch ../x; }", fine, false},
	{"cd", abs, false},
	{"cd ~", abs, false},
	{"cd -", fine, true},
	{"cd sub && cd -", fine, true},
	{"cd sub && cd - && touch ../x", fine, true},
	{"cd $BASE/out", abs, false},
	{"cd $BASE/cache && cd ..", cdOut, false},
	{"cd $BASE/cache && touch x", fine, false},
	{"cd leaves", cdOut, false},
	{"cd -P stays && cd .. && touch x", fine, true},
	{"cd -P stays && cd ../.. && touch x", fine, true},
	{"cd -P stays && cd ../../..", fine, true},
	{"cd -- sub && cd ..", fine, true},
	{"command cd ..", cdOut, false},
	{"builtin cd ..", cdOut, false},
	{"'cd' ..", cdOut, false},
	{"X=cd; $X ..", cdOut, false},
	{"cd \"$WHERE\"; touch ../x", fine, true},
	{"cd \"$WHERE\"; echo > x", fine, true},
	{"pushd sub && popd && touch ../x", fine, true},
	{"pushd sub && touch ../x", fine, false},
	{"pushd ..", cdOut, false},
	{"CDPATH=/etc; cd sub", fine, false},
	{"cd() { builtin cd \"$1\"; }; cd ..", rel, true},
	{"f() { cd sub; }; f && cd ..", fine, true},
	{"f() { cd ..; }; f", fine, true},
	{"f() { touch /etc/x; }", abs, false},
	{"f() { touch $1; }; f /etc/x", abs, true},
	{"f() { cd sub || return 1; touch ../x; }; f", fine, true},
	{"f() { local D=/etc; }; f; touch \"$D/x\"", fine, true},
	{"for f in /etc/x a; do touch $f; done", fine, true},
	{"while true; do cd sub || break; done; touch x", fine, false},
	{"case $x in a) cd sub;; esac; echo > ../x", fine, true},
	{"for i in 1 2 3; do cd ..; done", cdOut, false},
	{"cd sub/deep && for i in 1 2 3; do cd ..; done", fine, false},
	{"cd sub/deep && for i in 1 2; do cd ..; done", fine, false},
	{"while read l; do touch \"$l\"; done < list", fine, true},

	// What cannot be evaluated.
	{"touch $X", fine, true},
	{"touch \"$X/f\"", fine, true},
	{"touch /etc/$X", fine, true},
	{"touch $BASE/ws/$X", fine, true},
	{"touch $BASE/ws/$X/../../y", fine, true},
	{"touch $ETC/passwd", abs, false},
	{"touch $TMPDIR/x", fine, false},
	{"touch $HOME/x", abs, false},
	{"touch $PWD/x", fine, false},
	{"touch $(pwd)/x", fine, true},
	{"touch $(pwd)/../x", fine, true},
	{"touch `pwd`/x", fine, true},
	{"touch $(touch list)", fine, true},
	{"touch $(touch /etc/list)", abs, true},
	{"touch `touch /etc/list`", abs, true},
	{"touch ${X:-/etc/x}", fine, true},
	{"touch ${X:-$(touch /etc/x)}", abs, true},
	{"D=a; D+=/../../x; touch $D", fine, true},
	{"eval 'touch /etc/x'", fine, true},
	{"eval touch /etc/x", fine, true},
	{"eval \"$X\"", fine, true},
	{"eval 'cd sub'; echo > ../x", fine, true},
	{"$X ..; echo > x", rel, true},
	{"$X sub; echo > x", fine, true},
	{". ./env.sh", fine, true},
	{". /etc/profile", fine, true},
	{"touch /etc/*", abs, false},
	{"ls *.go", fine, false},
	{"ls /*", fine, false},
	{"touch /etc/pass?d", abs, false},
	{"touch {/etc,$BASE/ws}/x", fine, true},
	{"touch $BASE/ws/{a,b}", fine, true},
	{"touch $BASE/ws/{a,../b}", fine, true},
	{"touch $BASE/ws/{1..9}", fine, true},
	{"touch {~,x}/f", fine, true},
	{"touch $BASE/ws/f$$ $BASE/ws/$((1+2))", fine, true},
	{"echo $? $# $!", fine, false},
	{"read D; touch $D", fine, true},
	{"D=/etc; read D; touch $D/x", fine, true},
	{"D=sub; unset D; touch $D/x", fine, true},
	{"D=sub; printf -v D /etc; touch $D/x", fine, true},
	{"D=sub; declare -n R=D; R=/etc; touch $D/x", fine, false},
	{"((D=5)); touch $D/x", fine, true},
	{"X='a[$(touch f)]'; ((X))", fine, false},
	{"D='a b'; touch $D", fine, true},
	{"D='sub/a b'; touch \"$D\"", fine, false},
	{"IFS=x; D=subx; touch $D", fine, false},
	{"xargs rm", fine, true},
	{"alias ls='touch /etc/x'", fine, true},
	{"echo ${!X}", fine, false},

	// Data.
	{"touch <<'EOF'\n/etc/passwd $(touch /etc/x)\nEOF", fine, false},
	{"touch <<EOF\n/etc/passwd\nEOF", fine, false},
	{"touch <<EOF\n$(touch /etc/x)\nEOF", abs, false},
	{"touch <<< /etc/passwd", fine, false},
	{"touch <<< $(touch /etc/x)", abs, false},
	{"touch <<-EOF > /etc/x\n\ta\n\tEOF", abs, false},
	{"# touch /etc/passwd", fine, false},
	{"echo hi # /etc/passwd", fine, false},
	{"[[ -f /etc/passwd ]]", fine, false},
	{"[ -f /etc/passwd ]", fine, false},
	{"[[ $x == /etc/* ]]", fine, false},
	{"case $x in /etc/*) ;; esac", fine, false},
	{"diff <(touch a) <(touch b)", fine, true},
	{"diff <(touch /etc/a) b", abs, true},

	// Devices.
	{"echo >/dev/null 2>&1", fine, false},
	{"touch /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty", fine, false},
	{"touch /dev/stdin /dev/stdout /dev/stderr /dev/fd/0 /dev/fd/12", fine, false},
	{"touch /dev/fd/../../etc/passwd", abs, false},
	{"touch /dev/shm/x /dev/pts/0", fine, false},
	{"touch /dev/shm/../sda", abs, false},
	{"touch /dev/sda", abs, false},
	{"touch /dev/nullx", abs, false},
	{"touch /proc/self/root/etc/x", abs, false},
	{"touch /proc/self/cwd/x", abs, false},
	{"exec 3<>/dev/tcp/1.2.3.4/80", fine, false},
	{"touch /dev/tcp/1.2.3.4/80", abs, false},

	// Nested command strings.
	{"bash -c 'touch /etc/x'", abs, false},
	{"bash -lc \"touch /etc/x\"", abs, false},
	{"sh -c 'cd ..'", cdOut, false},
	{"sh -c 'cd sub'; touch ../x", rel, false},
	{"cd sub && sh -c 'touch ../x'", fine, false},
	{"bash --norc -o pipefail -c 'touch /etc/x'", abs, false},
	{"env A=b bash -c 'touch /etc/x'", abs, false},
	{"sudo -u me timeout 5 sh -ec 'touch /etc/x'", abs, false},
	{"find . -exec sh -c 'touch /etc/x' \\;", fine, false},
	{"xargs -n1 sh -c 'touch /etc/x'", abs, true},
	{"nice -n 5 bash -c 'bash -c \"touch /etc/x\"'", abs, false},
	{"bash -c \"$X\"", fine, true},
	{"D=sub; bash -c 'touch $D/x'", fine, true},
	{"D=/etc bash -c 'touch $D/x'", abs, true},
	{"sh -c 'touch \"$1\"' _ sub/x", fine, true},
	{"sh -c 'cd \"$1\"' _ ..", fine, true},
	{"bash <<'EOF'\ntouch /etc/x\nEOF", fine, true},
	{"bash <<< 'touch /etc/x'", fine, true},
	{"echo x | bash", fine, true},
	{"bash script.sh", fine, false},
	{"su -c 'touch /etc/x'", fine, true},
	{"script -c 'touch /etc/x' out", fine, true},
	{"trap 'rm -f tmp' EXIT", fine, true},
	{"trap 'rm -f /etc/x' EXIT", fine, true},
	{"exec bash -c 'touch /etc/x'", abs, false},
	{"watch 'touch /etc/x'", fine, true},

	// What only reads, and what is data.
	{"cat /etc/passwd", fine, false},
	{"cat ../x leaves/x ~/x", fine, false},
	{"cat x > /etc/y", abs, false},
	{"ls -l /tmp | head -3 && wc -l < /etc/passwd", fine, false},
	{"grep -rn --include=/x /a/b /usr/include", fine, false},
	{"find /usr -name x -newer /etc/passwd", fine, false},
	{"find /usr -name x -delete", abs, false},
	{"find ../x -exec rm {} +", rel, false},
	{"diff /etc/a ../b && stat /usr/bin && [ -e /etc/x ] && test -e /etc/x && [[ -e /etc/x ]]", fine, false},
	{"sort /etc/passwd -o out", fine, false},
	{"sort out -o /etc/x", abs, false},
	{"sort -o/etc/x out", abs, false},
	{"sort --output=/etc/x out", abs, false},
	{"sed -n '/a/p' /etc/passwd", fine, false},
	{"sed -i '/a/d' f", fine, false},
	{"sed -i.bak -e /a/d f", fine, false},
	{"sed -Ei s/a/b/ /etc/f", abs, false},
	{"sed --in-place=.bak -e /a/d /etc/f", abs, false},
	{"awk -F/ '/a/ { print $2 }' /etc/passwd", fine, false},
	{"perl -pe '/a/' f", fine, false},
	{"perl -pi -e '/a/' /etc/f", abs, false},
	{"echo a/b | cut -d/ -f2 | tr / _", fine, false},
	{"IFS=/ read a b <<< x/y", fine, false},
	{"IFS=/; read a b", fine, false},
	{`docker run --rm -it -v "$PWD:/work" -w /work img make`, fine, false},
	{"docker run -itv $BASE/ws:/work img", fine, false},
	{"docker run --mount=type=bind,src=/a,dst=/b img", fine, false},
	{"docker cp c:/x /etc/y", abs, false},
	{"g++ -I/usr/include -isystem /opt/include -L/usr/lib x.cc -o x", fine, false},
	{"g++ x.cc -o /usr/local/bin/x", abs, false},
	{"git commit -m '/api: a route'", fine, false},
	{"git clone u /opt/x", abs, false},
	{"printf '%s\\n' /etc/x; date +/%F; exit 1", fine, false},
	{"CC=/usr/bin/cc JAVA_HOME=/usr/lib/jvm make", fine, false},
	{"TMPDIR=/etc; make", abs, false}, // it is in the environment
	{"PREFIX=/usr; cat $PREFIX/x", fine, false},
	{"PREFIX=/usr; make DESTDIR=$PREFIX", abs, false},

	// Programs that start another.
	{"sudo cat /etc/passwd", fine, false},
	{"sudo -u me touch /etc/x", abs, false},
	{"sudo sed -i s/a/b/ /etc/x", abs, false},
	{"env -u A A=b touch /etc/x", abs, false},
	{"env A=/etc/x make", abs, false},
	{"timeout -k 3 5 touch /etc/x", abs, false},
	{"nice -n 5 nohup touch ../x", rel, false},
	{"command -v /usr/bin/x", fine, false},
	{"command rm -v /etc/x", abs, false},
	{"command -- touch /etc/x", abs, false},
	{"exec -a x touch /etc/x", abs, false},
	{"time -f %e -o /etc/x make", abs, false},
	{"find . | xargs -n 1 touch /etc/x", abs, true},
	{"flock lock touch /etc/x", abs, false},
	{"busybox touch /etc/x", abs, false},
	{"sudo", fine, false},

	// What may have been changed is not known, and never refused.
	{"if a; then D=/etc; fi; touch $D/x", fine, true},
	{"[ a ] && D=/etc; touch $D/x", fine, true},
	{"a || D=/etc; touch $D/x", fine, true},
	{"D=/etc && touch $D/x", abs, false},
	{"while a; do D=/etc; done; touch $D/x", fine, true},
	{"case a in a) D=/etc;; esac; touch $D/x", fine, true},
	{"echo | D=/etc; touch $D/x", fine, true},
	{"if a; then cd sub; else cd ..; fi", fine, true},
	{"if a; then cd sub; fi; touch ../x", fine, true},
	{"cd sub || touch ../x", fine, true},
	{"cd sub || exit; touch ../x", fine, false},
	{"cd sub && make || touch ../x", fine, true},
	{"{ cd sub; } && touch ../x", fine, false},
	{"(D=/etc); touch $D/x", fine, true},
	{"D=/etc & touch $D/x", fine, true},
	{"let D=1; touch $D/../x", fine, true},
	{"D=sub; : ${D:=/etc}; touch $D/x", fine, true},

	// Text that does not parse: what is before the error is followed, and the
	// plain scan is applied to all of it.
	{"touch <<", fine, true},
	{"echo 'unclosed /etc/passwd", abs, true},
	{"touch '$BASE/ws/f", fine, true},
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
