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

// The rows of rejectedPolicies hold every message that Parse knows.
var rejectedPolicies = []struct{ name, text, want string }{
	{"empty", ``, `not a JSON object`},
	{"null", `null`, `not a JSON object`},
	{"array", `[]`, `not a JSON object`},
	{"string", `"/a"`, `not a JSON object`},
	{"byte order mark", "\ufeff{}", `not a JSON object`},
	{"form feed", "\f{}", `not a JSON object`},
	{"open", `{`, `not valid JSON (byte 1)`},
	{"cut in a key", `{"vers`, `not valid JSON (byte 6)`},
	{"cut after a key", `{"version"`, `not valid JSON (byte 10)`},
	{"cut after a colon", `{"version":`, `not valid JSON (byte 11)`},
	{"cut after a value", `{"version":1`, `not valid JSON (byte 12)`},
	{"cut in an escape", `{"version":1,"hidden":["\`, `not valid JSON (byte 24)`},
	{"comma at the end", `{"version":1,}`, `not valid JSON (byte 13)`},
	{"comma at the end of a list", `{"version":1,"hidden":["/a",]}`, `not valid JSON (byte 28)`},
	{"no comma", `{"version":1 "hidden":[]}`, `not valid JSON (byte 13)`},
	{"single quotes", `{'version':1}`, `not valid JSON (byte 1)`},
	{"comment", `{"version":1/**/}`, `not valid JSON (byte 12)`},
	{"unknown word", `{"version":1,"required":True}`, `not valid JSON (byte 24)`},
	{"NaN", `{"version":NaN}`, `not valid JSON (byte 11)`},
	{"leading zero", `{"version":01}`, `not valid JSON (byte 12)`},
	{"leading plus", `{"version":+1}`, `not valid JSON (byte 11)`},
	{"no digit after the point", `{"version":1.}`, `not valid JSON (byte 13)`},
	{"no digit after the sign", `{"version":-}`, `not valid JSON (byte 12)`},
	{"no digit in the exponent", `{"version":1e+}`, `not valid JSON (byte 14)`},
	{"number as a key", `{"version":1,"x":{1:2}}`, `not valid JSON (byte 18)`},
	{"wrong escape in an inner key", `{"version":1,"x":{"\q":2}}`, `not valid JSON (byte 19)`},
	{"no colon", `{"version":1,"x":{"a" 2}}`, `not valid JSON (byte 22)`},
	{"no comma in a list", `{"version":1,"x":[1 2]}`, `not valid JSON (byte 20)`},
	{"brackets crossed", `{"version":1,"x":[1}}`, `not valid JSON (byte 19)`},
	{"word in other letters", `{"version":1,"required":trUe}`, `not valid JSON (byte 24)`},
	{"word cut", `{"version":1,"required":fals`, `not valid JSON (byte 24)`},
	{"word too long", `{"version":1,"required":nulls}`, `not valid JSON (byte 28)`},
	{"unicode escape cut", `{"version":1,"hidden":["\u12`, `not valid JSON (byte 24)`},
	{"wrong escape", `{"version":1,"hidden":["/\x"]}`, `not valid JSON (byte 25)`},
	{"wrong unicode escape", `{"version":1,"hidden":["/\u12G4"]}`, `not valid JSON (byte 25)`},
	{"control byte in a string", "{\"version\":1,\"hidden\":[\"/a\n\"]}", `not valid JSON (byte 26)`},
	{"NUL byte in a string", "{\"version\":1,\"hidden\":[\"/a\x00\"]}", `not valid JSON (byte 26)`},
	{"NUL byte at the end", "{\"version\":1}\x00", `data after the policy (byte 13)`},
	{"second object", `{"version":1} {"version":1}`, `data after the policy (byte 14)`},
	{"second brace", `{"version":1}}`, `data after the policy (byte 13)`},
	{"too large", `{"version":1}` + strings.Repeat(" ", MaxText), `larger than 1 MiB`},
	{"brackets only", strings.Repeat("[", MaxText), `not a JSON object`},
	{"bomb of brackets", bomb(`{"version":1,"hidden":`, `[`), `nested too deep (byte 29)`},
	{"bomb of objects", bomb(`{"version":1,"a":`, `{"a":`), `nested too deep (byte 52)`},
	{"bomb of both", bomb(`{"a":`, `[{"":`), `nested too deep (byte 21)`},
	{"depth 9", `{"version":1,"a":[[[[[[[[]]]]]]]]}`, `nested too deep (byte 24)`},
	{"depth 8", `{"version":1,"a":[[[[[[[]]]]]]]}`, `a: unknown key`},
	{"too many keys", `{` + manyKeys(maxEntries+1) + `}`, `more than 4096 entries`},

	{"duplicate key", `{"version":1,"version":1}`, `version: duplicate key`},
	{"duplicate key, escaped", `{"version":1,"hidden":[],"hidd\u0065n":["/a"]}`, `hidden: duplicate key`},
	{"duplicate unknown key", `{"x":1,"x":1}`, `x: duplicate key`},
	{"duplicate key in log", `{"version":1,"log":{"level":"info","level":"info","to":"/l"}}`, `log.level: duplicate key`},
	{"duplicate key in env", `{"version":1,"env":{"unset":[],"unset":["A"]}}`, `env.unset: duplicate key`},
	{"duplicate variable", `{"version":1,"env":{"set":{"A":"1","A":"1"}}}`, `env.set.A: duplicate key`},

	{"no key", `{}`, `hidden: missing (a policy without "version":1 has "hidden" and "required")`},
	{"version in another case", `{"Version":1}`, `hidden: missing (a policy without "version":1 has "hidden" and "required")`},
	{"version 2", `{"version":2}`, `version: must be 1`},
	{"version 1.0", `{"version":1.0}`, `version: must be 1`},
	{"version 1e0", `{"version":1e0}`, `version: must be 1`},
	{"version 10e-1", `{"version":10E-1}`, `version: must be 1`},
	{"version -0", `{"version":-0}`, `version: must be 1`},
	{"version as text", `{"version":"1"}`, `version: must be 1`},
	{"version true", `{"version":true}`, `version: must be 1`},
	{"version null", `{"version":null}`, `version: must be 1`},

	{"unknown key", `{"version":1,"hide":["/secret"]}`, `hide: unknown key`},
	{"unknown key in another case", `{"version":1,"Hidden":[]}`, `Hidden: unknown key`},
	{"unknown key in capitals", `{"version":1,"NETWORK":"deny"}`, `NETWORK: unknown key`},
	{"unknown key, empty", `{"version":1,"":1}`, `unknown key`},
	{"unknown key with a line break", `{"version":1,"a\nb":1}`, `"a\nb": unknown key`},
	{"unknown key, long", `{"version":1,"` + strings.Repeat("k", 999) + `":1}`, `"` + strings.Repeat("k", 64) + `"…: unknown key`},
	{"key of the form without version", `{"version":1,"instanceRoot":"/a"}`, `instanceRoot: unknown key`},

	{"required as text", `{"version":1,"required":"true"}`, `required: must be true or false`},
	{"required 1", `{"version":1,"required":1}`, `required: must be true or false`},
	{"required null", `{"version":1,"required":null}`, `required: must be true or false`},

	{"hidden as text", `{"version":1,"hidden":"/a"}`, `hidden: must be a list of absolute paths and templates`},
	{"hidden null", `{"version":1,"hidden":null}`, `hidden: must be a list of absolute paths and templates`},
	{"hidden as object", `{"version":1,"hidden":{"0":"/a"}}`, `hidden: must be a list of absolute paths and templates`},
	{"hidden relative", `{"version":1,"hidden":["/a","/b","sk-secret"]}`, `hidden[2]: not an absolute path`},
	{"hidden home", `{"version":1,"hidden":["~/a"]}`, `hidden[0]: not an absolute path`},
	{"hidden empty text", `{"version":1,"hidden":[""]}`, `hidden[0]: not an absolute path`},
	{"hidden number", `{"version":1,"hidden":[1]}`, `hidden[0]: not an absolute path`},
	{"hidden null in the list", `{"version":1,"hidden":[null]}`, `hidden[0]: not an absolute path`},
	{"hidden list in the list", `{"version":1,"hidden":[["/a"]]}`, `hidden[0]: not an absolute path`},
	{"hidden root", `{"version":1,"hidden":["/"]}`, `hidden[0]: hiding / would hide everything`},
	{"hidden root, unclean", `{"version":1,"hidden":["/a","/./../.."]}`, `hidden[1]: hiding / would hide everything`},
	{"hidden with a long name", `{"version":1,"hidden":["/` + name255 + `n"]}`, `hidden[0]: "/` + name255[:159] + `"…: a name in the path is longer than 255 bytes`},
	{"hidden too long", `{"version":1,"hidden":["` + path4095 + `n"]}`, `hidden[0]: "` + path4095[:160] + `"…: path is longer than 4095 bytes`},
	{"hidden with too many", `{"version":1,"hidden":[` + many + `,"/a"]}`, `hidden: more than 4096 entries`},
	{"exposed relative", `{"version":1,"exposed":["a"],"hidden":["/"]}`, `exposed[0]: not an absolute path`},
	{"exposed, nothing hidden", `{"version":1,"exposed":["/a/","/b"]}`, `exposed[0]: "/a": exposed, but nothing is hidden`},
	{"exposed, hidden empty", `{"version":1,"exposed":["/a"],"hidden":[]}`, `exposed[0]: "/a": exposed, but nothing is hidden`},
	{"precreate number", `{"version":1,"precreate":[0]}`, `precreate[0]: not an absolute path`},
	{"precreate true", `{"version":1,"precreate":true}`, `precreate: must be a list of absolute paths and templates`},

	{"invalid UTF-8", "{\"version\":1,\"hidden\":[\"/a\xff\"]}", `hidden[0]: invalid UTF-8 (byte 26)`},
	{"invalid UTF-8, cut", "{\"version\":1,\"hidden\":[\"/a\xc3\"]}", `hidden[0]: invalid UTF-8 (byte 26)`},
	{"invalid UTF-8, overlong", "{\"version\":1,\"hidden\":[\"/a\xc0\xaf\"]}", `hidden[0]: invalid UTF-8 (byte 26)`},
	{"invalid UTF-8, surrogate", "{\"version\":1,\"hidden\":[\"/\xed\xa0\x80\"]}", `hidden[0]: invalid UTF-8 (byte 25)`},
	{"invalid UTF-8 in a key", "{\"version\xff\":1}", `invalid UTF-8 (byte 9)`},
	{"invalid UTF-8 outside a string", "{\"version\":1\xff}", `not valid JSON (byte 12)`},
	{"high surrogate alone", `{"version":1,"hidden":["/\ud83d"]}`, `hidden[0]: lone surrogate (byte 25)`},
	{"high surrogate, no escape behind", `{"version":1,"hidden":["/\ud83dabcdef"]}`, `hidden[0]: lone surrogate (byte 25)`},
	{"high surrogate twice", `{"version":1,"hidden":["/\ud83d\ud83d"]}`, `hidden[0]: lone surrogate (byte 25)`},
	{"low surrogate alone", `{"version":1,"hidden":["/\ude00"]}`, `hidden[0]: lone surrogate (byte 25)`},
	{"NUL in a path", `{"version":1,"hidden":["/a\u0000b"]}`, `hidden[0]: NUL in a string (byte 26)`},
	{"NUL in a key", `{"version":1,"hidden\u0000":[]}`, `NUL in a string (byte 20)`},
	{"NUL in a value", `{"version":1,"env":{"set":{"A":"\u0000"}}}`, `env.set.A: NUL in a string (byte 32)`},
	{"NUL in a variable", `{"version":1,"env":{"set":{"A\u0000":""}}}`, `env.set: NUL in a string (byte 29)`},
	{"NUL in program", `{"version":1,"program":"/a\u0000"}`, `program: NUL in a string (byte 26)`},

	{"frozen unknown", `{"version":1,"frozen":"Allow"}`, `frozen: must be "refuse" or "allow"`},
	{"frozen bool", `{"version":1,"frozen":true}`, `frozen: must be "refuse" or "allow"`},
	{"scope empty", `{"version":1,"scope":""}`, `scope: must be "workspace", "local" or "unrestricted"`},
	{"scope unknown", `{"version":1,"scope":"all"}`, `scope: must be "workspace", "local" or "unrestricted"`},
	{"scope null", `{"version":1,"scope":null}`, `scope: must be "workspace", "local" or "unrestricted"`},
	{"capabilities unknown", `{"version":1,"capabilities":"drop"}`, `capabilities: must be "restricted" or "keep"`},
	{"capabilities list", `{"version":1,"capabilities":[]}`, `capabilities: must be "restricted" or "keep"`},
	{"unrestricted and capabilities", `{"version":1,"capabilities":"restricted","scope":"unrestricted"}`, `capabilities: not allowed with scope "unrestricted"`},
	{"network null", `{"version":1,"network":null}`, `network: must be "allow", "deny" or an object with "udp", "connectTCP" and "bindTCP"`},
	{"network of another name", `{"version":1,"network":"ports"}`, `network: must be "allow", "deny" or an object with "udp", "connectTCP" and "bindTCP"`},
	{"network empty object", `{"version":1,"network":{}}`, `network.udp: missing`},
	{"network without udp", `{"version":1,"network":{"connectTCP":[80]}}`, `network.udp: missing`},
	{"network udp of another name", `{"version":1,"network":{"udp":"keep"}}`, `network.udp: must be "allow" or "deny"`},
	{"network udp true", `{"version":1,"network":{"udp":true}}`, `network.udp: must be "allow" or "deny"`},
	{"network unknown key", `{"version":1,"network":{"udp":"deny","connect":[]}}`, `network.connect: unknown key`},
	{"network key twice", `{"version":1,"network":{"udp":"deny","udp":"allow"}}`, `network.udp: duplicate key`},
	{"ports no list", `{"version":1,"network":{"udp":"deny","connectTCP":80}}`, `network.connectTCP: must be a list of ports`},
	{"port too large", `{"version":1,"network":{"udp":"deny","connectTCP":[1,65536]}}`, `network.connectTCP[1]: must be a port from 0 to 65535`},
	{"port much too large", `{"version":1,"network":{"udp":"deny","bindTCP":[99999999999999999999]}}`, `network.bindTCP[0]: must be a port from 0 to 65535`},
	{"port negative", `{"version":1,"network":{"udp":"deny","bindTCP":[-1]}}`, `network.bindTCP[0]: must be a port from 0 to 65535`},
	{"port minus zero", `{"version":1,"network":{"udp":"deny","bindTCP":[-0]}}`, `network.bindTCP[0]: must be a port from 0 to 65535`},
	{"port broken", `{"version":1,"network":{"udp":"deny","bindTCP":[80.5]}}`, `network.bindTCP[0]: must be a port from 0 to 65535`},
	{"port with exponent", `{"version":1,"network":{"udp":"deny","bindTCP":[8e1]}}`, `network.bindTCP[0]: must be a port from 0 to 65535`},
	{"port string", `{"version":1,"network":{"udp":"deny","bindTCP":["80"]}}`, `network.bindTCP[0]: must be a port from 0 to 65535`},
	{"port list", `{"version":1,"network":{"udp":"deny","bindTCP":[[80]]}}`, `network.bindTCP[0]: must be a port from 0 to 65535`},
	{"port twice", `{"version":1,"network":{"udp":"deny","bindTCP":[80,81,80]}}`, `network.bindTCP[2]: given twice`},
	{"isolate string", `{"version":1,"isolate":"signals"}`, `isolate: must be a list of "signals", "abstract-unix", "unix-sockets", "proc", "tty" and "ipc"`},
	{"isolate unknown", `{"version":1,"isolate":["signals","Proc"]}`, `isolate[1]: must be "signals", "abstract-unix", "unix-sockets", "proc", "tty" or "ipc"`},
	{"isolate number", `{"version":1,"isolate":[1]}`, `isolate[0]: must be "signals", "abstract-unix", "unix-sockets", "proc", "tty" or "ipc"`},
	{"isolate twice", `{"version":1,"isolate":["tty","proc","tty"]}`, `isolate[2]: given twice`},
	{"descriptors of another name", `{"version":1,"descriptors":"list"}`, `descriptors: must be "keep", "close" or an object with "keep"`},
	{"descriptors list", `{"version":1,"descriptors":[3]}`, `descriptors: must be "keep", "close" or an object with "keep"`},
	{"descriptors empty object", `{"version":1,"descriptors":{}}`, `descriptors.keep: missing`},
	{"descriptors unknown key", `{"version":1,"descriptors":{"keep":[3],"close":[4]}}`, `descriptors.close: unknown key`},
	{"descriptors keep no list", `{"version":1,"descriptors":{"keep":3}}`, `descriptors.keep: must be a list of descriptors above 2`},
	{"descriptors keep 2", `{"version":1,"descriptors":{"keep":[3,2]}}`, `descriptors.keep[1]: must be the number of a descriptor above 2`},
	{"descriptors keep too large", `{"version":1,"descriptors":{"keep":[2147483648]}}`, `descriptors.keep[0]: must be the number of a descriptor above 2`},
	{"descriptors keep fd:3", `{"version":1,"descriptors":{"keep":["fd:3"]}}`, `descriptors.keep[0]: must be the number of a descriptor above 2`},
	{"descriptors keep twice", `{"version":1,"descriptors":{"keep":[3,3]}}`, `descriptors.keep[1]: given twice`},
	{"audit string", `{"version":1,"audit":"true"}`, `audit: must be true or false`},
	{"unrestricted and network deny", `{"version":1,"scope":"unrestricted","network":"deny"}`, `network: not allowed with scope "unrestricted"`},
	{"unrestricted and network", `{"version":1,"scope":"unrestricted","network":"allow"}`, `network: not allowed with scope "unrestricted"`},
	{"unrestricted and isolate", `{"version":1,"scope":"unrestricted","isolate":[]}`, `isolate: not allowed with scope "unrestricted"`},
	{"unrestricted and descriptors", `{"version":1,"scope":"unrestricted","descriptors":"keep"}`, `descriptors: not allowed with scope "unrestricted"`},
	{"unrestricted and commandCheck", `{"version":1,"scope":"unrestricted","commandCheck":"off"}`, `commandCheck: not allowed with scope "unrestricted"`},

	{"template empty", `{"version":1,"root":"/r","hidden":[{}]}`, `hidden[0].path: missing`},
	{"template unknown key", `{"version":1,"root":"/r","hidden":[{"path":"/a","to":"/b"}]}`, `hidden[0].to: unknown key`},
	{"template path number", `{"version":1,"root":"/r","hidden":[{"path":1}]}`, `hidden[0].path: must be a template: a text with sources`},
	{"template path empty", `{"version":1,"root":"/r","hidden":[{"path":""}]}`, `hidden[0].path: must begin with "/" or with a source that has no filter`},
	{"template relative", `{"version":1,"root":"/r","hidden":[{"path":"a/${cwd}"}]}`, `hidden[0].path: ${cwd}, ${home} and ${root} may only stand at the beginning`},
	{"template relative text", `{"version":1,"root":"/r","hidden":[{"path":"a"}]}`, `hidden[0].path: must begin with "/" or with a source that has no filter`},
	{"template begins with a name", `{"version":1,"root":"/r","hidden":[{"path":"${cwd|name}/a"}]}`, `hidden[0].path: must begin with "/" or with a source that has no filter`},
	{"template dot-dot", `{"version":1,"root":"/r","hidden":[{"path":"${root}/../a"}]}`, `hidden[0].path: ".." is not allowed here`},
	{"template open brace", `{"version":1,"root":"/r","hidden":[{"path":"/${root"}]}`, `hidden[0].path: "${" without "}"`},
	{"template source 0", `{"version":1,"root":"/r","hidden":[{"path":"/a/${}"}]}`, `hidden[0].path: unknown source: want ${arg:--flag}, ${env:NAME}, ${cwd}, ${home} or ${root}`},
	{"template source 1", `{"version":1,"root":"/r","hidden":[{"path":"/a/${x}"}]}`, `hidden[0].path: unknown source: want ${arg:--flag}, ${env:NAME}, ${cwd}, ${home} or ${root}`},
	{"template source 2", `{"version":1,"root":"/r","hidden":[{"path":"/a/${arg:}"}]}`, `hidden[0].path: unknown source: want ${arg:--flag}, ${env:NAME}, ${cwd}, ${home} or ${root}`},
	{"template source 3", `{"version":1,"root":"/r","hidden":[{"path":"/a/${arg:-}"}]}`, `hidden[0].path: unknown source: want ${arg:--flag}, ${env:NAME}, ${cwd}, ${home} or ${root}`},
	{"template source 4", `{"version":1,"root":"/r","hidden":[{"path":"/a/${arg:x}"}]}`, `hidden[0].path: unknown source: want ${arg:--flag}, ${env:NAME}, ${cwd}, ${home} or ${root}`},
	{"template source 5", `{"version":1,"root":"/r","hidden":[{"path":"/a/${env:}"}]}`, `hidden[0].path: unknown source: want ${arg:--flag}, ${env:NAME}, ${cwd}, ${home} or ${root}`},
	{"template source 6", `{"version":1,"root":"/r","hidden":[{"path":"/a/${env:A=B}"}]}`, `hidden[0].path: unknown source: want ${arg:--flag}, ${env:NAME}, ${cwd}, ${home} or ${root}`},
	{"template source 7", `{"version":1,"root":"/r","hidden":[{"path":"/a/${Root}"}]}`, `hidden[0].path: unknown source: want ${arg:--flag}, ${env:NAME}, ${cwd}, ${home} or ${root}`},
	{"template source 8", `{"version":1,"root":"/r","hidden":[{"path":"/a/${root:x}"}]}`, `hidden[0].path: unknown source: want ${arg:--flag}, ${env:NAME}, ${cwd}, ${home} or ${root}`},
	{"template source 9", `{"version":1,"root":"/r","hidden":[{"path":"/a/${arg}"}]}`, `hidden[0].path: unknown source: want ${arg:--flag}, ${env:NAME}, ${cwd}, ${home} or ${root}`},
	{"template source 10", `{"version":1,"root":"/r","hidden":[{"path":"/a/${env:A|NAME}"}]}`, `hidden[0].path: unknown filter: want |name`},
	{"template source 11", `{"version":1,"root":"/r","hidden":[{"path":"/a/${env:A|}"}]}`, `hidden[0].path: unknown filter: want |name`},
	{"template beneath missing", `{"version":1,"root":"/r","hidden":["/r"],"exposed":[{"path":"/r/a"}]}`, `exposed[0].beneath: missing, and a template in exposed must have it`},
	{"template beneath missing in precreate", `{"version":1,"root":"/r","precreate":[{"path":"/r/${cwd|name}"}]}`, `precreate[0].beneath: missing, and in precreate a path of the launch's own values must have it`},
	{"template beneath /", `{"version":1,"root":"/r","hidden":["/r"],"exposed":[{"path":"/r/a","beneath":"//."}]}`, `exposed[0].beneath: is /, and everything lies beneath /`},
	{"template keep alone", `{"version":1,"root":"/r","hidden":[{"path":"/a","keep":1}]}`, `hidden[0].keep: needs "beneath"`},
	{"template depth alone", `{"version":1,"root":"/r","hidden":[{"path":"/a","depth":1}]}`, `hidden[0].depth: needs "beneath"`},
	{"template keep and depth", `{"version":1,"root":"/r","hidden":[{"path":"/a","beneath":"/b","keep":1,"depth":1}]}`, `hidden[0].depth: not together with "keep"`},
	{"template keep 0", `{"version":1,"root":"/r","hidden":[{"path":"/a","beneath":"/b","keep":0}]}`, `hidden[0].keep: must be a number from 1 to 64`},
	{"template keep 1", `{"version":1,"root":"/r","hidden":[{"path":"/a","beneath":"/b","keep":65}]}`, `hidden[0].keep: must be a number from 1 to 64`},
	{"template keep 2", `{"version":1,"root":"/r","hidden":[{"path":"/a","beneath":"/b","keep":-1}]}`, `hidden[0].keep: must be a number from 1 to 64`},
	{"template keep 3", `{"version":1,"root":"/r","hidden":[{"path":"/a","beneath":"/b","keep":1.0}]}`, `hidden[0].keep: must be a number from 1 to 64`},
	{"template keep 4", `{"version":1,"root":"/r","hidden":[{"path":"/a","beneath":"/b","keep":1e0}]}`, `hidden[0].keep: must be a number from 1 to 64`},
	{"template keep 5", `{"version":1,"root":"/r","hidden":[{"path":"/a","beneath":"/b","keep":"1"}]}`, `hidden[0].keep: must be a number from 1 to 64`},
	{"template keep 6", `{"version":1,"root":"/r","hidden":[{"path":"/a","beneath":"/b","keep":null}]}`, `hidden[0].keep: must be a number from 1 to 64`},
	{"template keep 7", `{"version":1,"root":"/r","hidden":[{"path":"/a","beneath":"/b","keep":[]}]}`, `hidden[0].keep: must be a number from 1 to 64`},
	{"template keep 8", `{"version":1,"root":"/r","hidden":[{"path":"/a","beneath":"/b","keep":99999999999999999999}]}`, `hidden[0].keep: must be a number from 1 to 64`},
	{"template kind", `{"version":1,"root":"/r","hidden":["/r"],"exposed":[{"path":"/a","beneath":"/b","kind":"fifo"}]}`, `exposed[0].kind: must be "dir" or "file"`},
	{"template unless lifts", `{"version":1,"root":"/r","hidden":[{"path":"${root}/a","unless":["/b","${env:X}"]}]}`, `hidden[0].unless: a value of the launch may not decide whether what the policy itself names is hidden`},
	{"template beneath lifts", `{"version":1,"root":"/r","hidden":[{"path":"${root}/a","beneath":"${cwd}"}]}`, `hidden[0].beneath: a value of the launch may not decide whether what the policy itself names is hidden`},
	{"template kind in hidden", `{"version":1,"root":"/r","hidden":[{"path":"/a","kind":"dir"}]}`, `hidden[0].kind: nothing is made of a hidden path`},
	{"template file in precreate", `{"version":1,"root":"/r","precreate":[{"path":"/a","kind":"file"}]}`, `precreate[0].kind: precreate makes directories`},
	{"template unless text", `{"version":1,"root":"/r","hidden":[{"path":"/a","unless":"/b"}]}`, `hidden[0].unless: must be a list of templates`},
	{"template unless relative", `{"version":1,"root":"/r","hidden":[{"path":"/a","unless":["/b","c"]}]}`, `hidden[0].unless[1]: must begin with "/" or with a source that has no filter`},
	{"template duplicate key", `{"version":1,"root":"/r","hidden":[{"path":"/a","path":"/b"}]}`, `hidden[0].path: duplicate key`},
	{"template without root", `{"version":1,"hidden":["/a",{"path":"${root}/a"}]}`, `hidden[1]: needs the key "root"`},
	{"template without root in unless", `{"version":1,"hidden":[{"path":"/a","unless":["${root}"]}]}`, `hidden[0]: needs the key "root"`},
	{"template in a list of paths", `{"version":1,"hidden":["/a"],"exposed":{"path":"/a"}}`, `exposed: must be a list of absolute paths and templates`},
	{"root relative", `{"version":1,"root":"r"}`, `root: not an absolute path`},
	{"root with dot-dot", `{"version":1,"root":"/r/.."}`, `root: "/r/..": ".." is not allowed here`},
	{"profile number", `{"version":1,"profile":1}`, `profile: must be the name of a profile: letters, digits, ".", "_" and "-"`},
	{"profile path", `{"version":1,"profile":"../p"}`, `profile: must be the name of a profile: letters, digits, ".", "_" and "-"`},
	{"profile unknown", `{"version":1,"profile":"p"}`, `profile: neither built in nor in the profile directory`},
	{"profile without its root", `{"version":1,"profile":"paperclip-runner"}`, `profile.hidden[0]: needs the key "root"`},
	{"unversioned hidden as text", `{"hidden":"/a","required":true}`, `hidden: must be a list of absolute paths`},
	{"unversioned instanceRoot", `{"hidden":[],"required":true,"instanceRoot":""}`, `instanceRoot: not an absolute path`},
	{"unversioned list of templates", `{"hidden":[{"path":"/a"}],"required":true}`, `hidden[0]: not an absolute path`},
	{"unversioned and version 1", `{"hidden":[],"required":true,"scope":"local"}`, `scope: is a key of version 1 (add "version":1)`},
	{"unversioned without required", `{"hidden":[]}`, `required: missing (a policy without "version":1 has "hidden" and "required")`},

	{"env list", `{"version":1,"env":["A=1"]}`, `env: must be an object with "unset" and "set"`},
	{"env null", `{"version":1,"env":null}`, `env: must be an object with "unset" and "set"`},
	{"env unknown", `{"version":1,"env":{"A":"1"}}`, `env.A: unknown key`},
	{"env.unset as text", `{"version":1,"env":{"unset":"A"}}`, `env.unset: must be a list of variable names`},
	{"env.unset number", `{"version":1,"env":{"unset":["A",1]}}`, `env.unset[1]: not the name of a variable`},
	{"env.unset empty", `{"version":1,"env":{"unset":[""]}}`, `env.unset[0]: not the name of a variable`},
	{"env.unset with =", `{"version":1,"env":{"unset":["A=secret"]}}`, `env.unset[0]: not the name of a variable`},
	{"env.unset too many", `{"version":1,"env":{"unset":["A"` + strings.Repeat(`,"A"`, maxEntries) + `]}}`, `env.unset: more than 4096 entries`},
	{"env.set list", `{"version":1,"env":{"set":[]}}`, `env.set: must be an object of variables and values`},
	{"env.set number", `{"version":1,"env":{"set":{"A":1}}}`, `env.set.A: must be a string`},
	{"env.set null", `{"version":1,"env":{"set":{"A":null}}}`, `env.set.A: must be a string`},
	{"env.set empty name", `{"version":1,"env":{"set":{"":"x"}}}`, `env.set.: not the name of a variable`},
	{"env.set with =", `{"version":1,"env":{"set":{"A=B":"x"}}}`, `"env.set.A=B": not the name of a variable`},
	{"env.set too many", `{"version":1,"env":{"set":{` + manyKeys(maxEntries+1) + `}}}`, `env.set: more than 4096 entries`},
	{"env.set the policy", `{"version":1,"env":{"set":{"SANDBOX_EXEC_SHIM_POLICY":"x"}}}`, `env.set.SANDBOX_EXEC_SHIM_POLICY: is the variable of the policy itself`},
	{"env.unset the policy", `{"version":1,"env":{"unset":["SANDBOX_EXEC_SHIM_POLICY"]}}`, `env.unset[0]: is the variable of the policy itself`},
	{"env both", `{"version":1,"env":{"set":{"A":"x"},"unset":["A"]}}`, `env.set.A: also in env.unset`},

	{"program relative", `{"version":1,"program":"bash"}`, `program: not an absolute path`},
	{"program empty", `{"version":1,"program":""}`, `program: not an absolute path`},
	{"program null", `{"version":1,"program":null}`, `program: not an absolute path`},
	{"report relative", `{"version":1,"report":"r"}`, `report: must be an absolute path, or fd:N with N at least 2`},
	{"report null", `{"version":1,"report":null}`, `report: must be an absolute path, or fd:N with N at least 2`},
	{"report number", `{"version":1,"report":3}`, `report: must be an absolute path, or fd:N with N at least 2`},
	{"report standard input", `{"version":1,"report":"fd:0"}`, `report: must be an absolute path, or fd:N with N at least 2`},
	{"report standard output", `{"version":1,"report":"fd:1"}`, `report: must be an absolute path, or fd:N with N at least 2`},
	{"report fd without number", `{"version":1,"report":"fd:"}`, `report: must be an absolute path, or fd:N with N at least 2`},
	{"report fd negative", `{"version":1,"report":"fd:-3"}`, `report: must be an absolute path, or fd:N with N at least 2`},
	{"report fd with plus", `{"version":1,"report":"fd:+3"}`, `report: must be an absolute path, or fd:N with N at least 2`},
	{"report fd with zero", `{"version":1,"report":"fd:03"}`, `report: must be an absolute path, or fd:N with N at least 2`},
	{"report fd with blank", `{"version":1,"report":"fd: 3"}`, `report: must be an absolute path, or fd:N with N at least 2`},
	{"report fd too large", `{"version":1,"report":"fd:2147483648"}`, `report: must be an absolute path, or fd:N with N at least 2`},
	{"report FD", `{"version":1,"report":"FD:3"}`, `report: must be an absolute path, or fd:N with N at least 2`},
	{"log as text", `{"version":1,"log":"/l"}`, `log: must be an object with "level" and "to"`},
	{"log null", `{"version":1,"log":null}`, `log: must be an object with "level" and "to"`},
	{"log empty", `{"version":1,"log":{}}`, `log.level: missing`},
	{"log without to", `{"version":1,"log":{"level":"info"}}`, `log.to: missing`},
	{"log without level", `{"version":1,"log":{"to":"/l"}}`, `log.level: missing`},
	{"log.level unknown", `{"version":1,"log":{"level":"INFO","to":"/l"}}`, `log.level: must be "trace", "debug", "info", "warn" or "error"`},
	{"log.to standard output", `{"version":1,"log":{"level":"info","to":"fd:1"}}`, `log.to: must be an absolute path, or fd:N with N at least 2`},
	{"log unknown", `{"version":1,"log":{"file":"/l"}}`, `log.file: unknown key`},

	{"commandCheck", `{"version":1,"commandCheck":"warn"}`, `commandCheck: must be "off" or "deny"`},
	{"commandCheck true", `{"version":1,"commandCheck":true}`, `commandCheck: must be "off" or "deny"`},
}

func bomb(head, layer string) string {
	return head + strings.Repeat(layer, (MaxText-len(head))/len(layer))
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"K` + strconv.Itoa(i) + `":""`)
	}
	return b.String()
}

func TestParseRejects(t *testing.T) {
	for _, row := range rejectedPolicies {
		t.Run(row.name, func(t *testing.T) {
			got, err := Parse([]byte(row.text))
			if err == nil {
				t.Fatalf("accepted as %+v, want error %q", got, row.want)
			}
			if got != nil {
				t.Errorf("policy beside an error: %+v", got)
			}
			if err.Error() != row.want {
				t.Errorf("\n got %q\nwant %q", err, row.want)
			}
			checkError(t, []byte(row.text), err)
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

func TestConfines(t *testing.T) {
	for text, want := range map[string]bool{
		`{"version":1}`:                                        false,
		`{"version":1,"precreate":["/a"]}`:                     false,
		`{"version":1,"capabilities":"keep"}`:                  false,
		`{"version":1,"scope":"unrestricted"}`:                 false,
		`{"version":1,"hidden":["/a"]}`:                        true,
		`{"version":1,"capabilities":"restricted"}`:            true,
		`{"version":1,"hidden":["/a"],"scope":"unrestricted"}`: true,
	} {
		p, err := Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := p.Confines(); got != want {
			t.Errorf("%s: Confines = %v, want %v", text, got, want)
		}
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
