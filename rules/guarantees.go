package rules

import "fmt"

// A Kernel is what the running kernel offers.
type Kernel struct {
	// ABI is the Landlock ABI, 0 where Landlock is not available.
	ABI int
	// Errata holds the errata bits that LANDLOCK_CREATE_RULESET_ERRATA gave.
	Errata int
	// Unavailable says why ABI is 0.
	Unavailable string
}

// An Enforcement is one thing that holds for the launch, and by what.
type Enforcement struct {
	What string `json:"what"`
	By   string `json:"by"`
}

// A Gap is one thing that does not hold for the launch.
type Gap struct {
	What string `json:"what"`
	Path string `json:"path,omitempty"`
	Why  string `json:"why"`
	// Limit is set for what the key never promised on this kernel: it is
	// said and does not stop a required launch.
	Limit bool `json:"limit,omitempty"`
}

// A promise is one line of the table below: one thing that a policy key gives,
// or one thing near it that it does not give.
type promise struct {
	key  string
	what string
	// abi is the Landlock ABI from which it holds; never for what no ABI gives.
	abi int
	// limit marks what is a limit, not a guarantee, where it does not hold.
	limit bool
	// why completes the reason where abi alone does not say it.
	why string
}

const never = 1 << 30

// promises is the only source of what each key guarantees and what it does not.
// The reference in docs/ is held to it by a test.
var promises = []promise{
	{key: "hidden", what: "hidden", abi: 1},
	{key: "hidden", what: "truncate", abi: 3, limit: true},
	{key: "hidden", what: "unix-socket", abi: 9, limit: true},
	{
		key: "hidden", what: "metadata", abi: never, limit: true,
		why: "existence, stat, mode, owner, times, extended attributes and inotify of hidden paths are not covered by Landlock",
	},
	{
		key: "hidden", what: "descriptors", abi: never, limit: true,
		why: "descriptors inherited from the launcher are not examined and stay usable",
	},
}

// Assess says what of p holds on kernel k and what does not. It speaks of what
// can be known beforehand; the launch adds what it finds ([Plan.Limits]).
func Assess(p *Policy, k Kernel) (held []Enforcement, gaps []Gap) {
	for _, pr := range promises {
		if !p.asks(pr.key) {
			continue
		}
		if k.ABI >= pr.abi {
			held = append(held, Enforcement{What: pr.what, By: "landlock"})
			continue
		}
		gap := Gap{What: pr.what, Why: pr.why, Limit: pr.limit}
		switch {
		case pr.abi == never:
		case k.ABI == 0:
			gap.Why = "Landlock is not available"
			if k.Unavailable != "" {
				gap.Why += ": " + k.Unavailable
			}
		default:
			gap.Why = fmt.Sprintf("needs Landlock ABI %d, this kernel has %d", pr.abi, k.ABI)
		}
		gaps = append(gaps, gap)
	}
	return held, gaps
}

// asks reports whether the policy uses a key.
func (p *Policy) asks(key string) bool {
	switch key {
	case "hidden":
		return len(p.Hidden) > 0
	default:
		return false
	}
}
