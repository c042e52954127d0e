package rules_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// profiles reads profiles from names and texts.
func profiles(texts map[string]string) rules.Options {
	return rules.Options{ReadProfile: func(name string) ([]byte, string, error) {
		if text, ok := texts[name]; ok {
			return []byte(text), "/p/" + name + ".json", nil
		}
		return nil, "", nil
	}}
}

// TestBuiltinProfiles: what is in the folder is built in, and each is sound.
func TestBuiltinProfiles(t *testing.T) {
	entries, err := os.ReadDir("profiles")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	if diff := cmp.Diff(names, rules.BuiltinProfiles()); diff != "" {
		t.Errorf("(-folder +built in)\n%s", diff)
	}
	for _, name := range names {
		p, err := rules.Options{}.Profile(name)
		if err != nil || p.Description == "" || p.File != "" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		parse(t, `{"version":1,"root":"/r","profile":"`+name+`"}`)
	}
}

// TestJoin: lists are joined, scalars replaced, and required holds if either says
// so, or neither does.
func TestJoin(t *testing.T) {
	o := profiles(map[string]string{
		"lists": `{"version":1,"hidden":["/a","/p",{"path":"/t"}],"exposed":["/a/x"],"precreate":["/a/x"],"isolate":["signals"],
			"env":{"unset":["U","BOTH"],"set":{"S":"profile","T":"profile"}}}`,
		"scalars": `{"version":1,"root":"/profile","frozen":"allow","capabilities":"keep","report":"/profile","hidden":[{"path":"${root}"}]}`,
		"must":    `{"version":1,"required":true}`,
		"may":     `{"version":1,"required":false}`,
		"silent":  `{"version":1}`,
	})
	read := func(text string) *rules.Policy {
		t.Helper()
		p, err := o.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return p
	}

	p := read(`{"version":1,"profile":"lists","hidden":["/b","/a"],"isolate":["tty"],"env":{"unset":["T"],"set":{"S":"policy","BOTH":"policy"}}}`)
	var keys []string
	for _, e := range p.Hidden {
		keys = append(keys, e.Key+" "+e.Path)
	}
	if diff := cmp.Diff([]string{"hidden[0] /b", "hidden[1] /a", "profile.hidden[1] /p", "profile.hidden[2] "}, keys); diff != "" {
		t.Errorf("hidden (-want +got)\n%s", diff)
	}
	if len(p.Exposed) != 1 || len(p.Precreate) != 1 || p.Isolate != rules.IsolateSignals|rules.IsolateTTY {
		t.Errorf("%+v", p)
	}
	want := rules.EnvChange{Unset: []string{"T", "U"}, Set: []rules.EnvVar{{Name: "BOTH", Value: "policy"}, {Name: "S", Value: "policy"}}}
	if diff := cmp.Diff(want, p.Env); diff != "" {
		t.Errorf("env (-want +got)\n%s", diff)
	}

	p = read(`{"profile":"scalars","version":1}`)
	if p.Root != "/profile" || p.Frozen != rules.FrozenAllow || p.Capabilities != rules.CapabilitiesKeep || p.Report.Path != "/profile" {
		t.Errorf("of the profile: %+v", p)
	}
	p = read(`{"version":1,"profile":"scalars","root":"/policy","frozen":"refuse","capabilities":"restricted","report":"fd:3"}`)
	if p.Root != "/policy" || p.Frozen != rules.FrozenRefuse || p.Capabilities != rules.CapabilitiesRestricted || p.Report.FD != 3 {
		t.Errorf("of the policy: %+v", p)
	}
	if p.ProfileFile != "/p/scalars.json" {
		t.Errorf("read from %q", p.ProfileFile)
	}

	for _, row := range []struct {
		profile, policy string
		want            bool
	}{
		{"silent", "", true},
		{"silent", "true", true},
		{"silent", "false", false},
		{"must", "", true},
		{"must", "true", true},
		{"must", "false", true},
		{"may", "", false},
		{"may", "true", true},
		{"may", "false", false},
	} {
		text := `{"version":1,"profile":"` + row.profile + `"`
		if row.policy != "" {
			text += `,"required":` + row.policy
		}
		if got := read(text + "}").Required; got != row.want {
			t.Errorf("profile %s, policy %q: required is %v", row.profile, row.policy, got)
		}
	}
}

func TestProfileErrors(t *testing.T) {
	o := profiles(map[string]string{
		"broken":   `{"version":1,`,
		"empty":    ``,
		"old":      `{"hidden":[]}`,
		"nested":   `{"version":1,"profile":"silent"}`,
		"program":  `{"version":1,"program":"/bin/sh"}`,
		"unknown":  `{"version":1,"hiden":[]}`,
		"relative": `{"version":1,"hidden":["a"]}`,
		"notarget": `{"version":1,"targets":[]}`,
		"badname":  `{"version":1,"targets":["/bin/sh"]}`,
		"desc":     `{"version":1,"description":1}`,
		"rooted":   `{"version":1,"hidden":["/h"],"exposed":[{"path":"${arg:--d}","beneath":"${root}"}]}`,
		"exposes":  `{"version":1,"exposed":["/a"]}`,
		"keeps":    `{"version":1,"capabilities":"keep"}`,
	})
	for _, tt := range []struct{ text, want string }{
		{`"profile":"gone"`, "profile: neither built in nor in the profile directory"},
		{`"profile":"../silent"`, "profile: must be the name of a profile"},
		{`"profile":".."`, "profile: must be the name of a profile"},
		{`"profile":""`, "profile: must be the name of a profile"},
		{`"profile":1`, "profile: must be the name of a profile"},
		{`"profile":"` + strings.Repeat("x", 121) + `"`, "profile: must be the name of a profile"},
		{`"profile":"broken"`, "profile: not valid JSON (byte 13)"},
		{`"profile":"empty"`, "profile: not a JSON object"},
		{`"profile":"old"`, `profile.version: missing (add "version":1)`},
		{`"profile":"nested"`, "profile.profile: not allowed in a profile"},
		{`"profile":"program"`, "profile.program: not allowed in a profile"},
		{`"profile":"unknown"`, "profile.hiden: unknown key"},
		{`"profile":"relative"`, "profile.hidden[0]: not an absolute path"},
		{`"profile":"notarget"`, "profile.targets: is empty"},
		{`"profile":"badname"`, "profile.targets[0]: not the name of a program"},
		{`"profile":"desc"`, "profile.description: must be a string"},
		{`"profile":"rooted"`, `profile.exposed[0]: needs the key "root"`},
		{`"profile":"rooted","root":"/a/../b"`, `root: "/a/../b": ".." is not allowed here`},
		{`"profile":"exposes"`, `profile.exposed[0]: "/a": exposed, but nothing is hidden`},
		{`"profile":"keeps","scope":"unrestricted"`, `profile.capabilities: not allowed with scope "unrestricted"`},
	} {
		p, err := o.Parse([]byte(`{"version":1,` + tt.text + `}`))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || p != nil {
			t.Errorf("%s: %v, %v; want %q", tt.text, p, err, tt.want)
		}
	}
}
