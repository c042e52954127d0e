package races

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// TestRulesOnInodesAreALimit shows what a peer can do, since a rule sits on an
// inode: what it puts in a granted place is granted. Every report says so.
func TestRulesOnInodesAreALimit(t *testing.T) {
	const ownFile, ownSub = "/w/above/secret/hidden-text", "/w/above/secret/sub/f"
	link := func(from, to string) func(*stage) error {
		return func(s *stage) error { return unix.Link(s.at(from), s.at(to)) }
	}
	unlink := func(path string) func(*stage) error {
		return func(s *stage) error { return unix.Unlink(s.at(path)) }
	}
	nothing := func(*stage) error { return nil }
	exchanged := exchange("", "w/above/secret", "w/above/decoy")
	out := exchange("", "w/above/secret/sub", "w/above/aside")
	into := move("", "w/above/secret", "w/above/open/moved")
	limits := []struct {
		name string
		// before, during and after are the peer's deeds: before the launch,
		// once the identities are known, and while the program runs.
		before, during, after, clean func(*stage) error
		// readable is what the program reads at last, denied what it does not.
		readable, denied []string
	}{
		{
			"exchanged before, undone after", exchanged.do, nothing, exchanged.undo, nothing,
			[]string{ownFile, ownSub},
			nil,
		},
		{
			"a part is moved to a sibling's place during the launch, and back after", nothing, out.do, out.undo, nothing,
			[]string{ownSub},
			[]string{ownFile},
		},
		{
			"moved into a granted directory", nothing, nothing, into.do, into.undo,
			[]string{"/w/above/open/moved/hidden-text"},
			nil,
		},
		{
			"moved into a granted directory, and back", nothing, into.do, into.undo, nothing,
			nil,
			[]string{ownFile, ownSub},
		},
		{
			"linked into a granted directory", nothing, nothing,
			link("w/above/secret/hidden-text", "w/above/open/linked"), unlink("w/above/open/linked"),
			[]string{"/w/above/open/linked"},
			[]string{ownFile, ownSub},
		},
		{
			"linked into a frozen directory before the launch",
			link("w/above/secret/hidden-text", "w/above/linked"), nothing, nothing, unlink("w/above/linked"),
			[]string{"/w/above/linked", ownFile},
			[]string{ownSub},
		},
		{
			"a hidden file is linked into a frozen directory before the launch",
			link("w/above/key", "w/above/linked"), nothing, nothing, unlink("w/above/linked"),
			nil,
			[]string{"/w/above/linked", "/w/above/key"},
		},
	}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		onStage(t, u, func(s *stage) error {
			reports := s.at("report/r")
			s.tracee.env = slices.Concat(s.tracee.env[:1], []string{
				"SANDBOX_EXEC_SHIM_POLICY=" + strings.Replace(policy, "{", `{"report":"/report/r",`, 1),
			})
			for _, l := range limits {
				s.tracee.argv = slices.Concat([]string{"witness"}, l.readable, l.denied)
				if err := l.before(s); err != nil {
					return fmt.Errorf("%s: before: %w", l.name, err)
				}
				done := false
				o, err := s.tracee.run(func(at stop) (bool, error) {
					if !done && at.examines(s.secret) {
						done = true
						return true, l.during(s)
					}
					return true, nil
				}, func() error { return l.after(s) })
				if err != nil {
					return fmt.Errorf("%s: %w", l.name, err)
				}
				if len(o.rounds) != 2 {
					t.Errorf("%s: the program was not started: %v", l.name, o)
				} else {
					for i, got := range o.rounds[1] {
						if want := i < len(l.readable); want != (got == hiddenText) || !want && got != "EACCES" {
							t.Errorf("%s: %s: %q", l.name, s.tracee.argv[1+i], got)
						}
					}
				}
				if err := l.clean(s); err != nil {
					return fmt.Errorf("%s: clean up: %w", l.name, err)
				}
				listed(t, l.name, launch.Reports(t, reports))
				if err := os.Remove(reports); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// listed checks that the report has the limits.
func listed(t *testing.T, name string, reports []report.Report) {
	t.Helper()
	if len(reports) != 1 {
		t.Errorf("%s: %d reports", name, len(reports))
		return
	}
	for _, what := range []string{"later", "hard-link"} {
		if got := launch.NotEnforced(reports[0], what); !slices.Contains(got, "limit") {
			t.Errorf("%s: the report does not list the limit %q: %q", name, what, got)
		}
	}
}
