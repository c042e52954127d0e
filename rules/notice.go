package rules

// Sentences of a notice.
const (
	noticeToolchain = "For this run, temp and per-user cache directories are writable."
	noticeDeny      = "For this run, the network is blocked; if that stops the work, report it as the blocker."
)

// Notice returns the sentences that a model should be told before it works in a
// launch of p. The first names the values; one more says that temp and cache
// directories are writable, in scope workspace; and one that the network is
// blocked, if it is. What a launch could hold of p stands in its report.
func Notice(p *Policy) []string {
	lines := []string{"Sandbox: scope " + string(p.Scope) + ", network " + string(p.Network.Mode) + "."}
	if p.Scope == ScopeWorkspace && p.Toolchain.Mode != ToolchainNone {
		lines = append(lines, noticeToolchain)
	}
	if p.Network.Mode == NetworkDeny {
		lines = append(lines, noticeDeny)
	}
	return lines
}
