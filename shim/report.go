package shim

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// A Report is the record of one launch, one line of JSON. Keys that a harness
// knows already keep their names; all are snake_case.
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

	// Mechanism is landlock, landlock+seccomp, seccomp (nothing was asked of
	// Landlock), none (nothing was asked) or unavailable (Landlock was asked
	// for and is not there).
	Mechanism string `json:"sandbox_mechanism"`
	// Network is what is in force.
	Network string `json:"sandbox_network"`
	// WritableDirs is what scope workspace leaves writable: the workspace,
	// the policy's writable roots and the toolchain directories.
	WritableDirs []string `json:"sandbox_writable_dirs,omitempty"`
	Warning      string   `json:"sandbox_warning,omitempty"`

	Landlock *LandlockReport `json:"landlock,omitempty"`

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

	// seccomp is set once a filter is in force.
	seccomp bool
}

// A LandlockReport says what was asked of Landlock.
type LandlockReport struct {
	ABI    int `json:"abi"`
	Errata int `json:"errata"`
	Rules  int `json:"rules"`
	// Layers is the number of domains that this launch added.
	Layers int `json:"layers"`
}

const (
	mechanismLandlock    = "landlock"
	mechanismSeccomp     = "seccomp"
	mechanismBoth        = "landlock+seccomp"
	mechanismNone        = "none"
	mechanismUnavailable = "unavailable"
)

func newReport(s *Start, t target) *Report {
	r := &Report{
		Version: 1, Shim: s.Version, PID: unix.Getpid(), Target: t.path, Outcome: "exec",
		Mechanism: mechanismNone, Network: "allow",
	}
	if len(s.Argv) > 0 {
		r.Argv0 = s.Argv[0]
	}
	return r
}

// filtered says that the seccomp filter of p is in force.
func (r *Report) filtered(p *rules.Policy) {
	r.seccomp = true
	switch r.Mechanism {
	case mechanismLandlock:
		r.Mechanism = mechanismBoth
	case mechanismNone:
		r.Mechanism = mechanismSeccomp
	}
	if p.ConfinesNetwork() {
		r.Network = string(p.Network.Mode)
	}
}

// lose takes back what was said to hold by one means.
func (r *Report) lose(what, by, why string) {
	was := len(r.Enforced)
	r.Enforced = slices.DeleteFunc(r.Enforced, func(e rules.Enforcement) bool { return e.What == what && e.By == by })
	if len(r.Enforced) < was {
		r.NotEnforced = append(r.NotEnforced, rules.Gap{What: what, Why: why})
	}
}

// warn adds a sentence to the report's warning.
func (r *Report) warn(text string) {
	if r.Warning != "" {
		text = r.Warning + "; " + text
	}
	r.Warning = text
}

// line renders the report for one write.
func (r *Report) line(started time.Time) ([]byte, error) {
	r.Time = time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	r.ElapsedUS = time.Since(started).Microseconds()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, err
	}
	return []byte(b.String()), nil
}
