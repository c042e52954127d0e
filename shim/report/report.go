package report

import "github.com/sandbox-exec-shim/sandbox-exec-shim/rules"

// A Report is the record of one launch, one line of JSON; docs/report.md explains
// each key. Readers pass over keys that they do not know.
type Report struct {
	Version int    `json:"version"`
	Time    string `json:"time"`
	Shim    string `json:"shim"`
	PID     int    `json:"pid"`
	Target  string `json:"target"`
	Argv0   string `json:"argv0"`
	// Outcome is "exec", or "error" when the program was not started.
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`

	// Mechanism is landlock, landlock+seccomp, seccomp (which gives all that was
	// asked), none (nothing was asked) or unavailable (something was asked that only
	// Landlock gives, and this launch has none of it).
	Mechanism string `json:"sandbox_mechanism"`
	// Network is what is in force.
	Network string `json:"sandbox_network"`
	// WritableDirs is what scope workspace leaves writable: the workspace,
	// the policy's writable roots and the toolchain directories.
	WritableDirs []string `json:"sandbox_writable_dirs,omitempty"`
	Warning      string   `json:"sandbox_warning,omitempty"`

	Landlock *Landlock `json:"landlock,omitempty"`

	Hidden     []string `json:"hidden,omitempty"`
	Exposed    []string `json:"exposed,omitempty"`
	Precreated []string `json:"precreated,omitempty"`
	Frozen     []string `json:"frozen,omitempty"`
	// Dropped lists the entries of templates that do not apply to this launch.
	Dropped []rules.Dropped `json:"dropped,omitempty"`

	// Descriptors lists what the launcher left open and leads around the
	// policy.
	Descriptors []Descriptor `json:"descriptors,omitempty"`

	Enforced    []rules.Enforcement `json:"enforced,omitempty"`
	NotEnforced []rules.Gap         `json:"not_enforced,omitempty"`

	// ElapsedUS is the time from the start of the Go program to this line, in
	// microseconds.
	ElapsedUS int64 `json:"elapsed_us"`
}

// A Descriptor is one inherited descriptor that leads around the policy.
type Descriptor struct {
	FD int `json:"fd"`
	// LeadsTo is what /proc/self/fd says of it.
	LeadsTo string `json:"leads_to"`
	Why     string `json:"why"`
	Closed  bool   `json:"closed"`
}

// A Landlock says what was asked of Landlock.
type Landlock struct {
	ABI    int `json:"abi"`
	Errata int `json:"errata"`
	Rules  int `json:"rules"`
	// Layers is the number of domains that this launch added.
	Layers int `json:"layers"`
}

// Values of [Report.Mechanism].
const (
	MechanismLandlock    = "landlock"
	MechanismSeccomp     = "seccomp"
	MechanismBoth        = "landlock+seccomp"
	MechanismNone        = "none"
	MechanismUnavailable = "unavailable"
)

// Values of [Report.Outcome].
const (
	OutcomeExec  = "exec"
	OutcomeError = "error"
)

// TimeFormat is that of [Report.Time], which is in UTC.
const TimeFormat = "2006-01-02T15:04:05.000000Z"

// Line renders the report as one line of JSON, with its newline.
func (r *Report) Line() []byte { return append(r.encode(), '\n') }

// encode writes the report as its tags say, which is for those who read it: a
// test holds the two together.
func (r *Report) encode() []byte {
	var l jsonLine
	l.open('{')
	l.member("version", r.Version)
	l.member("time", r.Time)
	l.member("shim", r.Shim)
	l.member("pid", r.PID)
	l.member("target", r.Target)
	l.member("argv0", r.Argv0)
	l.member("outcome", r.Outcome)
	l.nonEmpty("error", r.Error)
	l.member("sandbox_mechanism", r.Mechanism)
	l.member("sandbox_network", r.Network)
	l.nonEmptyList("sandbox_writable_dirs", r.WritableDirs)
	l.nonEmpty("sandbox_warning", r.Warning)
	if k := r.Landlock; k != nil {
		l.key("landlock")
		l.open('{')
		l.member("abi", k.ABI)
		l.member("errata", k.Errata)
		l.member("rules", k.Rules)
		l.member("layers", k.Layers)
		l.close('}')
	}
	l.nonEmptyList("hidden", r.Hidden)
	l.nonEmptyList("exposed", r.Exposed)
	l.nonEmptyList("precreated", r.Precreated)
	l.nonEmptyList("frozen", r.Frozen)
	r.encodeLists(&l)
	l.member("elapsed_us", r.ElapsedUS)
	l.close('}')
	return l
}

// encodeLists writes the members that are lists of objects.
func (r *Report) encodeLists(l *jsonLine) {
	if len(r.Dropped) > 0 {
		l.key("dropped")
		l.open('[')
		for _, d := range r.Dropped {
			l.open('{')
			l.member("entry", d.Entry)
			l.nonEmpty("path", d.Path)
			l.member("why", d.Why)
			l.close('}')
		}
		l.close(']')
	}
	if len(r.Descriptors) > 0 {
		l.key("descriptors")
		l.open('[')
		for _, d := range r.Descriptors {
			l.open('{')
			l.member("fd", d.FD)
			l.member("leads_to", d.LeadsTo)
			l.member("why", d.Why)
			l.member("closed", d.Closed)
			l.close('}')
		}
		l.close(']')
	}
	if len(r.Enforced) > 0 {
		l.key("enforced")
		l.open('[')
		for _, e := range r.Enforced {
			l.open('{')
			l.member("what", e.What)
			l.member("by", e.By)
			l.close('}')
		}
		l.close(']')
	}
	if len(r.NotEnforced) > 0 {
		l.key("not_enforced")
		l.open('[')
		for _, g := range r.NotEnforced {
			l.open('{')
			l.member("what", g.What)
			l.nonEmpty("path", g.Path)
			l.member("why", g.Why)
			if g.Limit {
				l.member("limit", true)
			}
			l.close('}')
		}
		l.close(']')
	}
}
