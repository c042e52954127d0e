package rules

import "strconv"

// DefaultPolicyEnv is the environment variable that carries the policy, unless
// another name was chosen at install time.
const DefaultPolicyEnv = "SANDBOX_EXEC_SHIM_POLICY"

// A Policy is what one launch was asked to hold, decoded and validated.
// A value that came from [Parse] has its defaults filled in; paths are
// absolute, without empty and "." components, and not resolved: they may hold
// "..", which counts from where a symbolic link before it leads.
type Policy struct {
	// Version is 1.
	Version int

	// Required stops the launch when a guarantee cannot be given.
	Required bool

	// Profile names the profile that is joined into this policy, ProfileFile
	// is where it was read from, "" when it is built in, and Targets are the
	// names of the programs for which its templates apply, nil for all.
	Profile     string
	ProfileFile string
	Targets     []string
	// Root is what templates call ${root}: an Entry's path, or "".
	Root string

	// Hidden, Exposed and Precreate keep the order of the text: the report
	// and the error messages count in it ("hidden[2]"). What a profile brings
	// comes last, as "profile.hidden[2]".
	Hidden    []Entry
	Exposed   []Entry
	Precreate []Entry

	// Frozen says what to do when the ancestor of a hidden path is a
	// directory in which the launch must be able to make files.
	Frozen FrozenMode

	Scope Scope
	// Workspace is the one directory that scope workspace leaves writable,
	// absolute and not resolved; "" means the launch's current directory.
	Workspace string
	// Writable holds more writable roots of scope workspace.
	Writable []Entry
	// Toolchain says which temp and per-user cache directories are writable
	// in scope workspace.
	Toolchain ToolchainDirs

	Network Network
	Isolate Isolation

	// Capabilities is by default restricted when the policy confines in
	// any way, and keep when it confines nothing.
	Capabilities CapabilityMode
	Descriptors  DescriptorPolicy
	Env          EnvChange

	// CommandCheck refuses a shell whose command string names what the policy
	// does not allow. It is advice to whoever wrote the command, and no
	// confinement.
	CommandCheck bool

	// Program is the absolute path of the real program, or "".
	Program string

	// Report and Log say where the launch report and the diagnostics go.
	Report Destination
	Log    LogConfig

	// Audit lets denials of the program appear in the audit log.
	Audit bool

	// GuardKernel is set by the launch, and not by a text: the files that act on the
	// kernel itself are closed by a ruleset over files, since no mount closes them.
	GuardKernel bool
}

// An Entry is one element of hidden, exposed, precreate or writable: a plain path or a
// template.
type Entry struct {
	// Path is absolute and clean but for "..", see [Policy]. It is "" for a
	// template.
	Path string
	// Key names the entry in messages, for example "hidden[2]".
	Key string
	// Template is set until [Policy.Expand] has put a path in its place.
	Template *Template
	// Derived is set by [Policy.Expand] in what it made of a template.
	Derived *Derived
}

// A FrozenMode is the value of the policy key "frozen".
type FrozenMode string

const (
	FrozenRefuse FrozenMode = "refuse"
	FrozenAllow  FrozenMode = "allow"
)

// A Scope is the value of the policy key "scope".
type Scope string

const (
	ScopeWorkspace    Scope = "workspace"
	ScopeLocal        Scope = "local"
	ScopeUnrestricted Scope = "unrestricted"
)

// A CapabilityMode is the value of the policy key "capabilities".
type CapabilityMode string

const (
	CapabilitiesRestricted CapabilityMode = "restricted"
	CapabilitiesKeep       CapabilityMode = "keep"
)

// An EnvChange is the value of the policy key "env": variables to remove from
// the program's environment and variables to give a value. Names hold no '='
// and no NUL, values no NUL.
type EnvChange struct {
	Unset []string
	// Set is sorted by name, so that a launch is the same every time.
	Set []EnvVar
}

// An EnvVar is one variable of [EnvChange].
type EnvVar struct{ Name, Value string }

// A Destination is where a line of output goes: a file or an inherited
// descriptor. The zero value means nowhere.
type Destination struct {
	// Path is absolute and clean as an Entry's, or "".
	Path string
	// FD is the number of an inherited descriptor when IsFD is set.
	FD   int
	IsFD bool
}

// IsZero reports whether the destination means nowhere.
func (d Destination) IsZero() bool { return d.Path == "" && !d.IsFD }

// String returns the destination as a policy writes it: the path, "fd:N", or
// "" for nowhere.
func (d Destination) String() string {
	if d.IsFD {
		return "fd:" + strconv.Itoa(d.FD)
	}
	return d.Path
}

// A LogConfig is the value of the policy key "log".
type LogConfig struct {
	// Level is one of trace, debug, info, warn, error; "" means off.
	Level string
	To    Destination
}

// A ToolchainMode says where the directories of [ToolchainDirs] come from.
type ToolchainMode string

const (
	// ToolchainUnset: the policy says nothing. With scope workspace a policy
	// from [Parse] has another value.
	ToolchainUnset ToolchainMode = ""
	// ToolchainNone: there are none.
	ToolchainNone ToolchainMode = "none"
	// ToolchainUsual: temp, the user's cache directory, Go's caches, npm's, cargo's.
	ToolchainUsual ToolchainMode = "usual"
	// ToolchainLeaves: just the leaves that known tools write.
	ToolchainLeaves ToolchainMode = "leaves"
	// ToolchainOwned: one cache root of the harness, which the tools'
	// variables are pointed to.
	ToolchainOwned ToolchainMode = "owned"
)

// ToolchainDirs is the value of the policy key "toolchainDirs".
type ToolchainDirs struct {
	Mode ToolchainMode
	// Owned is the cache root of ToolchainOwned, absolute.
	Owned string
}

// A NetworkMode is the value of the policy key "network".
type NetworkMode string

const (
	NetworkAllow NetworkMode = "allow"
	NetworkDeny  NetworkMode = "deny"
	NetworkPorts NetworkMode = "ports"
)

// Network is the value of the policy key "network". With NetworkPorts the
// rest holds: a nil list leaves that verb free, an empty one forbids it.
type Network struct {
	Mode       NetworkMode
	ConnectTCP []uint16
	BindTCP    []uint16
	// UDP says whether UDP sockets may be made, with NetworkPorts.
	UDP bool
}

// Isolation is the set of the policy key "isolate".
type Isolation uint8

// isolations gives the elements of the set their names in a policy.
var isolations = [...]struct {
	what Isolation
	name string
}{
	{IsolateSignals, "signals"},
	{IsolateAbstractUnix, "abstract-unix"},
	{IsolateUnixSockets, "unix-sockets"},
	{IsolateProc, "proc"},
	{IsolateTTY, "tty"},
	{IsolateIPC, "ipc"},
}

const (
	IsolateSignals Isolation = 1 << iota
	IsolateAbstractUnix
	IsolateUnixSockets
	IsolateProc
	IsolateTTY
	IsolateIPC
)

// Has reports whether all of what are in the set.
func (i Isolation) Has(what Isolation) bool { return i&what == what }

// A DescriptorMode says what happens to inherited descriptors above 2.
type DescriptorMode string

const (
	DescriptorsKeep  DescriptorMode = "keep"
	DescriptorsClose DescriptorMode = "close"
	DescriptorsList  DescriptorMode = "list"
)

// DescriptorPolicy is the value of the policy key "descriptors".
type DescriptorPolicy struct {
	Mode DescriptorMode
	// Keep lists the numbers above 2 that DescriptorsList keeps, sorted.
	Keep []int
}

// ConfinesFiles reports whether the policy needs a ruleset over the file
// system.
//
// To isolate from /proc and from unix sockets needs a domain that handles file
// access, too: without one, processes outside can be traced, and a process with
// CAP_SYS_ADMIN can mount what was taken from it. So does a network without
// lists of ports, of which Landlock has nothing else to handle.
func (p *Policy) ConfinesFiles() bool {
	noLists := p.Network.Mode == NetworkPorts && p.Network.ConnectTCP == nil && p.Network.BindTCP == nil
	return noLists || p.GuardKernel || len(p.Hidden) > 0 || p.Scope == ScopeWorkspace || p.Isolate&(IsolateProc|IsolateUnixSockets) != 0
}

// UsesLandlock reports whether anything in the policy is Landlock's to hold.
func (p *Policy) UsesLandlock() bool {
	return p.ConfinesFiles() || p.ConfinesNetwork() || p.Isolate&(IsolateSignals|IsolateAbstractUnix) != 0
}

// ConfinesNetwork reports whether the policy takes any network away.
func (p *Policy) ConfinesNetwork() bool {
	return p.Network.Mode != NetworkAllow && p.Network.Mode != ""
}

// UsesSeccomp reports whether a key of the policy rests on a seccomp filter. One is
// loaded for every policy that confines, where it can be.
func (p *Policy) UsesSeccomp() bool {
	return p.ConfinesNetwork() || p.Isolate&(IsolateSignals|IsolateUnixSockets|IsolateTTY) != 0
}

// Confines reports whether the policy asks for any confinement at all.
// Without it the launch is not touched.
func (p *Policy) Confines() bool {
	return p.confinesByKeys() || p.Capabilities == CapabilitiesRestricted
}

// ChecksCommand reports whether there is anything to look for in a shell's
// command string: paths in scope workspace, words that reach the network where
// that is denied.
func (p *Policy) ChecksCommand() bool {
	return p.CommandCheck && (p.Scope == ScopeWorkspace || p.Network.Mode == NetworkDeny)
}

// confinesByKeys is Confines for all keys but capabilities.
func (p *Policy) confinesByKeys() bool {
	return p.UsesLandlock() || p.UsesSeccomp() || p.Isolate != 0 ||
		p.Descriptors.Mode == DescriptorsClose || p.Descriptors.Mode == DescriptorsList
}
