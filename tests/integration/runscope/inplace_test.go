package runscope

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// The target of a profile is the same program under a link to it, when the shim
// is in its place: the real program then has the shim's suffix.
func TestTargetInPlaceIsKnownByALink(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		data, err := os.ReadFile(witness(t))
		if err != nil {
			t.Fatal(err)
		}
		dir := launch.Dir(t)
		real := launch.WriteProgram(t, filepath.Join(dir, "paperclip-runnerd.shim-real"), data)
		shim := launch.Install(t, dir, "paperclip-runnerd", launch.Record{Real: real, InPlace: true, PolicyEnv: policyEnv, Report: w.at("$W/report/r")})
		w.name, w.shim = "runner", filepath.Join(dir, "runner")
		if err := os.Symlink(shim, w.shim); err != nil {
			t.Fatal(err)
		}
		got, r := w.held(t, own(), try{Op: "read", Path: "$I/secrets/f"}, try{Op: "list", Path: "$R/durable-sessions"})
		if got[0].Errno != denied || got[1].Errno != denied || len(launch.NotEnforced(r, "run-scope")) != 0 {
			t.Errorf("%v, reported %q", got, launch.NotEnforced(r, "run-scope"))
		}
	})
}
