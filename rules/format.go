package rules

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Format returns the canonical text of a policy that came from [Parse]: one
// line, keys in a fixed order, defaults left out except version and required.
// Parse of it gives the same policy, but for the numbers in the entries' keys
// when equal entries were dropped. The lists of a profile are not repeated, its
// scalars and its env are.
//
// The error is an [*Error]: a string of the policy is not UTF-8.
func Format(p *Policy) ([]byte, error) {
	text := struct {
		Version      int            `json:"version"`
		Required     bool           `json:"required"`
		Profile      string         `json:"profile,omitempty"`
		Root         string         `json:"root,omitempty"`
		Hidden       []any          `json:"hidden,omitempty"`
		Exposed      []any          `json:"exposed,omitempty"`
		Precreate    []any          `json:"precreate,omitempty"`
		Frozen       FrozenMode     `json:"frozen,omitempty"`
		Scope        Scope          `json:"scope,omitempty"`
		Workspace    string         `json:"workspace,omitempty"`
		Writable     []any          `json:"writable,omitempty"`
		Toolchain    any            `json:"toolchainDirs,omitempty"`
		Network      any            `json:"network,omitempty"`
		Isolate      []string       `json:"isolate,omitempty"`
		Descriptors  any            `json:"descriptors,omitempty"`
		CommandCheck string         `json:"commandCheck,omitempty"`
		Capabilities CapabilityMode `json:"capabilities,omitempty"`
		Audit        bool           `json:"audit,omitempty"`
		Env          formatEnv      `json:"env,omitzero"`
		Program      string         `json:"program,omitempty"`
		Report       string         `json:"report,omitempty"`
		Log          formatLog      `json:"log,omitzero"`
	}{
		Version: p.Version, Required: p.Required, Profile: p.Profile, Root: p.Root, Program: p.Program, Audit: p.Audit,
		Hidden: formatEntries(p.Hidden), Exposed: formatEntries(p.Exposed), Precreate: formatEntries(p.Precreate),
		Frozen: unless(p.Frozen, FrozenRefuse), Scope: unless(p.Scope, ScopeLocal),
		Network: formatNetwork(p.Network), Isolate: p.Isolate.names(), Descriptors: formatDescriptors(p.Descriptors),
		Capabilities: unless(p.Capabilities, defaultCapabilities(p)),
		Env:          formatEnv{Unset: p.Env.Unset}, Report: p.Report.String(), Log: formatLog{p.Log.Level, p.Log.To.String()},
	}
	if p.Scope == ScopeWorkspace {
		text.Workspace, text.Writable, text.Toolchain = p.Workspace, formatEntries(p.Writable), formatToolchain(p.Toolchain)
	}
	if p.CommandCheck {
		text.CommandCheck = "deny"
	}
	for _, v := range p.Env.Set {
		if text.Env.Set == nil {
			text.Env.Set = map[string]string{}
		}
		text.Env.Set[v.Name] = v.Value
	}
	out, err := json.Marshal(text)
	if err == nil && bytes.Contains(out, []byte(`\ufffd`)) {
		// That is how the encoder writes a byte that is not UTF-8: another name.
		err = &Error{Msg: "holds bytes that are not UTF-8"}
	}
	return out, err
}

type formatEnv struct {
	Unset []string          `json:"unset,omitempty"`
	Set   map[string]string `json:"set,omitempty"`
}

type formatLog struct {
	Level string `json:"level"`
	To    string `json:"to"`
}

// unless returns a value, or the empty one for the default, which is left out.
func unless[S ~string](value, byDefault S) S {
	if value == byDefault {
		return ""
	}
	return value
}

// formatEntries returns the entries that the policy itself has, not its profile.
func formatEntries(list []Entry) []any {
	var out []any
	for _, e := range list {
		switch {
		case strings.HasPrefix(e.Key, profilePrefix):
		case e.Template == nil:
			out = append(out, e.Path)
		default:
			t := e.Template
			kind := t.Kind
			if strings.HasPrefix(e.Key, "precreate") {
				kind = KindNone // it is always a directory, and not said
			}
			out = append(out, struct {
				Path    string    `json:"path"`
				Beneath string    `json:"beneath,omitempty"`
				Keep    int       `json:"keep,omitempty"`
				Depth   int       `json:"depth,omitempty"`
				Unless  []string  `json:"unless,omitempty"`
				Kind    EntryKind `json:"kind,omitempty"`
			}{t.Path, t.Beneath, t.Keep, t.Depth, t.Unless, kind})
		}
	}
	return out
}

func formatToolchain(d ToolchainDirs) any {
	switch d.Mode {
	case ToolchainNone:
		return false
	case ToolchainLeaves:
		return ToolchainLeaves
	case ToolchainOwned:
		return map[string]string{"owned": d.Owned}
	}
	return nil
}

func formatNetwork(n Network) any {
	switch n.Mode {
	case NetworkDeny:
		return NetworkDeny
	case NetworkPorts:
		udp := "deny"
		if n.UDP {
			udp = "allow"
		}
		return struct {
			UDP     string   `json:"udp"`
			Connect []uint16 `json:"connectTCP,omitzero"`
			Bind    []uint16 `json:"bindTCP,omitzero"`
		}{udp, n.ConnectTCP, n.BindTCP}
	}
	return nil
}

func formatDescriptors(d DescriptorPolicy) any {
	switch d.Mode {
	case DescriptorsClose:
		return DescriptorsClose
	case DescriptorsList:
		return map[string][]int{"keep": append([]int{}, d.Keep...)}
	}
	return nil
}

// names returns the elements of the set as a policy names them.
func (i Isolation) names() []string {
	var names []string
	for _, e := range isolations {
		if i.Has(e.what) {
			names = append(names, e.name)
		}
	}
	return names
}
