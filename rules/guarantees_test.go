package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// TestAssessHidden: what hidden gives on each kernel. Limits never stop a
// launch, guarantees do.
func TestAssessHidden(t *testing.T) {
	tests := []struct {
		abi                  int
		held, missing, limit string
	}{
		{0, "", "hidden", "truncate unix-socket metadata hard-link later outside copies"},
		{1, "hidden", "", "truncate unix-socket metadata hard-link later outside copies"},
		{2, "hidden", "", "truncate unix-socket metadata hard-link later outside copies"},
		{3, "hidden truncate", "", "unix-socket metadata hard-link later outside copies"},
		{8, "hidden truncate", "", "unix-socket metadata hard-link later outside copies"},
		{9, "hidden truncate unix-socket", "", "metadata hard-link later outside copies"},
		{99, "hidden truncate unix-socket", "", "metadata hard-link later outside copies"},
	}
	for _, tt := range tests {
		held, gaps := rules.Assess(parse(t, `{"version":1,"hidden":["/srv"]}`), rules.Kernel{ABI: tt.abi, Errata: 7, Unavailable: "it is switched off"})
		var h, missing, limit []string
		for _, e := range held {
			if e.By == rules.BySeccomp {
				continue // TestAssessFilter
			}
			h = append(h, e.What)
			if e.By != "landlock" {
				t.Errorf("ABI %d: %s is held by %q", tt.abi, e.What, e.By)
			}
		}
		for _, g := range gaps {
			if g.Why == "" {
				t.Errorf("ABI %d: %s is missing without a reason", tt.abi, g.What)
			}
			if tt.abi == 0 && g.What == "hidden" && !strings.Contains(g.Why, "it is switched off") {
				t.Errorf("the reason is %q", g.Why)
			}
			if g.Limit {
				limit = append(limit, g.What)
			} else {
				missing = append(missing, g.What)
			}
		}
		for _, c := range []struct {
			what, want string
			got        []string
		}{{"held", tt.held, h}, {"missing", tt.missing, missing}, {"limits", tt.limit, limit}} {
			if !slices.Equal(strings.Fields(c.want), c.got) {
				t.Errorf("ABI %d: %s: got %q, want %q", tt.abi, c.what, c.got, c.want)
			}
		}
	}
}

func TestAssessNothing(t *testing.T) {
	held, gaps := rules.Assess(parse(t, `{"version":1}`), rules.Kernel{})
	if len(held)+len(gaps) != 0 {
		t.Errorf("held %v, gaps %v", held, gaps)
	}
}

// TestAssessFilter: what every launch has of the filter, and that it is a limit where
// none can be loaded, for a required launch too.
func TestAssessFilter(t *testing.T) {
	for _, row := range []struct{ policy, want string }{
		{`{"version":1}`, ""},
		{`{"version":1,"scope":"unrestricted"}`, ""},
		{`{"version":1,"hidden":["/srv"]}`, "keyrings file-ioctls"},
		{`{"version":1,"scope":"workspace","workspace":"/srv"}`, "keyrings file-ioctls"},
		{`{"version":1,"isolate":["tty"]}`, "tty keyrings"},
		{`{"version":1,"isolate":["signals"]}`, "resource-limits keyrings"},
		{`{"version":1,"capabilities":"restricted"}`, "keyrings"},
		{`{"version":1,"descriptors":"close"}`, "keyrings"},
	} {
		for _, noSeccomp := range []string{"", "a supervisor"} {
			held, gaps := rules.Assess(parse(t, row.policy), rules.Kernel{ABI: 7, Errata: 7, NoSeccomp: noSeccomp})
			var got []string
			for _, e := range held {
				if e.By == rules.BySeccomp {
					got = append(got, e.What)
				}
			}
			for _, g := range gaps {
				if strings.Contains(g.Why, "a supervisor") {
					got = append(got, g.What)
					if key := g.What == "tty" || g.What == "resource-limits"; g.Limit == key {
						t.Errorf("%s: %s is a limit: %v", row.policy, g.What, g.Limit)
					}
				}
			}
			if !slices.Equal(got, strings.Fields(row.want)) {
				t.Errorf("%s, %q: got %q, want %q", row.policy, noSeccomp, got, row.want)
			}
		}
	}
}
