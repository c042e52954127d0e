package escape

import (
	"os"
	"slices"
	"strings"
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// unixByPath is what newer kernels deny.
const unixByPath = "Unix sockets by path"

// headings are those of the third level below "What does not hold".
func headings(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("../../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, ok := strings.Cut(string(data), "\n## What does not hold\n")
	if !ok {
		t.Fatal(`SECURITY.md has no "What does not hold"`)
	}
	part, _, _ = strings.Cut(part, "\n## ")
	var out []string
	for line := range strings.Lines(part) {
		if h, ok := strings.CutPrefix(line, "### "); ok {
			out = append(out, strings.TrimSpace(h))
		}
	}
	return out
}

// compareLimits compares what got through as documented with what is documented.
func compareLimits(t *testing.T, list []attempt, seen map[string]bool) {
	t.Helper()
	have := headings(t)
	for _, a := range list {
		if a.Limit != "" && !slices.Contains(have, a.Limit) {
			t.Errorf("%s: SECURITY.md has no heading %q", a.Name, a.Limit)
		}
	}
	abi, _ := ll.LandlockGetABIVersion()
	for _, h := range have {
		if !seen[h] && !slices.Contains([]string{linksOfOthers, ownShim}, h) && (h != unixByPath || abi < 9) {
			t.Errorf("no attempt gets through that SECURITY.md documents as %q", h)
		}
	}
}
