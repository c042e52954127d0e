package rules

import "strconv"

// Format returns the canonical text of a policy that came from [Parse]: one
// line, keys in a fixed order, defaults left out except version and required.
// Parse of it gives the same policy, but for the numbers in the entries' keys
// when equal entries were dropped. The lists of a profile are not repeated, its
// scalars and its env are.
func Format(p *Policy) []byte {
	b := append([]byte(nil), `{"version":`...)
	b = strconv.AppendInt(b, int64(p.Version), 10)
	b = append(b, `,"required":`...)
	b = strconv.AppendBool(b, p.Required)
	if p.Profile != "" {
		b = appendMember(b, "profile", p.Profile)
	}
	if p.Root != "" {
		b = appendMember(b, "root", p.Root)
	}
	b = appendEntries(b, "hidden", p.Hidden)
	b = appendEntries(b, "exposed", p.Exposed)
	b = appendEntries(b, "precreate", p.Precreate)
	if p.Frozen != FrozenRefuse {
		b = appendMember(b, "frozen", string(p.Frozen))
	}
	if p.Scope != ScopeLocal {
		b = appendMember(b, "scope", string(p.Scope))
	}
	b = appendWorkspace(b, p)
	b = appendConfinement(b, p)
	if p.Capabilities != defaultCapabilities(p) {
		b = appendMember(b, "capabilities", string(p.Capabilities))
	}
	if p.Audit {
		b = append(b, `,"audit":true`...)
	}
	b = appendEnvChange(b, p.Env)
	if p.Program != "" {
		b = appendMember(b, "program", p.Program)
	}
	if !p.Report.IsZero() {
		b = appendMember(b, "report", p.Report.String())
	}
	if p.Log.Level != "" {
		b = append(b, `,"log":{"level":`...)
		b = appendString(b, p.Log.Level)
		b = appendMember(b, "to", p.Log.To.String())
		b = append(b, '}')
	}
	return append(b, '}')
}

// appendConfinement appends network, isolate and descriptors.
func appendConfinement(b []byte, p *Policy) []byte {
	switch p.Network.Mode {
	case NetworkDeny:
		b = appendMember(b, "network", "deny")
	case NetworkPorts:
		udp := "deny"
		if p.Network.UDP {
			udp = "allow"
		}
		b = append(b, `,"network":{"udp":"`+udp+`"`...)
		b = appendNumbers(b, "connectTCP", p.Network.ConnectTCP)
		b = appendNumbers(b, "bindTCP", p.Network.BindTCP)
		b = append(b, '}')
	}
	var names []string
	for _, i := range isolations {
		if p.Isolate.Has(i.what) {
			names = append(names, i.name)
		}
	}
	b = appendList(b, "isolate", names)
	switch p.Descriptors.Mode {
	case DescriptorsClose:
		b = appendMember(b, "descriptors", "close")
	case DescriptorsList:
		keep := p.Descriptors.Keep
		if keep == nil {
			keep = []int{}
		}
		b = append(b, `,"descriptors":{`...)
		start := len(b)
		b = appendNumbers(b, "keep", keep)
		b = append(append(b[:start], b[start+1:]...), '}') // the comma
	}
	if p.CommandCheck {
		b = appendMember(b, "commandCheck", "deny")
	}
	return b
}

// appendNumbers appends a member with a list, or nothing for nil.
func appendNumbers[N int | uint16](b []byte, key string, list []N) []byte {
	if list == nil {
		return b
	}
	b = append(appendKey(b, key), '[')
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return append(b, ']')
}

// appendList appends a member with a list, or nothing for an empty list.
func appendList(b []byte, key string, list []string) []byte {
	if len(list) == 0 {
		return b
	}
	b = appendKey(b, key)
	for i, s := range list {
		b = append(b, "[,"[min(i, 1)])
		b = appendString(b, s)
	}
	return append(b, ']')
}

func appendEnvChange(b []byte, c EnvChange) []byte {
	if len(c.Unset) == 0 && len(c.Set) == 0 {
		return b
	}
	b = append(b, `,"env":{`...)
	start := len(b)
	b = appendList(b, "unset", c.Unset)
	if len(c.Set) > 0 {
		b = append(b, `,"set":{`...)
		inner := len(b)
		for _, v := range c.Set {
			b = appendMember(b, v.Name, v.Value)
		}
		b = append(append(b[:inner], b[inner+1:]...), '}') // the comma
	}
	return append(append(b[:start], b[start+1:]...), '}') // the comma
}

func appendMember(b []byte, key, value string) []byte {
	return appendString(appendKey(b, key), value)
}

func appendKey(b []byte, key string) []byte {
	return append(appendString(append(b, ','), key), ':')
}

// appendString quotes s for JSON. Bytes that are not UTF-8 stay as they are,
// so that Parse refuses them instead of reading another name.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
