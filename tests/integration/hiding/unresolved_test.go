package hiding

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// The report may lie in a hidden directory, out of the program's reach.
func TestHiddenReportIsOutOfReach(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		tries := []try{
			{"read", "$W/report/r", ""},
			{"write", "$W/report/r", ""},
			{"unlink", "$W/report/r", ""},
			{"rename", "$W/report", "$W/report2"},
			{"read", "$W/work/f", ""},
		}
		out, open := w.held(t, hideSecret, try{"read", "$W/report/r", ""}, try{"write", "$W/report/r", ""})
		if d := cmp.Diff([]string{ok, ok}, errnos(out)); d != "" {
			t.Errorf("not hidden: -want +got:\n%s", d)
		}
		const writes = "the program can write the report"
		if text := strings.Join(limits(open, "self-protection"), "; "); !strings.Contains(text, writes) {
			t.Errorf("a report that the program can write: %q", text)
		}
		out, closed := w.held(t, `{"version":1,"hidden":["$W/report"]}`, tries...)
		if d := cmp.Diff([]string{denied, denied, denied, denied, ok}, errnos(out)); d != "" {
			t.Errorf("hidden: -want +got:\n%s", d)
		}
		if text := strings.Join(limits(closed, "self-protection"), "; "); strings.Contains(text, writes) {
			t.Errorf("a report that the program cannot reach: %q", text)
		}
	})
}

// A directory above the hidden one that may be searched and not listed gives
// only what can be named. The loss is reported.
func TestUnlistedAncestorIsReported(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot)
	w := newWorld(t, launch.Nobody)
	for _, path := range []string{"$W", "$W/file"} {
		if err := os.Chown(w.at(path), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(w.dir, 0o711); err != nil {
		t.Fatal(err)
	}
	w.env = with("TMPDIR=" + w.at("$W/work"))
	tries := []try{{"read", "$W/secret/f", ""}, {"read", "$W/file", ""}, {"read", "$W/work/f", ""}, {"mktemp", "", ""}}
	if got := errnos(w.free(t, tries...)); !cmp.Equal(got, []string{ok, ok, ok, ok}) {
		t.Fatalf("control: %q", got)
	}
	out, r := w.held(t, hideSecret, tries...)
	if d := cmp.Diff([]string{denied, denied, ok, ok}, errnos(out)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	wantLimit(t, r, "unlisted")
	if text := strings.Join(limits(r, "unlisted"), ""); !strings.Contains(text, w.dir) {
		t.Errorf("unlisted: %q does not name %s", text, w.dir)
	}
}

// A path into a directory that this user may not search.
func TestUnresolvedHiddenPathIsReported(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot)
	w := newWorld(t, launch.Nobody)
	w.mkdir(t, "$W/closed")
	if err := os.Chown(w.at("$W/closed"), 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(w.at("$W/closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	launch.Root.Write(t, w.at("$W/closed/f"), secret, 0o644)
	out, r := w.held(t, `{"version":1,"hidden":["$W/closed/f"]}`, try{"read", "$W/closed/f", ""}, try{"read", "$W/work/f", ""})
	if d := cmp.Diff([]string{denied, ok}, errnos(out)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	wantLimit(t, r, "unresolved")
}
