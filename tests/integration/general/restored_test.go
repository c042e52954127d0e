package general_test

import (
	"path/filepath"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// TestProgramUnderItsOwnNameAgainIsFound starts a shim in place whose program has its own name again, as
// a launch finds it that began before an uninstall.
func TestProgramUnderItsOwnNameAgainIsFound(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		dir := u.Mkdir(t, filepath.Join(p.dir, "place"), 0o755)
		tool := filepath.Join(dir, "tool")
		launch.WriteProgram(t, tool, []byte("#!/bin/sh\nexit 37\n"))
		shim := launch.Install(t, dir, "shim", launch.Record{Real: tool + ".shim-real", InPlace: true})
		gone := launch.Install(t, dir, "gone", launch.Record{Real: filepath.Join(dir, "gone-too.shim-real"), InPlace: true})
		for _, policy := range []any{nil, p.policy(nil)} {
			for path, want := range map[string]int{shim: 37, gone: 127} {
				if r := (launch.Cmd{Path: path, User: u, Policy: policy}).Run(t); r.Code != want {
					t.Errorf("%s, policy %v: %v, want %d", path, policy, r, want)
				}
			}
		}
	})
}
