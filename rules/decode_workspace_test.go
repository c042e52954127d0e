package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseWorkspace(t *testing.T) {
	scoped := func(change func(*Policy)) *Policy {
		return policyConfining(func(p *Policy) {
			p.Scope, p.Toolchain.Mode = ScopeWorkspace, ToolchainUsual
			if change != nil {
				change(p)
			}
		})
	}
	const start = `{"version":1,"scope":"workspace"`
	tests := []struct {
		name, text string
		want       *Policy // nil for an error
		err        string
	}{
		{name: "scope alone", text: start + `}`, want: scoped(nil)},
		{name: "scope last", text: `{"writable":["/a"],"version":1,"scope":"workspace"}`, want: scoped(func(p *Policy) { p.Writable = entryList("writable", "/a") })},
		{name: "workspace", text: start + `,"workspace":"/w//./x/"}`, want: scoped(func(p *Policy) { p.Workspace = "/w/x" })},
		{name: "writable", text: start + `,"writable":["/b","/a/../c"]}`, want: scoped(func(p *Policy) { p.Writable = entryList("writable", "/b", "/a/../c") })},
		{name: "writable twice", text: start + `,"writable":["/b","/b/","/c"]}`, want: scoped(func(p *Policy) {
			p.Writable = []Entry{{Path: "/b", Key: "writable[0]"}, {Path: "/c", Key: "writable[2]"}}
		})},
		{name: "writable empty", text: start + `,"writable":[]}`, want: scoped(nil)},
		{name: "toolchainDirs true", text: start + `,"toolchainDirs":true}`, want: scoped(nil)},
		{name: "toolchainDirs false", text: start + `,"toolchainDirs":false}`, want: scoped(func(p *Policy) { p.Toolchain.Mode = ToolchainNone })},
		{name: "leaves", text: start + `,"toolchainDirs":"leaves"}`, want: scoped(func(p *Policy) { p.Toolchain.Mode = ToolchainLeaves })},
		{name: "owned", text: start + `,"toolchainDirs":{ "owned" : "/c/" }}`, want: scoped(func(p *Policy) { p.Toolchain = ToolchainDirs{ToolchainOwned, "/c"} })},
		{name: "capabilities kept", text: start + `,"capabilities":"keep"}`, want: scoped(func(p *Policy) { p.Capabilities = CapabilitiesKeep })},

		{name: "workspace relative", text: start + `,"workspace":"w"}`, err: `workspace: not an absolute path`},
		{name: "workspace empty", text: start + `,"workspace":""}`, err: `workspace: not an absolute path`},
		{name: "workspace null", text: start + `,"workspace":null}`, err: `workspace: not an absolute path`},
		{name: "writable string", text: start + `,"writable":"/a"}`, err: `writable: must be a list of absolute paths`},
		{name: "writable relative", text: start + `,"writable":["/a","b"]}`, err: `writable[1]: not an absolute path`},
		{name: "writable template", text: start + `,"writable":[{"path":"${cwd}"}]}`, err: `writable[0]: not an absolute path`},
		{name: "toolchainDirs other", text: start + `,"toolchainDirs":"usual"}`, err: `toolchainDirs: ` + badToolchain},
		{name: "toolchainDirs number", text: start + `,"toolchainDirs":1}`, err: `toolchainDirs: ` + badToolchain},
		{name: "toolchainDirs null", text: start + `,"toolchainDirs":null}`, err: `toolchainDirs: ` + badToolchain},
		{name: "owned empty", text: start + `,"toolchainDirs":{}}`, err: `toolchainDirs.owned: missing`},
		{name: "owned relative", text: start + `,"toolchainDirs":{"owned":"c"}}`, err: `toolchainDirs.owned: not an absolute path`},
		{name: "owned and more", text: start + `,"toolchainDirs":{"owned":"/c","x":1}}`, err: `toolchainDirs.x: unknown key`},

		{name: "workspace without the scope", text: `{"version":1,"workspace":"/w"}`, err: `workspace: only allowed with scope "workspace"`},
		{name: "writable without the scope", text: `{"version":1,"writable":[],"scope":"local"}`, err: `writable: only allowed with scope "workspace"`},
		{name: "toolchainDirs without the scope", text: `{"version":1,"toolchainDirs":false}`, err: `toolchainDirs: only allowed with scope "workspace"`},
		{name: "workspace, unrestricted", text: `{"version":1,"workspace":"/w","scope":"unrestricted"}`, err: `workspace: not allowed with scope "unrestricted"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse([]byte(tt.text))
			if tt.want == nil {
				if err == nil || err.Error() != tt.err {
					t.Errorf("got %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkRoundTrip(t, got)
		})
	}
}
