package rules

import "testing"

// Each promise says in one way, and one only, which policies ask for it.
func TestPromisesAreAsked(t *testing.T) {
	for _, pr := range promises {
		if (pr.asks == nil) == (pr.isolates == 0) {
			t.Errorf("%s: %s: asks or isolates, not both and not none", pr.key, pr.what)
		}
	}
	if len(promises) < 10 {
		t.Errorf("only %d promises", len(promises))
	}
}
