package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// TestCase04_MalformedWithoutAVersion: what is no policy of that form is an
// error with its key.
func TestCase04_MalformedWithoutAVersion(t *testing.T) {
	const missing = `missing (a policy without "version":1 has "hidden" and "required")`
	for _, tt := range []struct{ text, want string }{
		{`null`, "not a JSON object"},
		{`[]`, "not a JSON object"},
		{`{"required":true}`, "hidden: " + missing},
		{`{"hidden":"/a","required":true}`, "hidden: must be a list of absolute paths"},
		{`{"hidden":["rel"],"required":true}`, "hidden[0]: not an absolute path"},
		{`{"hidden":[1],"required":true}`, "hidden[0]: not an absolute path"},
		{`{"hidden":[{"path":"/a"}],"required":true}`, "hidden[0]: not an absolute path"},
		{`{"hidden":["/"],"required":true}`, "hidden[0]: hiding / would hide everything"},
		{`{"hidden":["/a"]}`, "required: " + missing},
		{`{"hidden":["/a"],"required":"true"}`, "required: must be true or false"},
		{`{"hidden":["/a"],"required":null}`, "required: must be true or false"},
		{`{"hidden":[],"required":true,"instanceRoot":""}`, "instanceRoot: not an absolute path"},
		{`{"hidden":[],"required":true,"instanceRoot":null}`, "instanceRoot: not an absolute path"},
		{`{"hidden":[],"required":true,"instanceRoot":"rel"}`, "instanceRoot: not an absolute path"},
		{`{"hidden":[],"required":true,"instanceRoot":"/a/../b"}`, `root: "/a/../b": ".." is not allowed here`},
	} {
		p, err := rules.Parse([]byte(tt.text))
		if err == nil || err.Error() != tt.want || p != nil {
			t.Errorf("%s: %v, %v; want %q", tt.text, p, err, tt.want)
		}
	}
}

// Every key that version 1 has would hold less than its text says if it were
// ignored.
func TestUnversionedRefusesKeysOfVersion1(t *testing.T) {
	for _, key := range []string{
		"profile", "root", "exposed", "precreate", "scope", "workspace", "writable", "toolchainDirs", "frozen", "network",
		"isolate", "capabilities", "descriptors", "env", "program", "commandCheck", "audit", "report", "log",
	} {
		_, err := rules.Parse([]byte(`{"hidden":["/a"],"required":true,"` + key + `":{}}`))
		if want := key + `: is a key of version 1 (add "version":1)`; err == nil || err.Error() != want {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestCase05_UnknownKeysAreIgnored(t *testing.T) {
	p := parse(t, `{"hidden":[],"required":false,"x":1}`)
	if p.Version != 1 || p.Required || p.Confines() || p.Profile != "" {
		t.Errorf("%+v", p)
	}
	p = parse(t, `{"hidden":["/b","/a/","/a"],"required":true,"x":{"hidden":[1]}}`)
	var paths []string
	for _, e := range p.Hidden {
		paths = append(paths, e.Path)
	}
	if diff := cmp.Diff([]string{"/b", "/a"}, paths); diff != "" || !p.Required || p.Capabilities != rules.CapabilitiesRestricted {
		t.Errorf("%+v", p)
	}
}

// TestUnversionedRunScope: instanceRoot is a root with the built-in profile.
func TestUnversionedRunScope(t *testing.T) {
	for _, required := range []bool{true, false} {
		text := `{"hidden":["/graders"],"required":` + map[bool]string{true: "true", false: "false"}[required] + `,"instanceRoot":"/i/"}`
		p := parse(t, text)
		if p.Profile != rules.PaperclipRunner || p.Root != "/i" || p.Required != required {
			t.Errorf("%s: %+v", text, p)
		}
		same := parse(t, `{"version":1,"hidden":["/graders"],"required":`+text[strings.Index(text, `red":`)+5:strings.Index(text, `,"inst`)]+`,"profile":"paperclip-runner","root":"/i"}`)
		if diff := cmp.Diff(same, p); diff != "" {
			t.Errorf("(-version 1 +without)\n%s", diff)
		}
	}
}

// TestPaperclipRunner: the nine hidden paths, the seven precreated directories
// and the three exposures.
func TestPaperclipRunner(t *testing.T) {
	p := parse(t, `{"hidden":["/graders"],"required":true,"instanceRoot":"/i"}`)
	const r = "/i/runtime/paperclip-runner"
	nine := []string{
		"/graders", r + "/durable-sessions", r + "/runner", r + "/control-plane", r + "/opencode",
		"/i/data/run-logs", "/i/data/provider-traces", "/i/data/backups", "/i/db", "/i/secrets",
	}
	seven := []string{
		r + "/acpx", "/i/companies", "/i/projects", "/i/workspaces", "/i/runtime-context-assets", "/i/skills", "/i/runtime/provider-packs",
	}
	for _, tt := range []struct {
		name    string
		args    []string
		env     []string
		hidden  []string // beyond the nine
		exposed []string
	}{
		{"nothing given", nil, nil, nil, nil},
		{
			"a session",
			[]string{"--state-dir", r + "/durable-sessions/own-scope/runner", "--session-id", "own-session"},
			nil, nil,
			[]string{r + "/durable-sessions/own-scope", r + "/opencode/own-session"},
		},
		{"under runner", []string{"--state-dir", r + "/runner/x/y"}, nil, nil, []string{r + "/runner/x"}},
		{"joined form", []string{"--state-dir=" + r + "/runner/x"}, nil, nil, nil},
		{"the directory itself", []string{"--state-dir", r + "/durable-sessions"}, nil, nil, nil},
		{"out by dot-dot", []string{"--state-dir", r + "/durable-sessions/../db"}, nil, nil, nil},
		{"relative", []string{"--state-dir", "durable-sessions/x"}, nil, nil, nil},
		{"session with a slash", []string{"--session-id", "a/b"}, nil, nil, []string{r + "/opencode/a_b"}},
		{"session of dots", []string{"--session-id", ".."}, nil, nil, nil},
		{"session blank", []string{"--session-id", " "}, nil, nil, nil},
		{"session emoji", []string{"--session-id", "😀"}, nil, nil, []string{r + "/opencode/__"}},
		{"session long", []string{"--session-id", strings.Repeat("x", 130)}, nil, nil, []string{r + "/opencode/" + strings.Repeat("x", 120)}},
		{
			"OpenCode elsewhere",
			[]string{"--session-id", "own"},
			[]string{"PAPERCLIP_OPENCODE_RUNTIME_DIR=/oc"},
			[]string{"/oc"},
			[]string{r + "/opencode/own", "/oc/own"},
		},
		{
			"OpenCode in the own session",
			[]string{"--session-id", "own"},
			[]string{"PAPERCLIP_OPENCODE_RUNTIME_DIR=" + r + "/durable-sessions/own/oc"},
			nil,
			[]string{r + "/opencode/own"},
		},
		{"OpenCode relative", []string{"--session-id", "own"}, []string{"PAPERCLIP_OPENCODE_RUNTIME_DIR=oc"}, nil, []string{r + "/opencode/own"}},
		{"trace", nil, []string{"PAPERCLIP_PROVIDER_TRACE_PATH=/i/data/provider-traces/t"}, nil, []string{"/i/data/provider-traces/t"}},
		{"trace deeper", nil, []string{"PAPERCLIP_PROVIDER_TRACE_PATH=/i/data/provider-traces/t/u"}, nil, nil},
		{"trace elsewhere", nil, []string{"PAPERCLIP_PROVIDER_TRACE_PATH=/i/db/t"}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := rules.Values{Argv: append([]string{"x"}, tt.args...), Env: tt.env, Names: []string{"paperclip-runnerd"}}
			q, _, err := p.Expand(v)
			if err != nil {
				t.Fatal(err)
			}
			paths := func(list []rules.Entry) (out []string) {
				for _, e := range list {
					out = append(out, e.Path)
				}
				return out
			}
			want := [][]string{slices.Concat(nine, tt.hidden), tt.exposed, seven}
			if diff := cmp.Diff(want, [][]string{paths(q.Hidden), paths(q.Exposed), paths(q.Precreate)}); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestCase50_AnotherTarget: without the run scope the policy's own paths stay
// hidden.
func TestCase50_AnotherTarget(t *testing.T) {
	p := parse(t, `{"hidden":["/graders"],"required":true,"instanceRoot":"/i"}`)
	for _, names := range [][]string{{"bash"}, nil, {"paperclip-runnerd2", ""}} {
		q, dropped, err := p.Expand(rules.Values{Names: names})
		if err != nil || len(q.Hidden) != 1 || len(q.Exposed)+len(q.Precreate)+len(dropped) != 0 || p.Applies(names) {
			t.Errorf("%q: %+v, %v, %v", names, q, dropped, err)
		}
	}
}
