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

	// Hidden, Exposed and Precreate keep the order of the text: the report
	// and the error messages count in it ("hidden[2]").
	Hidden    []Entry
	Exposed   []Entry
	Precreate []Entry

	// Frozen says what to do when the ancestor of a hidden path is a
	// directory in which the launch must be able to make files.
	Frozen FrozenMode

	Scope Scope
	// Capabilities is by default restricted when something is hidden, and
	// keep when the policy confines nothing.
	Capabilities CapabilityMode
	Env          EnvChange

	// Program is the absolute path of the real program, or "".
	Program string

	// Report and Log say where the launch report and the diagnostics go.
	Report Destination
	Log    LogConfig
}

// An Entry is one element of hidden, exposed or precreate: a plain path.
type Entry struct {
	// Path is absolute and clean but for "..", see [Policy].
	Path string
	// Key names the entry in messages, for example "hidden[2]".
	Key string
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

// Confines reports whether the policy asks for any confinement at all.
// Without it the launch is not touched.
func (p *Policy) Confines() bool {
	return len(p.Hidden) > 0 || p.Capabilities == CapabilitiesRestricted
}
