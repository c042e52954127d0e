package rules_test

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

func parse(t *testing.T, text string) *rules.Policy {
	t.Helper()
	p, err := rules.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// runner is a launch of the first harness's program.
func runner(args ...string) rules.Values {
	return rules.Values{
		Argv: append([]string{"paperclip-runnerd"}, args...), Cwd: "/work", Names: []string{"paperclip-runnerd"},
		Env: []string{"HOME=/home/u", "X=/x"},
	}
}

// TestExpand: one template of each kind, and what a launch makes of it.
func TestExpand(t *testing.T) {
	tests := []struct {
		name, entry string
		values      rules.Values
		// want is the path, or "-" and a part of the reason for dropping, or "!"
		// and a part of the error.
		want string
	}{
		{"argument", `{"path":"${arg:--d}","beneath":"/b"}`, runner("--d", "/b/x"), "/b/x"},
		{"first of two wins", `{"path":"${arg:--d}","beneath":"/b"}`, runner("--d", "/b/x", "--d", "/b/y"), "/b/x"},
		{"first of two is no good", `{"path":"${arg:--d}","beneath":"/b"}`, runner("--d", "/c", "--d", "/b/y"), `-not beneath "/b"`},
		{"joined form", `{"path":"${arg:--d}","beneath":"/b"}`, runner("--d=/b/x"), "-${arg:--d} is not given"},
		{"argv[0] is no argument", `{"path":"${arg:--d}","beneath":"/b"}`, rules.Values{Argv: []string{"--d", "/b/x"}}, "-is not given"},
		{"no argv", `{"path":"${arg:--d}","beneath":"/b"}`, rules.Values{}, "-is not given"},
		{"flag without a value", `{"path":"${arg:--d}","beneath":"/b"}`, runner("x", "--d"), "-is not given"},
		{"empty value", `{"path":"${arg:--d}","beneath":"/b"}`, runner("--d", ""), "-is not given"},
		{"relative", `{"path":"${arg:--d}","beneath":"/b"}`, runner("--d", "b/x"), "-not an absolute path"},
		{"the directory itself", `{"path":"${arg:--d}","beneath":"/b"}`, runner("--d", "/b/"), "-not beneath"},
		{"a neighbour by name", `{"path":"${arg:--d}","beneath":"/b"}`, runner("--d", "/b-evil/x"), "-not beneath"},
		{"out by dot-dot", `{"path":"${arg:--d}","beneath":"/b"}`, runner("--d", "/b/../c"), "-not beneath"},
		{"out and in", `{"path":"${arg:--d}","beneath":"/b"}`, runner("--d", "/b/../b/x/."), "/b/x"},
		{"keep", `{"path":"${arg:--d}","beneath":"/b","keep":1}`, runner("--d", "/b/x/y/z"), "/b/x"},
		{"keep more than there is", `{"path":"${arg:--d}","beneath":"/b","keep":9}`, runner("--d", "/b/x/y"), "/b/x/y"},
		{"keep after cleaning", `{"path":"${arg:--d}","beneath":"/b","keep":1}`, runner("--d", "/b/x/../y/z"), "/b/y"},
		{"depth", `{"path":"${arg:--d}","beneath":"/b","depth":2}`, runner("--d", "/b/x/y"), "/b/x/y"},
		{"too deep", `{"path":"${arg:--d}","beneath":"/b","depth":2}`, runner("--d", "/b/x/y/z"), "-3 components below"},
		{"not deep enough", `{"path":"${arg:--d}","beneath":"/b","depth":2}`, runner("--d", "/b/x"), "-1 components below"},
		{"variable", `{"path":"${env:X}/y","beneath":"/x"}`, runner(), "/x/y"},
		{"variable that is not set", `{"path":"${env:Y}/y","beneath":"/x"}`, runner(), "-${env:Y} is not given"},
		{"variable with an empty value", `{"path":"${env:Y}","beneath":"/x"}`, rules.Values{Env: []string{"Y="}}, "-is not given"},
		{"variable twice", `{"path":"${env:Y}","beneath":"/x"}`, rules.Values{Env: []string{"Y=/x/1", "Y=/x/2"}}, "!occurs twice"},
		{"variable twice, the same", `{"path":"${env:Y}","beneath":"/x"}`, rules.Values{Env: []string{"Y=/x/1", "Y=/x/1"}}, "/x/1"},
		{"cwd", `{"path":"${cwd}/y","beneath":"/work"}`, runner(), "/work/y"},
		{"cwd unknown", `{"path":"${cwd}/y","beneath":"/work"}`, rules.Values{}, "-${cwd} is not given"},
		{"home", `{"path":"${home}/y","beneath":"${home}"}`, runner(), "/home/u/y"},
		{"home relative", `{"path":"${home}/y","beneath":"/h"}`, rules.Values{Env: []string{"HOME=h"}}, "-not an absolute path"},
		{"root", `{"path":"${root}/y","beneath":"${root}"}`, runner(), "/i/y"},
		{"name", `{"path":"/b/${arg:--id|name}","beneath":"/b","depth":1}`, runner("--id", "a/../b"), "/b/a_.._b"},
		{"name of dots", `{"path":"/b/${arg:--id|name}","beneath":"/b"}`, runner("--id", ".."), "-gives no name"},
		{"name of the cwd", `{"path":"/b/${cwd|name}","beneath":"/b"}`, runner(), "/b/_work"},
		{"a value inside, climbing", `{"path":"/b/${arg:--id}/y","beneath":"/b"}`, runner("--id", "../../etc"), "-not beneath"},
		{"a value inside, with depth", `{"path":"/b/${arg:--id}","beneath":"/b","depth":1}`, runner("--id", "x@y:z"), "/b/x@y:z"},
		{"beneath of a value", `{"path":"${env:X}/own","beneath":"${env:X}"}`, runner(), "/x/own"},
		{"beneath is not given", `{"path":"/x/own","beneath":"${env:Y}"}`, runner(), "-${env:Y} is not given"},
		{"beneath becomes the root directory", `{"path":"${env:X}/own","beneath":"${env:X}"}`, rules.Values{Env: []string{"X=/a/.."}}, "-everything lies beneath /"},
		{"unless", `{"path":"${env:X}/own","beneath":"/x","unless":["/y","/x/own"]}`, runner(), `-lies in "/x/own"`},
		{"unless above", `{"path":"${env:X}/own","beneath":"/x","unless":["${env:X}"]}`, runner(), `-lies in "/x"`},
		{"unless a neighbour", `{"path":"${env:X}/own","beneath":"/x","unless":["/x/ow","${env:Y}"]}`, runner(), "/x/own"},
		{"odd bytes", `{"path":"${arg:--d}","beneath":"/b"}`, runner("--d", "/b/\xff\n\"$(x)"), "/b/\xff\n\"$(x)"},
		{"NUL", `{"path":"${arg:--d}","beneath":"/b"}`, runner("--d", "/b/x\x00/../../c"), "-holds a NUL"},
		{"long", `{"path":"${arg:--d}","beneath":"/b"}`, runner("--d", "/b/"+strings.Repeat("x", 100<<10)), "-a name in the path is longer than 255 bytes"},
		{"long by many names", `{"path":"${arg:--d}","beneath":"/b"}`, runner("--d", "/b/"+strings.Repeat("x/", 50<<10)), "-path is longer than 4095 bytes"},
		{"long before cleaning", `{"path":"${arg:--d}","beneath":"/b"}`, runner("--d", "/b/"+strings.Repeat("x/../", 20<<10)+"y"), "-path is longer than 4095 bytes"},
		{"a dollar", `{"path":"/b/$x$","beneath":"/b"}`, runner(), "/b/$x$"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := parse(t, `{"version":1,"root":"/i","hidden":["/x"],"exposed":[`+tt.entry+`]}`)
			got, dropped, err := p.Expand(tt.values)
			switch outcome := tt.want[:1]; {
			case outcome == "!":
				if perr, ok := errors.AsType[*rules.Error](err); !ok || !strings.Contains(perr.Msg, tt.want[1:]) || perr.Key != "exposed[0]" {
					t.Errorf("got %v", err)
				}
			case err != nil:
				t.Fatal(err)
			case outcome == "-":
				if len(dropped) != 1 || len(got.Exposed) != 0 {
					t.Fatalf("dropped %v, exposed %v", dropped, got.Exposed)
				}
				if d := dropped[0]; d.Entry != "exposed[0]" || !strings.Contains(d.Why, tt.want[1:]) {
					t.Errorf("dropped %+v", d)
				}
			default:
				if len(dropped) != 0 || len(got.Exposed) != 1 || got.Exposed[0].Path != tt.want || got.Exposed[0].Template != nil {
					t.Errorf("dropped %v, exposed %+v", dropped, got.Exposed)
				}
			}
		})
	}
}

// A hidden path that cannot be is no reason to hide less.
func TestExpandHidden(t *testing.T) {
	p := parse(t, `{"version":1,"hidden":["/a",{"path":"${env:X}"},{"path":"${env:Y}","unless":["/a"]}]}`)
	for _, tt := range []struct {
		name    string
		env     []string
		want    []string
		dropped []string
		err     string
	}{
		{"given", []string{"X=/x/../y", "Y=/z"}, []string{"/a", "/y", "/z"}, nil, ""},
		{"not given", nil, []string{"/a"}, []string{"${env:X} is not given", "${env:Y} is not given"}, ""},
		{"relative and excluded", []string{"X=x", "Y=/a/b"}, []string{"/a"}, []string{"not an absolute path", `lies in "/a"`}, ""},
		{"too long", []string{"X=/" + strings.Repeat("x", 256)}, nil, nil, "hidden[1]"},
		{"NUL", []string{"X=/x\x00y"}, nil, nil, "holds a NUL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, dropped, err := p.Expand(rules.Values{Env: tt.env})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var paths, why []string
			for _, e := range got.Hidden {
				paths = append(paths, e.Path)
			}
			for _, d := range dropped {
				why = append(why, d.Why)
			}
			if diff := cmp.Diff([][]string{tt.want, tt.dropped}, [][]string{paths, why}); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A policy without templates is not copied.
func TestExpandPlain(t *testing.T) {
	p := parse(t, `{"version":1,"hidden":["/a/${env:X}"]}`)
	got, dropped, err := p.Expand(runner())
	if got != p || dropped != nil || err != nil {
		t.Errorf("%v %v %v", got, dropped, err)
	}
}

// fuzzed is a policy that uses all that templates have.
const fuzzed = `{"version":1,"root":"/i","hidden":[{"path":"${root}/s"},{"path":"${env:X}","unless":["${root}/s"]},{"path":"${arg:--h}/x","beneath":"${cwd}"}],
"exposed":[{"path":"${arg:--d}","beneath":"${root}/s","keep":2},{"path":"${root}/s/${arg:--id|name}","beneath":"${root}/s","depth":1},
{"path":"${env:X}/${arg:--id|name}","beneath":"${env:X}","depth":1},{"path":"/b/${arg:--d}${env:X}","beneath":"/b","depth":3,"unless":["${home}"]}],
"precreate":[{"path":"${root}/p"},{"path":"${cwd}/${arg:--id|name}","beneath":"${cwd}"}]}`

// FuzzTemplate: whatever a launch brings, an entry lies where its template says.
func FuzzTemplate(f *testing.F) {
	p, err := rules.Parse([]byte(fuzzed))
	if err != nil {
		f.Fatal(err)
	}
	for _, row := range [][5]string{
		{"/i/s/own/x", "own", "/o", "/work", "/home/u"},
		{"/i/s/../../etc", "..", "/i/s/x", "/", ""},
		{"/../i//s/./x/..", "a/b", "/", "//", "/"},
		{"\x00/i/s", "\xff", "/\xff/..", "/x\x00", "rel"},
		{"/i/s/" + strings.Repeat("x/", 3000), strings.Repeat("😀", 99), "/" + strings.Repeat("y", 300), "/w", "/h"},
	} {
		f.Add(row[0], row[1], row[2], row[3], row[4])
	}
	f.Fuzz(func(t *testing.T, dir, id, x, cwd, home string) {
		v := rules.Values{Argv: []string{"p", "--d", dir, "--id", id, "--h", dir}, Env: []string{"X=" + x, "HOME=" + home}, Cwd: cwd}
		got, dropped, err := p.Expand(v)
		if err != nil {
			if _, ok := errors.AsType[*rules.Error](err); !ok {
				t.Errorf("error is a %T: %v", err, err)
			}
			return
		}
		if n := len(got.Hidden) + len(got.Exposed) + len(got.Precreate) + len(dropped); n != 9 {
			t.Errorf("%d entries, 9 templates", n)
		}
		for _, d := range dropped {
			if d.Why == "" || d.Entry == "" {
				t.Errorf("dropped without a word: %+v", d)
			}
		}
		for _, e := range got.Hidden {
			checkExpanded(t, e)
		}
		for _, list := range [][]rules.Entry{got.Exposed, got.Precreate} {
			for _, e := range list {
				checkExpanded(t, e)
				d := e.Derived
				if e.Key == "precreate[0]" {
					continue
				}
				if d.Beneath == "" || d.Beneath == "/" || !pathcheck.Beneath(d.Beneath, e.Path) || !strings.HasPrefix(e.Path, d.Beneath+"/") {
					t.Errorf("%s: %q is not beneath %q", e.Key, e.Path, d.Beneath)
				}
				// The directories of the policy's own text do not move.
				if want := map[string]string{"exposed[0]": "/i/s", "exposed[1]": "/i/s", "exposed[3]": "/b"}[e.Key]; want != "" && (d.Beneath != want || d.Untrusted) {
					t.Errorf("%s: beneath %q (%v), want %q", e.Key, d.Beneath, d.Untrusted, want)
				} else if want == "" && !d.Untrusted {
					t.Errorf("%s: the launch chose %q", e.Key, d.Beneath)
				}
				depth := strings.Count(strings.TrimPrefix(e.Path, d.Beneath), "/")
				if limit := map[string]int{"exposed[0]": 2, "exposed[1]": 1, "exposed[2]": 1, "exposed[3]": 3}[e.Key]; limit > 0 && depth > limit {
					t.Errorf("%s: %q is %d deep", e.Key, e.Path, depth)
				}
			}
		}
	})
}

func checkExpanded(t *testing.T, e rules.Entry) {
	t.Helper()
	if e.Template != nil || e.Derived == nil {
		t.Errorf("%s is still a template", e.Key)
	}
	if !strings.HasPrefix(e.Path, "/") || path.Clean(e.Path) != e.Path || len(e.Path) > 4095 || strings.ContainsRune(e.Path, 0) {
		t.Errorf("%s: %q is no clean path", e.Key, e.Path)
	}
	for name := range strings.SplitSeq(e.Path, "/") {
		if name == ".." || len(name) > 255 {
			t.Errorf("%s: %q is no clean path", e.Key, e.Path)
		}
	}
}

// TestExpandUntrusted: whose values chose a place. For a hidden path any of its
// values counts, for the others the directory beneath which it must lie.
func TestExpandUntrusted(t *testing.T) {
	p := parse(t, `{"version":1,"root":"/i",
		"hidden":[{"path":"${root}/s"},{"path":"${env:X}"},{"path":"/h/${arg:--id|name}"},{"path":"${cwd}/t"}],
		"exposed":[{"path":"/i/s/${arg:--id}","beneath":"/i/s"},{"path":"${env:X}/own","beneath":"${env:X}"}],
		"precreate":[{"path":"${root}/made"},{"path":"${root}/s/${arg:--id|name}","beneath":"${root}/s"},{"path":"${env:X}/c","beneath":"${env:X}"}]}`)
	got, _, err := p.Expand(runner("--id", "own"))
	if err != nil {
		t.Fatal(err)
	}
	untrusted := map[string]bool{}
	for _, e := range slices.Concat(got.Hidden, got.Exposed, got.Precreate) {
		untrusted[e.Key] = e.Derived.Untrusted
	}
	want := map[string]bool{
		"hidden[0]": false, "hidden[1]": true, "hidden[2]": true, "hidden[3]": true,
		"exposed[0]": false, "exposed[1]": true,
		"precreate[0]": false, "precreate[1]": false, "precreate[2]": true,
	}
	if diff := cmp.Diff(want, untrusted); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
