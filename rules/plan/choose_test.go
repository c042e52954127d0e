package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// sessions is a small harness with a state directory for each session.
const sessions = base + `
	/i/s/own/f
	/i/s/other/f
	/i/secrets/key
	/i/trace/mine
	/i/trace/theirs
	/oc/own/f
	/oc/other/f
`

const sessionPolicy = `"root":"/i","hidden":[{"path":"${root}/s"},{"path":"${root}/secrets"},{"path":"${root}/trace"},{"path":"${env:OC}","unless":["${root}/s"]}HIDDEN],
"exposed":[{"path":"${arg:--d}","beneath":"${root}/s","keep":1,"kind":"dir"},
{"path":"${env:OC}/${arg:--id|name}","beneath":"${env:OC}","depth":1,"kind":"dir","unless":["${root}/s"]},
{"path":"${env:TR}","beneath":"${root}/trace","depth":1,"kind":"file"}]`

// TestChoose: what may be opened on a file system that others have been at.
func TestChoose(t *testing.T) {
	tests := []struct {
		name, tree string
		// hidden is appended to the policy's hidden, more to its keys.
		hidden, more string
		d, oc, tr    string
		// want is the exposed paths, then the reasons for dropping, or "!" and a
		// part of the error.
		want []string
	}{
		{name: "all three", d: "/i/s/own", oc: "/oc", tr: "/i/trace/mine", want: []string{"/i/s/own", "/oc/own", "/i/trace/mine"}},
		{name: "all new", d: "/i/s/new/x", oc: "/oc2/deep", tr: "/i/trace/new", want: []string{"/i/s/new", "/oc2/deep/own", "/i/trace/new"}},

		{name: "own is a link to other", tree: "/i/s/l -> other", d: "/i/s/l", want: []string{`!goes through a symbolic link below "/i/s"`}},
		{name: "own is a link to itself by another way", tree: "/i/s/l -> ../s/own", d: "/i/s/l/x", want: []string{"!goes through a symbolic link"}},
		{name: "own is a link to nothing", tree: "/i/s/l -> gone", d: "/i/s/l", want: []string{"!goes through a symbolic link"}},
		{name: "own is a loop", tree: "/i/s/l -> l", d: "/i/s/l", want: []string{"!too many levels"}},
		{name: "a link in what keep cuts off", tree: "/i/s/own/l -> /i/secrets", d: "/i/s/own/l/x", want: []string{"/i/s/own"}},
		{name: "a link above the declared directory", tree: "/j -> i", more: `,"root":"/j"`, d: "/j/s/own", want: []string{"/j/s/own"}},
		{name: "the declared directory is a link", tree: "/k/s -> /i/s", more: `,"root":"/k"`, d: "/k/s/own", want: []string{"/k/s/own"}},
		{name: "trace is a link", tree: "/i/trace/l -> ../secrets/key", tr: "/i/trace/l", want: []string{"!goes through a symbolic link"}},
		{name: "behind a file", d: "/i/s/own", oc: "/etc/passwd", want: []string{"!not a directory"}},

		{name: "the launch chooses what is hidden by the policy's text", oc: "/i/secrets", want: []string{"is hidden by hidden[1], and the launch chose the directory"}},
		{name: "below it", oc: "/i/secrets/deep", want: []string{"is hidden by hidden[1], and"}},
		{name: "through a link", tree: "/tmp/l -> /i/secrets", oc: "/tmp/l", want: []string{"is hidden by hidden[1], and"}},
		{name: "through a mount", tree: "/m/ bind /i/secrets", oc: "/m", want: []string{"is hidden by hidden[1], and"}},
		{name: "through a mount of what stands above", tree: "/m/ bind /i", oc: "/m/secrets", want: []string{"is hidden by hidden[1], and"}},
		{name: "through a mount beneath what the launch hides", tree: "/oc/own/ bind /i/secrets", oc: "/oc", want: []string{"is hidden by hidden[1], and"}},
		{name: "above it", oc: "/i", d: "/i/s/own", want: []string{"/i/s/own", "/i/own"}},
		{name: "unless", oc: "/i/s/own/oc", d: "/i/s/own", want: []string{"/i/s/own", `lies in "/i/s"`, `lies in "/i/s"`}},
		{name: "unless, by a link", tree: "/tmp/l -> /i/s/own", oc: "/tmp/l/oc", d: "/i/s/own", want: []string{"/i/s/own", `lies in "/i/s"`, `lies in "/i/s"`}},

		{name: "a plain entry hides it", hidden: `,"/i/s/own"`, d: "/i/s/own/x", want: []string{"is hidden by hidden[4], which is no template"}},
		{name: "a plain entry hides what stands above", hidden: `,"/i"`, d: "/i/s/own/x", want: []string{"is hidden by hidden[4], which is no template"}},
		{name: "a plain entry hides the same as a template", hidden: `,"/i/s"`, d: "/i/s/own/x", want: []string{"is hidden by hidden[4], which is no template"}},
		{name: "a plain entry hides it by a link", tree: "/l -> i", hidden: `,"/l/s"`, d: "/i/s/own/x", want: []string{"is hidden by hidden[4], which is no template"}},
		{name: "a plain entry hides a mount of it", tree: "/m/ bind /i/s", hidden: `,"/m"`, d: "/i/s/own/x", want: []string{"is hidden by hidden[4], which is no template"}},
		{name: "a plain entry beside it", hidden: `,"/i/s/other"`, d: "/i/s/own/x", want: []string{"/i/s/own"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := `{"version":1,` + strings.Replace(sessionPolicy, "HIDDEN", tt.hidden, 1) + `}`
			if key, value, ok := strings.Cut(tt.more, `:`); ok && key == `,"root"` {
				text = strings.Replace(text, `"root":"/i"`, `"root":`+value, 1)
			}
			v := rules.Values{Argv: []string{"p", "--d", tt.d, "--id", "own"}, Env: []string{"OC=" + tt.oc, "TR=" + tt.tr}}
			p, early, err := parse(t, text).Expand(v)
			if err != nil {
				t.Fatal(err)
			}
			tree := pathtest.New(sessions + tt.tree)
			got, dropped, err := plan.Choose(p, user(tree), tree)
			dropped = append(early, dropped...)
			if tree.Open() != 0 {
				t.Errorf("%d nodes stay open", tree.Open())
			}
			if bad, ok := strings.CutPrefix(tt.want[0], "!"); ok {
				if err == nil || !strings.Contains(err.Error(), bad) {
					t.Errorf("got %v, want %s", err, bad)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var have []string
			for _, e := range got.Exposed {
				have = append(have, e.Path)
			}
			for _, d := range dropped {
				if !strings.HasSuffix(d.Why, "is not given") {
					have = append(have, d.Why)
				}
			}
			for i, w := range tt.want {
				if i >= len(have) || !strings.HasPrefix(have[i], w) || len(have) != len(tt.want) {
					t.Fatalf("got %q, want %q", have, tt.want)
				}
			}
		})
	}
}

// TestChoosePrecreate: nothing is made where others hide something, because the
// launch says so.
func TestChoosePrecreate(t *testing.T) {
	p := parse(t, `{"version":1,"root":"/i","hidden":[{"path":"${root}/secrets"},"/srv/secret"],
		"precreate":[{"path":"${root}/secrets/made"},{"path":"${env:X}/cache","beneath":"${env:X}"},{"path":"/srv/secret/${arg:--id|name}","beneath":"/srv/secret"}]}`)
	for _, tt := range []struct {
		name, x string
		want    []string
	}{
		{"elsewhere", "/home/u", []string{"/i/secrets/made", "/home/u/cache", "/srv/secret/own"}},
		{"in what a template hides", "/i/secrets", []string{"/i/secrets/made", "/srv/secret/own"}},
		{"in what a plain entry hides", "/srv/secret/deep", []string{"/i/secrets/made", "/srv/secret/own"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree := pathtest.New(sessions)
			q, _, err := p.Expand(rules.Values{Argv: []string{"p", "--id", "own"}, Env: []string{"X=" + tt.x}})
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := plan.Choose(q, user(tree), tree)
			if err != nil {
				t.Fatal(err)
			}
			var have []string
			for _, e := range got.Precreate {
				have = append(have, e.Path)
			}
			if diff := cmp.Diff(tt.want, have); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestChooseTwoDirectories: one value of the launch does not open what another
// hides.
func TestChooseTwoDirectories(t *testing.T) {
	p := parse(t, `{"version":1,"hidden":[{"path":"${env:A}"},{"path":"${env:X}"}],"exposed":[{"path":"${env:X}/own","beneath":"${env:X}"}]}`)
	for _, tt := range []struct {
		a, x string
		want int
	}{{"/home/u", "/oc", 1}, {"/oc", "/oc", 1}, {"/oc/own/deep", "/oc", 1}, {"/home", "/home/u", 0}, {"/", "/oc", -1}} {
		tree := pathtest.New(sessions)
		q, _, err := p.Expand(rules.Values{Env: []string{"A=" + tt.a, "X=" + tt.x}})
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := plan.Choose(q, user(tree), tree)
		switch {
		case tt.want < 0 && err == nil, tt.want >= 0 && (err != nil || len(got.Exposed) != tt.want):
			t.Errorf("%+v: %v, %v", tt, got, err)
		}
	}
}

// TestChooseWorkspace: in scope workspace what is exposed is writable, and that
// is not for the launch to choose.
func TestChooseWorkspace(t *testing.T) {
	p := parse(t, `{"version":1,"hidden":[{"path":"${env:X}"}],"exposed":[{"path":"${env:X}/own","beneath":"${env:X}"}]}`)
	p.Scope = rules.ScopeWorkspace
	tree := pathtest.New(sessions)
	q, _, err := p.Expand(rules.Values{Env: []string{"X=/oc"}})
	if err != nil {
		t.Fatal(err)
	}
	got, dropped, err := plan.Choose(q, user(tree), tree)
	if err != nil || len(got.Exposed) != 0 || len(dropped) != 1 || !strings.Contains(dropped[0].Why, "writable") {
		t.Errorf("exposed %v, dropped %v, %v", got.Exposed, dropped, err)
	}
	q.Scope = rules.ScopeLocal
	if got, _, err := plan.Choose(q, user(tree), tree); err != nil || len(got.Exposed) != 1 {
		t.Errorf("in scope local: %v, %v", got, err)
	}
}

// TestPrepareDerived: what was planted between the choice and the plan stops the
// launch.
func TestPrepareDerived(t *testing.T) {
	for _, tt := range []struct {
		name, before, planted string
		want                  string // "" for none
	}{
		{"nothing", "/i/s/mine/", "", ""},
		{"a link", "", "/i/s/mine -> other", "goes through a symbolic link"},
		{"a file in the place of a directory", "", "/i/s/mine", "is there and is not a directory"},
		{"a FIFO", "", "/i/s/mine fifo", "is there and is not a directory"},
		{"a socket", "", "/i/s/mine socket", "is there and is not a directory"},
		{"a directory in the place of the trace", "/i/s/mine/", "/i/trace/new/", "is there and is not a regular file"},
		{"a FIFO in the place of the trace", "/i/s/mine/", "/i/trace/new fifo", "is there and is not a regular file"},
		{"a hard link of another's trace", "/i/s/mine/", "/i/trace/new == /i/trace/theirs", "has another name"},
		{"a hard link of a secret", "/i/s/mine/", "/i/trace/new == /i/secrets/key", "has another name"},
		{"a mount of a secret", "/i/s/mine/\n/i/trace/new", "/i/trace/new bind /i/secrets/key", "is itself hidden, by hidden[1]"},
		{"a mount of another session", "", "/i/s/mine/ bind /i/s/other", "is itself hidden"},
		{"it went away", "/i/trace/new", "", "does not exist"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree := pathtest.New(sessions + tt.before)
			v := rules.Values{Argv: []string{"p", "--d", "/i/s/mine"}}
			if strings.Contains(tt.before+tt.planted, "/i/trace/new") {
				v.Env = []string{"TR=/i/trace/new"}
			}
			p, _, err := parse(t, `{"version":1,`+strings.Replace(sessionPolicy, "HIDDEN", "", 1)+`}`).Expand(v)
			if err != nil {
				t.Fatal(err)
			}
			if p, _, err = plan.Choose(p, user(tree), tree); err != nil {
				t.Fatal(err)
			}
			tree.Add(tt.planted)
			_, err = plan.Make(p, user(tree), tree)
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func parse(t *testing.T, text string) *rules.Policy {
	t.Helper()
	p, err := rules.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// TestPrepareDerivedElsewhere: the directory that was declared leads elsewhere
// since the choice, to what the same launch hides.
func TestPrepareDerivedElsewhere(t *testing.T) {
	const links = "/l -> oc\n/oc2/own/f\n"
	p, _, err := parse(t, `{"version":1,"hidden":[{"path":"${env:X}"}],"exposed":[{"path":"${env:X}/own","beneath":"${env:X}","kind":"dir"}]}`).
		Expand(rules.Values{Env: []string{"X=/l"}})
	if err != nil {
		t.Fatal(err)
	}
	tree := pathtest.New(sessions + links)
	if p, _, err = plan.Choose(p, user(tree), tree); err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Make(p, user(tree), tree); err != nil {
		t.Errorf("unchanged: %v", err)
	}
	tree.Remove("/l")
	tree.Add("/l -> oc2")
	if _, err := plan.Make(p, user(tree), tree); !errors.Is(err, pathcheck.ErrChanged) {
		t.Errorf("got %v, want %v", err, pathcheck.ErrChanged)
	}
}
