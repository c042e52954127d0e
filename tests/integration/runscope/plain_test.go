package runscope

import (
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// What a plain path hides is opened by no template; what an object hides is.
func TestPlainPathIsOpenedByNoTemplate(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		for _, row := range []struct{ name, hidden, want string }{
			{"plain", `"$R/durable-sessions"`, denied},
			{"object", `{"path":"$R/durable-sessions"}`, ok},
			{"both", `{"path":"$R/durable-sessions"},"$R/durable-sessions"`, denied},
		} {
			t.Run(row.name, func(t *testing.T) {
				w := newWorld(t, u)
				u.Mkdir(t, w.at("$R/durable-sessions/own-scope"), 0o755)
				w.policy = `{"version":1,"hidden":[` + row.hidden + `],` +
					`"exposed":[{"path":"${arg:--state-dir}","beneath":"$R/durable-sessions","keep":1,"kind":"dir"}]}`
				got, r := w.held(t, own(), try{Op: "list", Path: "$R/durable-sessions/own-scope"}, try{Op: "read", Path: "$R/durable-sessions/other/f"})
				if got[0].Errno != row.want || got[1].Errno != denied {
					t.Errorf("the own session and another: %v, want %s", got, row.want)
				}
				if dropped := len(r.Dropped) == 1; dropped != (row.want == denied) {
					t.Errorf("dropped: %+v", r.Dropped)
				}
			})
		}
	})
}
