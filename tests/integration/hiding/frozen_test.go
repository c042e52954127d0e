package hiding

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// capLast is more than any kernel's highest capability needs.
const capLast = 40

func allCapabilities() []int {
	var out []int
	for n := range capLast + 1 {
		out = append(out, n)
	}
	return out
}

// with returns the usual environment with variables in front.
func with(vars ...string) []string { return append(vars, launch.DefaultEnv...) }

func TestFrozenTempDirectoryIsRefused(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		for name, c := range map[string]struct {
			tmp, hidden string
			refused     bool
		}{
			"beside":                   {"$W/work", "$W/secret", false},
			"inside":                   {"$W/work", "$W/work/sub", true},
			"deep inside":              {"$W", "$W/work/sub", true},
			"inside by a link":         {"$W/tmplink", "$W/work/sub", true},
			"inside, absent yet":       {"$W/work", "$W/work/later", true},
			"the temp itself":          {"$W/work", "$W/work", true},
			"above":                    {"$W/work/sub", "$W/work", true},
			"temp that does not exist": {"$W/work/none", "$W/work/sub", false},
		} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, u)
				w.symlink(t, "work", "$W/tmplink")
				w.env = with("TMPDIR=" + w.at(c.tmp))
				text := `{"version":1,"hidden":["` + c.hidden + `"]}`
				if c.refused {
					w.refused(t, text, "hidden[0]", "temp directory", `"frozen":"allow"`)
					text = `{"version":1,"frozen":"allow","hidden":["` + c.hidden + `"]}`
				}
				got, r := w.held(t, text, try{"list", c.hidden, ""}, try{"mktemp", "", ""})
				want := ok
				if c.refused {
					want = denied
				} else if c.tmp == "$W/work/none" {
					want = "ENOENT"
				}
				if got[1].Errno != want || got[0].Errno == ok {
					t.Errorf("list and mktemp: %+v, want mktemp %s", got, want)
				}
				if frozen := w.at(strings.TrimSuffix(c.hidden, "/sub")); strings.HasSuffix(c.hidden, "/sub") && !slices.Contains(r.Frozen, frozen) {
					t.Errorf("frozen %q lacks %q", r.Frozen, frozen)
				}
			})
		}
	})
}

func TestFrozenDefaultTempDirectoryIsRefused(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		newWorld(t, u).refused(t, `{"version":1,"hidden":["/tmp/shim-test-does-not-exist"]}`, "hidden[0]", "freeze the temp directory", `"/tmp"`)
	})
}

func TestFrozenCurrentDirectoryIsSaid(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		for name, c := range map[string]struct {
			cwd, hidden string
			warning     string
		}{
			"free":         {"$W/work", "$W/secret", ""},
			"root":         {"/", "$W/secret", ""},
			"frozen":       {"$W", "$W/secret", "is frozen"},
			"hidden":       {"$W/secret/sub", "$W/secret", "is hidden"},
			"frozen, link": {"$W/worklink", "$W/work/sub", "is frozen"},
		} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, u)
				w.symlink(t, "work", "$W/worklink")
				w.cwd = c.cwd
				w.env = []string{"PATH=/usr/bin:/bin", "HOME=" + w.dir}
				res := w.command(t, w.policy(t, `{"version":1,"hidden":["`+c.hidden+`"]}`), []try{{"read", "$W/file", ""}}).Run(t)
				w.results(t, res, 1)
				lines := strings.Count(res.Stderr, "\n")
				if c.warning == "" && res.Stderr != "" || c.warning != "" && (lines != 1 || !strings.Contains(res.Stderr, c.warning)) {
					t.Errorf("stderr %q, want one line with %q or none", res.Stderr, c.warning)
				}
				r := w.report(t)
				if !strings.Contains(r.Warning, c.warning) || (c.warning == "") != (r.Warning == "") {
					t.Errorf("sandbox_warning %q, want %q", r.Warning, c.warning)
				}
				if !slices.Contains(r.Frozen, w.dir) {
					t.Errorf("HOME %s is above what is hidden and not in frozen %q", w.dir, r.Frozen)
				}
			})
		}
	})
}

// A sibling that is replaced by a new file of the same name, as editors save,
// is a new inode: no rule covers it. It is denied, not opened.
func TestReplacedSiblingIsDenied(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		p := w.command(t, w.policy(t, hideSecret), []try{
			{"read", "$W/file", ""},
			{"create", "$W/work/ready", ""},
			{"await", "$W/work/go", ""},
			{"read", "$W/file", ""},
			{"read", "$W/work/f", ""},
			{"read", "$W/work/sub/new", ""},
		}).Start(t)
		awaitFile(t, w.at("$W/work/ready"))
		rename(t, w.at("$W/work/f"), w.at("$W/work/f.old"))
		w.write(t, "$W/work/f", "saved") // in a granted directory: a new file is covered
		w.write(t, "$W/file.new", "saved")
		rename(t, w.at("$W/file.new"), w.at("$W/file"))
		w.write(t, "$W/work/sub/new", "new")
		w.write(t, "$W/work/go", "")
		got := errnos(w.results(t, p.Wait(t), 6))
		if d := cmp.Diff([]string{ok, ok, ok, denied, ok, ok}, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}
