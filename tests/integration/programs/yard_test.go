package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(m *testing.M) { launch.Main(m) }

// A place is where a directory is hidden, relative to the yard, and which
// directory with a purpose that freezes.
type place struct {
	name   string
	hidden string
	frozen string
}

// places: beside is the good one, the others stand directly in the directory
// of their name.
var places = []place{
	{"beside", "x/graders", ""},
	{"home", "home/.ssh", "home"},
	{"temp", "tmp/secret", "tmp"},
	{"work", "x/work/graders", "x/work"},
}

// A yard is the directory of one run:
//
//	home/ tmp/ report/
//	x/work/             the current directory
//	x/graders/          and the place that is hidden
type yard struct {
	dir   string
	user  launch.User
	tools tools
}

func newYard(t *testing.T, u launch.User, tl tools, p place) *yard {
	t.Helper()
	y := &yard{dir: u.Dir(t), user: u, tools: tl}
	for _, dir := range []string{"home", "tmp", "report", "x", "x/work"} {
		u.Mkdir(t, y.at(dir), 0o755)
	}
	for _, dir := range []string{places[0].hidden, p.hidden} {
		if err := os.MkdirAll(y.at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		u.Own(t, y.at(dir))
	}
	u.Write(t, y.at(p.hidden+"/f"), "hidden", 0o644)
	return y
}

func (y *yard) at(path string) string { return filepath.Join(y.dir, path) }

func (y *yard) command(script string) launch.Cmd {
	return launch.Cmd{
		Args: []string{"bash", "-c", script},
		Dir:  y.at("x/work"),
		User: y.user,
		Env: []string{
			"HOME=" + y.at("home"), "TMPDIR=" + y.at("tmp"), "LC_ALL=C", "TERM=dumb", "USER=u",
			"GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=e@localhost", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=e@localhost",
			"GIT_CONFIG_NOSYSTEM=1",
			"GOCACHE=" + y.tools.goCache, "GOPROXY=off", "GOFLAGS=", "GOTOOLCHAIN=local", "GOTELEMETRY=off", "CGO_ENABLED=0",
			"npm_config_update_notifier=false", "npm_config_audit=false", "npm_config_fund=false", "npm_config_offline=true",
		},
	}
}

// free runs a script in the bash that is there.
func (y *yard) free(t *testing.T, script string) outcome {
	t.Helper()
	c := y.command(script)
	c.Path = bash
	c.Env = append(c.Env, "PATH="+y.tools.path)
	return y.outcome(c.Run(t))
}

// held runs a script with the shim in the place of bash, and p hidden.
func (y *yard) held(t *testing.T, script string, p place) (outcome, report.Report) {
	t.Helper()
	r := y.launch(t, script, map[string]any{"hidden": []string{y.at(p.hidden)}, "frozen": "allow"})
	return y.outcome(r), launch.Report(t, y.at("report/r"))
}

func (y *yard) launch(t *testing.T, script string, policy map[string]any) launch.Result {
	t.Helper()
	policy["version"], policy["report"] = 1, y.at("report/r")
	c := y.command(script)
	c.Path = filepath.Join(y.tools.shims, "bash")
	c.Env = append(c.Env, "PATH="+y.tools.shims+":"+y.tools.path)
	c.Policy = policy
	return c.Run(t)
}

const bash = "/bin/bash"

// An outcome is how a script ended, without what is new in each run.
type outcome struct {
	Code           int
	Signal         int
	Stdout, Stderr string
}

var number = regexp.MustCompile(`[0-9]+`)

func (y *yard) outcome(r launch.Result) outcome {
	plain := strings.NewReplacer(y.dir, "$YARD", filepath.Join(y.tools.shims, "bash"), "bash", bash, "bash")
	return outcome{
		Code: r.Code, Signal: int(r.Signal), Stdout: plain.Replace(r.Stdout),
		Stderr: number.ReplaceAllString(plain.Replace(r.Stderr), "N"),
	}
}

// tools are the programs that a user can reach.
type tools struct {
	shims   string // the directory of the shim named bash
	path    string
	goCache string
	// missing says why a program cannot be used.
	missing map[string]string
}

func findTools(t *testing.T, u launch.User) tools {
	t.Helper()
	tl := tools{shims: launch.Dir(t), missing: map[string]string{}}
	launch.Install(t, tl.shims, "bash", launch.Record{Real: bash})
	dirs := []string{"/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"}
	if root, err := exec.Command("go", "env", "GOROOT").Output(); err == nil {
		if dir := strings.TrimSpace(string(root)); reachable(dir, u) {
			dirs = slices.Insert(dirs, 0, dir+"/bin")
		} else {
			tl.missing["go"] = dir + " is closed to " + u.Name
		}
	}
	if _, err := os.Stat("/usr/bin/cargo"); err != nil {
		dir, why := rust(t, u)
		if why != "" {
			tl.missing["cargo"] = why
		} else {
			dirs = slices.Insert(dirs, 0, dir+"/bin")
		}
	}
	tl.path = strings.Join(dirs, ":")
	for _, c := range checks {
		if c.needs != "" && tl.missing[c.needs] == "" && !slices.ContainsFunc(dirs, func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, c.needs))
			return err == nil
		}) {
			tl.missing[c.needs] = "not installed"
		}
	}
	return tl
}

// reachable reports whether a user may pass through all directories to dir.
func reachable(dir string, u launch.User) bool {
	if u.UID == 0 {
		return true
	}
	for ; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode()&0o005 != 0o005 {
			return false
		}
		if dir == "/" {
			return true
		}
	}
}

// rust finds the toolchain behind rustup's proxies, which would look for it in
// HOME. One that the user cannot reach is linked to where he can.
func rust(t *testing.T, u launch.User) (dir, why string) {
	t.Helper()
	out, err := exec.Command("rustc", "--print", "sysroot").Output()
	if err != nil {
		return "", "not installed"
	}
	dir = strings.TrimSpace(string(out))
	if reachable(dir, u) {
		return dir, ""
	}
	link := filepath.Join(launch.Dir(t), "rust")
	if err := os.Mkdir(link, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-al", dir+"/bin", dir+"/lib", link).CombinedOutput(); err != nil {
		return "", dir + " is closed to " + u.Name + " and cannot be linked: " + string(out)
	}
	return link, ""
}

// warmCache returns a build cache of Go that everybody may write, with what
// the checks need of the standard library: it is compiled once.
func warmCache(t *testing.T) string {
	t.Helper()
	cache := launch.Dir(t)
	cmd := exec.Command("sh", "-ec", "cd "+t.TempDir()+"; "+goModule+"go vet . && go test . && go build -o prog .; chmod -R a+rwX "+cache)
	cmd.Env = append(os.Environ(), "GOCACHE="+cache, "GOFLAGS=", "GOPROXY=off", "CGO_ENABLED=0", "GOTOOLCHAIN=local")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return cache
}
