package rules

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// policyWith returns the policy with all defaults, changed.
func policyWith(change func(*Policy)) *Policy {
	p := &Policy{
		Version: 1, Required: true, Frozen: FrozenRefuse, Scope: ScopeLocal,
		Capabilities: CapabilitiesKeep, Network: Network{Mode: NetworkAllow},
		Descriptors: DescriptorPolicy{Mode: DescriptorsKeep},
	}
	change(p)
	return p
}

// policyHiding returns the policy that hides paths and has defaults else.
func policyHiding(paths ...string) *Policy {
	return policyWith(func(p *Policy) {
		p.Hidden = entryList("hidden", paths...)
		p.Capabilities = CapabilitiesRestricted
	})
}

// policyConfining returns the policy with all defaults, changed, which confines.
func policyConfining(change func(*Policy)) *Policy {
	return policyWith(func(p *Policy) { p.Capabilities = CapabilitiesRestricted; change(p) })
}

func entryList(key string, paths ...string) []Entry {
	var list []Entry
	for i, path := range paths {
		list = append(list, Entry{Path: path, Key: key + "[" + strconv.Itoa(i) + "]"})
	}
	return list
}

// Texts near the limits.
var (
	name255  = strings.Repeat("n", 255)
	path4095 = strings.Repeat("/"+strings.Repeat("n", 254), 16) + "/" + strings.Repeat("n", 14)
	many     = `"/a"` + strings.Repeat(`,"/a"`, maxEntries-1)
)

var acceptedPolicies = []struct {
	name, text string
	want       *Policy
}{
	{"version only", `{"version":1}`, policyWith(func(*Policy) {})},
	{"white space", " \t\r\n{ \"version\" : 1 , \"required\"\n:\tfalse } \r\n", policyWith(func(p *Policy) { p.Required = false })},
	{"required true", `{"required":true,"version":1}`, policyWith(func(*Policy) {})},
	{"hidden empty", `{"version":1,"hidden":[]}`, policyWith(func(*Policy) {})},
	{"hidden", `{"version":1,"hidden":["/b","/a"]}`, policyHiding("/b", "/a")},
	{"version last", `{"hidden":["/a"],"version":1}`, policyHiding("/a")},
	{"version escaped", `{"\u0076ersion":1}`, policyWith(func(*Policy) {})},
	{"path unclean", `{"version":1,"hidden":["//a/./b///c/./"]}`, policyHiding("/a/b/c")},
	{"path with dot-dot kept", `{"version":1,"hidden":["/a/../b/..","/a/..b/...","/./../../c"]}`, policyHiding("/a/../b/..", "/a/..b/...", "/c")},
	{"path with odd bytes", `{"version":1,"hidden":["/a b\n\t\"\\\/é\u00e9\ud83d\ude00\uFFFD\b\f\r\u001b"]}`, policyHiding("/a b\n\t\"\\/éé😀\uFFFD\b\f\r\x1b")},
	{"duplicates collapse, the first key stays", `{"version":1,"hidden":["/a/","/b","//a","/a/.","/c"]}`, policyWith(func(p *Policy) {
		p.Hidden = []Entry{{Path: "/a", Key: "hidden[0]"}, {Path: "/b", Key: "hidden[1]"}, {Path: "/c", Key: "hidden[4]"}}
		p.Capabilities = CapabilitiesRestricted
	})},
	{"dot-dot is no duplicate", `{"version":1,"hidden":["/a","/b/../a"]}`, policyHiding("/a", "/b/../a")},
	{"name of 255", `{"version":1,"hidden":["/` + name255 + `"]}`, policyHiding("/" + name255)},
	{"path of 4095", `{"version":1,"hidden":["` + path4095 + `"]}`, policyHiding(path4095)},
	{"path of 4095 when clean", `{"version":1,"hidden":["` + strings.Repeat("/.", 3000) + path4095 + `/"]}`, policyHiding(path4095)},
	{"4096 entries", `{"version":1,"hidden":[` + many + `]}`, policyHiding("/a")},
	{"exposed beneath hidden", `{"version":1,"exposed":["/a/b"],"hidden":["/a"]}`, policyWith(func(p *Policy) {
		p.Hidden, p.Exposed = entryList("hidden", "/a"), entryList("exposed", "/a/b")
		p.Capabilities = CapabilitiesRestricted
	})},
	{"precreate", `{"version":1,"precreate":["/a/b/"]}`, policyWith(func(p *Policy) { p.Precreate = entryList("precreate", "/a/b") })},
	{"precreate root is left to mkdir", `{"version":1,"precreate":["/"]}`, policyWith(func(p *Policy) { p.Precreate = entryList("precreate", "/") })},
	{"template", `{"version":1,"root":"/r/","hidden":[{"path":"${root}/a"},"/p"],"exposed":[{"kind":"dir","path":"${arg:--d}","beneath":"${root}/a","keep":1,"unless":["${cwd}","/x"]}],"precreate":[{"path":"/q"}]}`, policyWith(func(p *Policy) {
		p.Root, p.Capabilities = "/r", CapabilitiesRestricted
		p.Hidden = []Entry{{Key: "hidden[0]", Template: &Template{Path: "${root}/a"}}, {Path: "/p", Key: "hidden[1]"}}
		p.Exposed = []Entry{{Key: "exposed[0]", Template: &Template{Path: "${arg:--d}", Beneath: "${root}/a", Keep: 1, Kind: KindDir, Unless: []string{"${cwd}", "/x"}}}}
		p.Precreate = []Entry{{Key: "precreate[0]", Template: &Template{Path: "/q", Kind: KindDir}}}
	})},
	{"template with all sources", `{"version":1,"hidden":[{"path":"${env:A B}/${arg:-x|name}$y/${home|name}","beneath":"${home}","depth":64}]}`, policyWith(func(p *Policy) {
		p.Capabilities = CapabilitiesRestricted
		p.Hidden = []Entry{{Key: "hidden[0]", Template: &Template{Path: "${env:A B}/${arg:-x|name}$y/${home|name}", Beneath: "${home}", Depth: 64}}}
	})},
	{"path like a template", `{"version":1,"hidden":["/${root}/a"]}`, policyHiding("/${root}/a")},
	{"root alone", `{"version":1,"root":"/r"}`, policyWith(func(p *Policy) { p.Root = "/r" })},
	{"unversioned", `{"hidden":["/b/","/a"],"required":false,"extra":{"hidden":1}}`, policyWith(func(p *Policy) {
		p.Required, p.Hidden, p.Capabilities = false, entryList("hidden", "/b", "/a"), CapabilitiesRestricted
	})},
	{"frozen allow", `{"version":1,"frozen":"allow"}`, policyWith(func(p *Policy) { p.Frozen = FrozenAllow })},
	{"frozen refuse", `{"version":1,"frozen":"refuse"}`, policyWith(func(*Policy) {})},
	{"scope local", `{"version":1,"scope":"local"}`, policyWith(func(*Policy) {})},
	{"scope unrestricted", `{"version":1,"scope":"unrestricted"}`, policyWith(func(p *Policy) { p.Scope = ScopeUnrestricted })},
	{"scope unrestricted with all that goes with hidden", `{"version":1,"scope":"unrestricted","hidden":["/a"],"exposed":["/a/b"],"frozen":"allow","precreate":["/a/b"],"audit":false}`, policyWith(func(p *Policy) {
		p.Scope, p.Frozen, p.Capabilities = ScopeUnrestricted, FrozenAllow, CapabilitiesRestricted
		p.Hidden, p.Exposed, p.Precreate = entryList("hidden", "/a"), entryList("exposed", "/a/b"), entryList("precreate", "/a/b")
	})},
	{"capabilities restricted", `{"version":1,"capabilities":"restricted"}`, policyWith(func(p *Policy) { p.Capabilities = CapabilitiesRestricted })},
	{"capabilities keep", `{"version":1,"capabilities":"keep","hidden":["/a"]}`, policyWith(func(p *Policy) { p.Hidden = entryList("hidden", "/a") })},
	{"env", `{"version":1,"env":{"set":{"B":"1","A":"x=\n","é":""},"unset":["X","Y","X"]}}`, policyWith(func(p *Policy) {
		p.Env = EnvChange{Unset: []string{"X", "Y"}, Set: []EnvVar{{"A", "x=\n"}, {"B", "1"}, {"é", ""}}}
	})},
	{"env empty", `{"version":1,"env":{}}`, policyWith(func(*Policy) {})},
	{"env lists empty", `{"version":1,"env":{"unset":[],"set":{}}}`, policyWith(func(*Policy) {})},
	{"program", `{"version":1,"program":"/usr//bin/bash"}`, policyWith(func(p *Policy) { p.Program = "/usr/bin/bash" })},
	{"report file", `{"version":1,"report":"/var/log/./r.json"}`, policyWith(func(p *Policy) { p.Report = Destination{Path: "/var/log/r.json"} })},
	{"report descriptor", `{"version":1,"report":"fd:2"}`, policyWith(func(p *Policy) { p.Report = Destination{FD: 2, IsFD: true} })},
	{"report largest descriptor", `{"version":1,"report":"fd:2147483647"}`, policyWith(func(p *Policy) { p.Report = Destination{FD: 1<<31 - 1, IsFD: true} })},
	{"log", `{"version":1,"log":{"to":"/l","level":"trace"}}`, policyWith(func(p *Policy) { p.Log = LogConfig{"trace", Destination{Path: "/l"}} })},
	{"log to a descriptor", `{"version":1,"log":{"level":"warn","to":"fd:10"}}`, policyWith(func(p *Policy) { p.Log = LogConfig{"warn", Destination{FD: 10, IsFD: true}} })},
	{"network deny", `{"version":1,"network":"deny"}`, policyConfining(func(p *Policy) { p.Network.Mode = NetworkDeny })},
	{"network deny, capabilities kept", `{"version":1,"network":"deny","capabilities":"keep"}`, policyWith(func(p *Policy) { p.Network.Mode = NetworkDeny })},
	{"network without lists", `{"version":1,"network":{"udp":"allow"}}`, policyConfining(func(p *Policy) { p.Network = Network{Mode: NetworkPorts, UDP: true} })},
	{"network with lists", `{"version":1,"network":{"connectTCP":[443, 0,80],"udp":"deny","bindTCP":[65535]}}`, policyConfining(func(p *Policy) {
		p.Network = Network{Mode: NetworkPorts, ConnectTCP: []uint16{0, 80, 443}, BindTCP: []uint16{65535}}
	})},
	{"network with empty lists", `{"version":1,"network":{"connectTCP":[],"bindTCP":[ ],"udp":"deny"}}`, policyConfining(func(p *Policy) {
		p.Network = Network{Mode: NetworkPorts, ConnectTCP: []uint16{}, BindTCP: []uint16{}}
	})},
	{"isolate all", `{"version":1,"isolate":["tty","proc","unix-sockets","abstract-unix","signals"]}`, policyConfining(func(p *Policy) {
		p.Isolate = IsolateSignals | IsolateAbstractUnix | IsolateUnixSockets | IsolateProc | IsolateTTY
	})},
	{"isolate ipc", `{"version":1,"isolate":["ipc"]}`, policyConfining(func(p *Policy) { p.Isolate = IsolateIPC })},
	{"isolate one", `{"version":1,"isolate":["tty"]}`, policyConfining(func(p *Policy) { p.Isolate = IsolateTTY })},
	{"descriptors close", `{"version":1,"descriptors":"close"}`, policyConfining(func(p *Policy) { p.Descriptors.Mode = DescriptorsClose })},
	{"descriptors list", `{"version":1,"descriptors":{"keep":[9,3]}}`, policyConfining(func(p *Policy) { p.Descriptors = DescriptorPolicy{DescriptorsList, []int{3, 9}} })},
	{"descriptors empty list", `{"version":1,"descriptors":{"keep":[]}}`, policyConfining(func(p *Policy) { p.Descriptors.Mode = DescriptorsList })},
	{"audit", `{"version":1,"audit":true}`, policyWith(func(p *Policy) { p.Audit = true })},
	{"audit beside unrestricted", `{"version":1,"audit":true,"scope":"unrestricted"}`, policyWith(func(p *Policy) { p.Audit, p.Scope = true, ScopeUnrestricted })},
	{"commandCheck deny", `{"version":1,"commandCheck":"deny"}`, policyWith(func(p *Policy) { p.CommandCheck = true })},
	{"commandCheck off", `{"version":1,"commandCheck":"off"}`, policyWith(func(*Policy) {})},
	{"keys that ask for nothing", `{"version":1,"network":"allow","isolate":[ ],"descriptors":"keep","commandCheck":"off","audit":false}`, policyWith(func(*Policy) {})},
}

func TestParse(t *testing.T) {
	for _, row := range acceptedPolicies {
		t.Run(row.name, func(t *testing.T) {
			got, err := Parse([]byte(row.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestParseOtherPolicyEnv(t *testing.T) {
	opts := Options{PolicyEnv: "MY_POLICY"}
	if _, err := opts.Parse([]byte(`{"version":1,"env":{"set":{"SANDBOX_EXEC_SHIM_POLICY":""}}}`)); err != nil {
		t.Errorf("the default name is free when another is in use: %v", err)
	}
	_, err := opts.Parse([]byte(`{"version":1,"env":{"unset":["A","MY_POLICY"]}}`))
	if want := "env.unset[1]: is the variable of the policy itself"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestCleanPath(t *testing.T) {
	for in, want := range map[string]string{
		"/": "/", "//": "/", "/.": "/", "/..": "/", "/../..//./": "/",
		"/a": "/a", "/a/": "/a", "/a//b/./c/": "/a/b/c", "/a/.": "/a",
		"/a/..": "/a/..", "/a/../": "/a/..", "/../a/..": "/a/..",
		"/a/...": "/a/...", "/.a": "/.a", "/a/b.": "/a/b.", "/ /": "/ ",
	} {
		got, err := cleanPath(in)
		if err != nil || got != want {
			t.Errorf("cleanPath(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}
