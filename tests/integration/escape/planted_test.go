package escape

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A yard is what two launches share. The first may write in each of the
// places, leaves links there that lead to victim, and is over when the second
// starts. No policy names victim.
type yard struct {
	dir  string
	user launch.User
	shim string
	temp string
}

// places are where the first launch may write, by what makes them writable. temp
// is a directory in /tmp.
var places = map[string]string{
	"workspace": "proj", "writable": "extra", "temp": "tmp", "cache": "home/.cache", "owned": "owned",
}

// A use is what the second launch does with a path that the first could plant.
type use struct {
	name string
	// set changes the policy of the launch, and its environment.
	set func(policy object, env map[string]string, path string)
	// at is where in the path the launch writes, "" for the path itself.
	at string
	// cwd is set where the path is the current directory.
	cwd bool
	// replaces names the places that the use takes out of the policy.
	replaces string
}

func key(name string, value func(path string) any) func(object, map[string]string, string) {
	return func(p object, _ map[string]string, path string) { p[name] = value(path) }
}

func variable(name string, mode any) func(object, map[string]string, string) {
	return func(p object, env map[string]string, path string) { env[name], p["toolchainDirs"] = path, mode }
}

func uses() []use {
	list := []use{
		{name: "workspace", set: key("workspace", func(p string) any { return p }), replaces: "workspace"},
		{name: "current directory", set: func(p object, env map[string]string, path string) {
			delete(p, "workspace")
			env["PWD"] = path // as a shell does
		}, cwd: true, replaces: "workspace"},
		{name: "unnamed current directory", set: func(p object, _ map[string]string, _ string) {
			delete(p, "workspace")
		}, cwd: true, replaces: "workspace writable temp cache owned"},
		{name: "writable", set: key("writable", func(p string) any { return []string{p} }), replaces: "writable"},
		{name: "owned", set: key("toolchainDirs", func(p string) any { return object{"owned": p} }), replaces: "owned"},
		{name: "precreate", set: key("precreate", func(p string) any { return []string{p + "/made"} }), at: "made"},
		{name: "report", set: key("report", func(p string) any { return p + "/report" })},
		{name: "log", set: key("log", func(p string) any { return object{"level": "info", "to": p + "/log"} })},
	}
	for _, name := range []string{"TMPDIR", "GOTMPDIR", "GOCACHE", "GOMODCACHE", "XDG_CACHE_HOME", "GOPATH"} {
		list = append(list, use{name: name, set: variable(name, true), at: map[string]string{"GOPATH": "pkg"}[name], replaces: "owned"})
	}
	list = append(list, use{name: "HOME", set: variable("HOME", true), at: ".cache", replaces: "owned cache"})
	for name, at := range map[string]string{"npm_config_cache": "", "PIP_CACHE_DIR": "", "CARGO_HOME": "registry", "GRADLE_USER_HOME": "caches"} {
		list = append(list, use{name: name, set: variable(name, "leaves"), at: at, replaces: "owned"})
	}
	return list
}

// shapes are what is planted at a path: a link to a directory, a link above it,
// a link to nothing yet.
var shapes = []string{"at", "above", "to nothing"}

// A combination is one of what the second launch does with one of the links.
type combination struct {
	use   use
	place string
	shape string
	// same is set where the second launch has the roots of the first; else it has
	// others, and HOME and the temp directory in common.
	same bool
}

// known reports whether the second launch can know that the first could write
// there: its own policy or the toolchain table makes the place writable.
func (c combination) known() bool {
	return !strings.Contains(c.use.replaces, c.place) && (c.same || c.place == "temp" || c.place == "cache")
}

func (c combination) String() string {
	whose := "of another policy"
	if c.same {
		whose = "of this policy"
	}
	return fmt.Sprintf("%s: link %s, in the %s %s", c.use.name, c.shape, c.place, whose)
}

func combinations() (out []combination) {
	for _, u := range uses() {
		for _, place := range slices.Sorted(maps.Keys(places)) {
			for _, shape := range shapes {
				if u.cwd && shape == "to nothing" {
					continue // nothing can be entered
				}
				for _, same := range []bool{true, false} {
					out = append(out, combination{u, place, shape, same})
				}
			}
		}
	}
	return out
}

func newYard(t *testing.T, u launch.User) *yard {
	t.Helper()
	y := &yard{dir: u.Dir(t), user: u}
	for _, dir := range []string{"home", "home/.cache", "proj", "proj2", "extra", "owned", "victim"} {
		u.Mkdir(t, y.at(dir), 0o755)
	}
	var err error
	if y.temp, err = os.MkdirTemp("/tmp", "shim-test-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(y.temp) })
	u.Own(t, y.temp)
	y.shim = launch.Install(t, launch.Dir(t), "sh", launch.Record{Real: "/bin/sh"})
	return y
}

func (y *yard) at(name string) string {
	if name == "tmp" {
		return y.temp
	}
	return filepath.Join(y.dir, name)
}

// run starts a script under a policy of scope "workspace".
func (y *yard) run(t *testing.T, policy object, env map[string]string, dir, script string, args ...string) launch.Result {
	t.Helper()
	c := launch.Shell(y.shim, script, args...)
	c.User, c.Dir, c.Env = y.user, dir, []string{"PATH=/usr/bin:/bin"}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		c.Env = append(c.Env, name+"="+env[name])
	}
	if policy != nil {
		policy["version"], policy["scope"] = 1, "workspace"
		c.Policy = policy
	}
	return c.Run(t)
}

// first is the policy and the environment of the first launch.
func (y *yard) first(owned bool) (object, map[string]string) {
	p := object{"workspace": y.at("proj"), "writable": []string{y.at("extra")}, "toolchainDirs": true}
	if owned {
		p["toolchainDirs"] = object{"owned": y.at("owned")}
	}
	return p, map[string]string{"HOME": y.at("home")}
}

// path is where a combination's path is, and target what its link leads to.
func (y *yard) path(i int, c combination) (path, link, target string) {
	link, target = filepath.Join(y.at(places[c.place]), fmt.Sprint("p", i)), filepath.Join(y.at("victim"), fmt.Sprint("v", i))
	switch c.shape {
	case "above":
		return link + "/x", link, target
	case "to nothing":
		return link, link, target + "/new"
	}
	return link, link, target
}

// plant lets a first launch make the links.
func (y *yard) plant(t *testing.T, list []combination) {
	t.Helper()
	var args, owned []string
	for i, c := range list {
		_, link, target := y.path(i, c)
		y.user.Mkdir(t, filepath.Join(y.at("victim"), fmt.Sprint("v", i)), 0o755)
		if c.shape == "above" {
			y.user.Mkdir(t, target+"/x", 0o755)
		}
		if c.place == "owned" {
			owned = append(owned, target, link)
		} else {
			args = append(args, target, link)
		}
	}
	const script = `echo x >` + "\"$0-outside\"" + ` 2>/dev/null && exit 9; while [ $# -gt 0 ]; do ln -s "$1" "$2" || exit 1; shift 2; done`
	for _, planted := range [][]string{args, owned} {
		policy, env := y.first(&planted[0] == &owned[0])
		r := y.run(t, policy, env, "/", strings.ReplaceAll(script, "$0", y.at("victim/first")), planted...)
		if r.Code != 0 {
			t.Fatalf("the first launch: %v", r)
		}
	}
}

// second makes the second launch of a combination, and returns whether it
// started, and what was made or changed where the link leads.
func (y *yard) second(t *testing.T, i int, c combination) (started bool, made []string) {
	t.Helper()
	path, _, target := y.path(i, c)
	policy, env := object{"workspace": y.at("proj2"), "toolchainDirs": false}, map[string]string{"HOME": y.at("home")}
	if c.same {
		policy, env = y.first(c.place == "owned")
	}
	c.use.set(policy, env, path)
	dir := "/"
	if c.use.cwd {
		dir = path
	}
	into := filepath.Join(path, c.use.at)
	r := y.run(t, policy, env, dir, `mkdir -p "$1"; echo x >"$1/pwned"; echo x >"$2/pwned"; echo started`, into, target)
	base := filepath.Join(y.at("victim"), fmt.Sprint("v", i))
	err := filepath.WalkDir(base, func(p string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(base, p); rel != "." && (rel != "x" || c.shape != "above") {
			made = append(made, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(r.Stdout, "started"), made
}

// linksOfOthers is the heading about links in places that a launch cannot know.
const linksOfOthers = "Links that another policy let be made"

// TestPlantedLinks: what a first launch plants does not choose where a second
// one writes, neither the shim nor the program.
func TestPlantedLinks(t *testing.T) {
	launch.Need(t, launch.ABIAtLeast(3))
	list := combinations()
	if len(list) < 252 {
		t.Fatalf("only %d combinations", len(list))
	}
	broken, documented := map[string]bool{}, false
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		y := newYard(t, u)
		y.plant(t, list)
		ran, refused, unknown := 0, 0, 0
		names := map[string][]string{}
		for i, c := range list {
			started, made := y.second(t, i, c)
			switch {
			case len(made) == 0 && started:
				ran++
			case len(made) == 0:
				refused++
			case !c.known():
				documented = true
				unknown++
			default:
				name := c.use.name + " in the " + c.place
				if !c.same {
					name += " of another policy"
				}
				broken[name] = true
				names[name] = append(names[name], c.shape)
				if openLinks[name] == 0 {
					t.Errorf("%v: made %q", c, made)
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			t.Logf("BROKEN: %s: %s", name, strings.Join(names[name], ", "))
		}
		t.Logf("%d combinations: %d launches ran and wrote nothing there, %d were refused, %d are documented, %d are broken",
			len(list), ran, refused, unknown, len(list)-ran-refused-unknown)
	})
	if slices.Contains(headings(t), linksOfOthers) != documented {
		t.Errorf("SECURITY.md has the heading %q: %v, and links there are followed: %v", linksOfOthers, !documented, documented)
	}
	for _, name := range slices.Sorted(maps.Keys(openLinks)) {
		if !broken[name] {
			t.Errorf("%s is listed as open, and is not", name)
		}
	}
}

// TestPlantedDirectories is the control: with directories in place of links, every
// use lets the second launch write.
func TestPlantedDirectories(t *testing.T) {
	launch.Need(t, launch.ABIAtLeast(3))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		y := newYard(t, u)
		for _, c := range uses() {
			path := u.Mkdir(t, y.at("proj/"+strings.ReplaceAll(c.name, " ", "-")), 0o755)
			if c.at != "" {
				u.Mkdir(t, filepath.Join(path, c.at), 0o755)
			}
			policy, env := object{"workspace": y.at("proj2"), "toolchainDirs": false}, map[string]string{"HOME": y.at("home")}
			c.set(policy, env, path)
			dir := "/"
			if c.cwd {
				dir = path
			}
			r := y.run(t, policy, env, dir, `echo x >"$1/written"; echo started`, filepath.Join(path, c.at))
			entries, err := os.ReadDir(filepath.Join(path, c.at))
			if err != nil {
				t.Fatal(err)
			}
			if r.Stdout != "started\n" || len(entries) == 0 && c.name != "precreate" && c.name != "report" && c.name != "log" {
				t.Errorf("%s: nothing was written: %v", c.name, r)
			}
		}
	})
}
