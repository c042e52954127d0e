package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A link that one launch left in a place of its own leads the next one nowhere: it is
// no workspace, no root, and the shim writes nothing through it.
func TestLinksThatALaunchLeftAreNotFollowed(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		mkdirAll(t, u, p.home, ".cache")
		victim := filepath.Join(p.outside, "empty")
		cache, ws := filepath.Join(p.home, ".cache/l"), filepath.Join(p.ws, "l")
		p.run(t, p.policy(nil), `ln -s "`+victim+`" "`+cache+`" && ln -s "`+victim+`" "`+ws+`"`)
		none := m{"toolchainDirs": false} // what is writable now does not matter
		with := func(key string, value any) m { return p.policy(m{"toolchainDirs": none["toolchainDirs"], key: value}) }
		for name, policy := range map[string]m{
			"workspace":            with("workspace", cache),
			"writable":             with("writable", []string{cache}),
			"owned":                p.policy(m{"toolchainDirs": m{"owned": cache}}),
			"precreate":            with("precreate", []string{cache + "/made/deep"}),
			"report":               with("report", cache+"/report"),
			"report, by the other": with("report", ws+"/report"),
		} {
			r := p.shell(t, policy, "echo started")
			if r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, "goes through the symlink") || !strings.Contains(r.Stderr, "name \""+victim) {
				t.Errorf("%s: %v, want 125 and the real path", name, r)
			}
		}
		// A log stops no launch, nor a report that is not required.
		for name, policy := range map[string]m{
			"log":    with("log", m{"level": "info", "to": ws + "/log"}),
			"report": p.policy(m{"report": ws + "/report", "required": false}),
		} {
			if r := p.shell(t, policy, "echo started"); r.Stdout != "started\n" || !strings.Contains(r.Stderr, "goes through the symlink") {
				t.Errorf("%s: %v", name, r)
			}
		}
		// The current directory, as a shell came to it.
		c := launch.Shell(p.sh, "echo started")
		c.Dir, c.User, c.Policy = victim, u, p.policy(m{"workspace": nil})
		for pwd, code := range map[string]int{cache: 125, victim: 0, p.ws: 0} {
			if c.Env = append(p.env(), "PWD="+pwd); c.Run(t).Code != code {
				t.Errorf("PWD=%s: %v, want %d", pwd, c.Run(t), code)
			}
		}
		if left, err := os.ReadDir(victim); err != nil || len(left) != 0 {
			t.Errorf("written through a link: %v, %v", left, err)
		}
		// Where no launch could have made it, a link is followed.
		user := filepath.Join(p.dir, "linked")
		symlink(t, victim, user)
		for name, policy := range map[string]m{
			"workspace": with("workspace", user), "report": with("report", user+"/report"), "precreate": with("precreate", []string{user + "/made"}),
		} {
			if r := p.shell(t, policy, "echo started"); r.Stdout != "started\n" {
				t.Errorf("%s by a link of the user's: %v", name, r)
			}
		}
		if left := tree(t, victim); len(left) != 2 {
			t.Errorf("made: %v", left)
		}
	})
}
