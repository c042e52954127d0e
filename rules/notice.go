package rules

import "slices"

// An Effective says what of a policy is in force for a launch.
type Effective struct {
	// Writes is set when scope workspace confines writing.
	Writes bool
	// WritableDirs are the writable directories, as [Plan.WritableDirs] has
	// them; nil when they are not known.
	WritableDirs []string
	// Network is what holds for the network.
	Network NetworkMode
}

// Planned is what p asks for, for a notice that is printed before a launch.
func Planned(p *Policy) Effective {
	return Effective{Writes: p.Scope == ScopeWorkspace, Network: p.Network.Mode}
}

// Sentences of a notice.
const (
	noticeToolchain = "For this run, temp and per-user cache directories are writable."
	noticeDeny      = "For this run, the network is blocked; if that stops the work, report it as the blocker."
)

// Notice returns the sentences that a model should be told before it works in
// a launch of p: what holds, and not what was asked for in vain. The first
// names the values; one more says that temp and cache directories are
// writable, in scope workspace; and one that the network is blocked, if it is.
func Notice(p *Policy, e Effective) []string {
	scope := p.Scope
	if scope == ScopeWorkspace && !e.Writes {
		scope = ScopeLocal
	}
	lines := []string{"Sandbox: scope " + string(scope) + ", network " + string(inForce(e.Network)) + "."}
	if e.Writes && p.Toolchain.Mode != ToolchainNone {
		lines = append(lines, noticeToolchain)
	}
	if e.Network == NetworkDeny {
		lines = append(lines, noticeDeny)
	}
	return lines
}

func inForce(n NetworkMode) NetworkMode {
	if n == "" {
		return NetworkAllow
	}
	return n
}

// A Result is what a harness shows of a launch beside the program's output.
type Result struct {
	Mechanism    string
	Warning      string
	Network      NetworkMode
	WritableDirs []string
}

// Fields returns the result under the keys that a harness shows. What is empty
// is left out, but sandbox_network, which is always what is in force.
func (r Result) Fields() map[string]any {
	fields := map[string]any{"sandbox_network": string(inForce(r.Network))}
	if r.Mechanism != "" {
		fields["sandbox_mechanism"] = r.Mechanism
	}
	if r.Warning != "" {
		fields["sandbox_warning"] = r.Warning
	}
	if len(r.WritableDirs) > 0 {
		fields["sandbox_writable_dirs"] = slices.Clone(r.WritableDirs)
	}
	return fields
}
