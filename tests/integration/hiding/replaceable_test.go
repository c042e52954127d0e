package hiding

import (
	"os"
	"slices"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// Who may replace a symbolic link by which a policy hides or exposes something
// chooses what the next launch hides and exposes. The report says so.
func TestReplaceableLinksAreReported(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		const policy = `{"version":1,"hidden":["$W/secret","$W/work/hide"],"exposed":["$W/work/own"]}`
		w := newWorld(t, u)
		w.mkdir(t, "$W/other")
		w.write(t, "$W/other/f", secret)
		w.symlink(t, "$W/other", "$W/work/hide")
		w.symlink(t, "$W/secret/own", "$W/work/own")
		// A link beside what is hidden cannot be replaced.
		w.symlink(t, "$W/work", "$W/frozen")
		steer := []try{
			{"read", "$W/other/f", ""},
			{"unlink", "$W/work/hide", ""},
			{"symlink", "$W/work/hide", "$W/work/sub"},
			{"unlink", "$W/frozen", ""},
		}
		out, r := w.held(t, policy, steer...)
		if got := errnos(out); !slices.Equal(got, []string{denied, ok, ok, denied}) {
			t.Errorf("the first launch: %v", got)
		}
		for _, want := range []string{
			"$W/work/hide: the program can replace a symbolic link on the way to hidden[1]",
			"$W/work/own: the program can replace a symbolic link on the way to exposed[0]",
		} {
			if got := limits(r, "self-protection"); !slices.Contains(got, w.at(want)) {
				t.Errorf("not reported: %q in %q", w.at(want), got)
			}
		}
		if out, _ := w.held(t, policy, steer[0]); out[0].Errno != ok {
			t.Errorf("the second launch: %+v; then there is nothing to report", out[0])
		}

		_, r = w.held(t, `{"version":1,"hidden":["$W/frozen/sub","$W/secret"]}`, steer[0])
		for _, got := range limits(r, "self-protection") {
			if got == w.at("$W/frozen: the program can replace a symbolic link on the way to hidden[0]") {
				t.Errorf("it cannot: %s", got)
			}
		}
	})
}

// In scope workspace, what is exposed can be written, and such a link is an error.
func TestReplaceableLinksInTheWorkspaceAreRefused(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		w.symlink(t, "$W/secret/own", "$W/work/own")
		w.symlink(t, "$W/secret", "$W/work/hide")
		w.symlink(t, "$W/secret", "$W/hide")
		const rest = `,"version":1,"scope":"workspace","workspace":"$W/work","toolchainDirs":false}`
		w.refused(t, `{"hidden":["$W/secret"],"exposed":["$W/work/own"]`+rest, "scope", "$W/work/own", "on the way to exposed[0]")
		w.refused(t, `{"hidden":["$W/work/hide"]`+rest, "scope", "$W/work/hide", "on the way to hidden[0]")
		if out, _ := w.held(t, `{"hidden":["$W/hide"]`+rest, try{"read", "$W/secret/f", ""}); out[0].Errno != denied {
			t.Errorf("%+v", out)
		}
	})
}

// A policy file that belongs to another user can still be replaced in a
// directory of one's own.
func TestReplaceablePolicyFileIsReported(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot)
	w := newWorld(t, launch.Nobody)
	file := w.at("$W/work/policy")
	if err := os.WriteFile(file, []byte(w.policy(t, hideSecret)), 0o644); err != nil {
		t.Fatal(err)
	}
	r := w.command(t, "@"+file, []try{{"rename", file, file + ".old"}}).Run(t)
	if out := w.results(t, r, 1); out[0].Errno != ok {
		t.Errorf("%+v", out)
	}
	if got := limits(w.report(t), "self-protection"); !slices.Contains(got, file+": the program can replace the policy file") {
		t.Errorf("reported %q", got)
	}
}
