package general_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A caller may leave the shim hardly a descriptor. Whatever the number, either
// the program runs, confined, or there is one line and 125; and from some number
// on it runs.
func TestFewDescriptorsConfineOrStop(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		outside := filepath.Join(u.Dir(t), "outside")
		for name, policy := range map[string]object{
			"hidden": {"version": 1, "hidden": []string{p.hidden}},
			"workspace": {
				"version": 1, "scope": "workspace", "workspace": p.work, "network": "deny", "toolchainDirs": false,
			},
			"both": {
				"version": 1, "hidden": []string{p.hidden}, "scope": "workspace", "workspace": p.work, "toolchainDirs": false,
			},
			"network": {"version": 1, "network": "deny"},
		} {
			t.Run(name, func(t *testing.T) {
				_, hides := policy["hidden"]
				_, scoped := policy["scope"]
				ran, refused := 0, 0
				for limit := uint64(3); limit <= 40; limit++ {
					p.unmark(t)
					c := p.sh(`(: <"$1") && echo read; (: >"$3") && echo wrote; : >"$2"; exit 3`, policy)
					c.Args = append(c.Args, outside)
					c.Setup = &launch.Setup{NoFile: &[2]uint64{limit, limit}}
					r := c.Run(t)
					started := p.started()
					switch {
					case !started && r.Code == 125:
						refused++
						if strings.Count(r.Stderr, "\n") != 1 || !strings.HasPrefix(r.Stderr, "sandbox-exec-shim: ") {
							t.Errorf("%d descriptors: not one line: %v", limit, r)
						}
						if !strings.Contains(r.Stderr, "too many open files") {
							t.Errorf("%d descriptors: no reason: %v", limit, r)
						}
					case started:
						ran++
						did := func(what string) bool { return strings.Contains(r.Stdout, what) }
						if hides && did("read") || scoped && did("wrote") {
							t.Errorf("%d descriptors: less confined than asked: %v", limit, r)
						}
						// With fewer than that, the shell itself redirects nothing.
						if limit >= 16 && (r.Code != 3 || did("read") == hides || did("wrote") == scoped) {
							t.Errorf("%d descriptors: %v", limit, r)
						}
					default:
						t.Errorf("%d descriptors: started %v: %v", limit, started, r)
					}
				}
				t.Logf("%d ran, %d were refused", ran, refused)
				if ran < 20 || refused == 0 {
					t.Errorf("%d ran, %d were refused", ran, refused)
				}
			})
		}
	})
}
