package rules

import (
	"slices"
	"strings"
)

// An Options says how a policy is read.
type Options struct {
	// PolicyEnv is the name of the variable that carries the policy, which
	// the policy's own env may not touch. "" means [DefaultPolicyEnv].
	PolicyEnv string
	// ReadProfile returns the text of a profile, whose name is one safe file
	// name, and the file it stands in; a nil text where there is none. It goes
	// before the built-in profiles, the only ones known where it is nil.
	ReadProfile func(name string) (text []byte, file string, err error)
}

// besideHidden are the keys that confine in another way than hidden does.
// With scope unrestricted none of them may be given, whatever its value.
var besideHidden = [...]string{
	"capabilities", "commandCheck", "descriptors", "isolate", "network",
	"toolchainDirs", "workspace", "writable",
}

const unknownKey = "unknown key"

// Parse decodes and validates the text of a policy that [DefaultPolicyEnv]
// carries. The error is an [*Error].
func Parse(data []byte) (*Policy, error) { return Options{}.Parse(data) }

// Parse decodes and validates the text of a policy. The error is an [*Error].
func (o Options) Parse(data []byte) (*Policy, error) {
	if len(data) > MaxText {
		return nil, &Error{Msg: "larger than 1 MiB"}
	}
	members, err := splitMembers(data)
	if err != nil {
		return nil, err
	}
	if o.PolicyEnv == "" {
		o.PolicyEnv = DefaultPolicyEnv
	}
	if !hasKey(members, "version") {
		return o.parseUnversioned(data, members)
	}
	return o.parseV1(data, members)
}

// A member is one member of the policy object; its value is data[start:end].
type member struct {
	key        string
	start, end int
}

// splitMembers finds the members of the policy. After it the text is known to be one
// JSON object without duplicate keys, of bounded depth.
func splitMembers(data []byte) ([]member, error) {
	var members []member
	r := &jsonReader{data: data}
	err := r.object("", "not a JSON object", func(name string) error {
		start := r.pos
		if err := r.skip(1); err != nil {
			return err
		}
		members = append(members, member{name, start, r.pos})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if r.next(); r.pos < len(data) {
		return nil, &Error{Msg: "data after the policy" + atByte(r.pos)}
	}
	return members, nil
}

func (o Options) parseV1(data []byte, members []member) (*Policy, error) {
	prof, err := o.namedProfile(data, members)
	if err != nil {
		return nil, err
	}
	given := prof.keys()
	p, err := o.compose(prof, hasKey(members, "required"), func(p *Policy) error {
		for _, m := range members {
			given = append(given, m.key)
			r := &jsonReader{data: data[:m.end], pos: m.start}
			if err := o.decodeMember(p, r, m.key); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := p.finish(given); err != nil {
		return nil, err
	}
	return p, nil
}

// newPolicy returns the defaults.
func newPolicy() *Policy {
	return &Policy{
		Required: true, Frozen: FrozenRefuse, Scope: ScopeLocal,
		Network: Network{Mode: NetworkAllow}, Descriptors: DescriptorPolicy{Mode: DescriptorsKeep},
	}
}

func hasKey(members []member, key string) bool {
	return slices.ContainsFunc(members, func(m member) bool { return m.key == key })
}

// finish checks what the keys of a policy mean together and fills in the
// defaults that depend on others. given names the keys that the policy and its
// profile have; those of the profile begin with "profile.".
func (p *Policy) finish(given []string) error {
	if p.Scope == ScopeUnrestricted {
		for _, key := range given {
			if slices.Contains(besideHidden[:], strings.TrimPrefix(key, profilePrefix)) {
				return &Error{Key: key, Msg: `not allowed with scope "unrestricted"`}
			}
		}
	}
	if err := p.finishWorkspace(given); err != nil {
		return err
	}
	if err := p.checkRoot(); err != nil {
		return err
	}
	if len(p.Exposed) > 0 && len(p.Hidden) == 0 {
		e := p.Exposed[0]
		return &Error{Key: e.Key, Path: e.Path, Msg: "exposed, but nothing is hidden"}
	}
	if p.Capabilities == "" {
		p.Capabilities = defaultCapabilities(p)
	}
	return nil
}

// defaultCapabilities is restricted when the policy confines in some way.
func defaultCapabilities(p *Policy) CapabilityMode {
	if p.confinesByKeys() {
		return CapabilitiesRestricted
	}
	return CapabilitiesKeep
}

// decodeMember reads the value of one key of version 1 into p.
func (o Options) decodeMember(p *Policy, r *jsonReader, key string) (err error) {
	switch key {
	case "version":
		if string(r.data[r.pos:]) != "1" {
			return &Error{Key: key, Msg: "must be 1"}
		}
		p.Version = 1
	case "required":
		p.Required, err = r.boolean(key)
	case "hidden":
		p.Hidden, err = r.entries(key, true)
	case "exposed":
		p.Exposed, err = r.entries(key, true)
	case "precreate":
		p.Precreate, err = r.entries(key, true)
	case "profile":
		p.Profile, err = r.text(key, badProfileName)
	case "root":
		p.Root, err = r.path(key)
	case "frozen":
		var s string
		s, err = r.choice(key, `must be "refuse" or "allow"`, string(FrozenRefuse), string(FrozenAllow))
		p.Frozen = FrozenMode(s)
	case "scope":
		p.Scope, err = r.scope(key)
	case "workspace":
		p.Workspace, err = r.path(key)
	case "writable":
		p.Writable, err = r.entries(key, false)
	case "toolchainDirs":
		p.Toolchain, err = r.toolchain(key)
	case "capabilities":
		var s string
		s, err = r.choice(key, `must be "restricted" or "keep"`,
			string(CapabilitiesRestricted), string(CapabilitiesKeep))
		p.Capabilities = CapabilityMode(s)
	case "network":
		p.Network, err = r.network(key)
	case "isolate":
		p.Isolate, err = r.isolate(key)
	case "commandCheck":
		var s string
		s, err = r.choice(key, `must be "off" or "deny"`, "off", "deny")
		p.CommandCheck = s == "deny"
	case "descriptors":
		p.Descriptors, err = r.descriptors(key)
	case "audit":
		p.Audit, err = r.boolean(key)
	case "env":
		p.Env, err = r.envChange(key, o.PolicyEnv)
	case "program":
		p.Program, err = r.path(key)
	case "report":
		p.Report, err = r.destination(key)
	case "log":
		p.Log, err = r.logConfig(key)
	default:
		return &Error{Key: key, Msg: unknownKey}
	}
	return err
}
