package harness

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(m *testing.M) { launch.Main(m) }

const policyEnv = "PAPERCLIP_RUNNER_E2E_AGENT_FS_SANDBOX"

// A world is a machine on which the harness runs. In paths, "$W" is a directory of
// the harness's user, "$I" its instance, "$R" the state of runners in that, and
// "$B" is where the programs are, which the user of the tests owns.
type world struct {
	dir, programs string
	user          launch.User
}

func newWorld(t *testing.T, u launch.User) *world {
	t.Helper()
	launch.Need(t, launch.Landlock, launch.Program("node"), launch.Program("git"), launch.Program("bash"))
	w := &world{dir: u.Dir(t), programs: launch.Dir(t), user: u}
	for _, dir := range []string{
		"$W/home", "$W/control", "$W/repo", "$W/repo/tests", "$I", "$I/db", "$I/db/pg_wal", "$I/secrets", "$I/data", "$I/data/run-logs",
		"$I/data/provider-traces", "$I/data/backups", "$I/workspaces", "$I/workspaces/task", "$I/runtime", "$R", "$R/durable-sessions",
		"$R/durable-sessions/other", "$R/runner", "$R/runner/other", "$R/control-plane", "$R/opencode", "$R/opencode/other",
	} {
		u.Mkdir(t, w.at(dir), 0o755)
	}
	for _, file := range []string{
		"$W/repo/README", "$W/repo/tests/x", "$I/workspaces/task/x", "$I/db/PG_VERSION", "$I/db/pg_wal/000000010000000000000001", "$I/secrets/key",
		"$I/data/run-logs/other", "$I/data/provider-traces/other", "$I/data/backups/f", "$R/durable-sessions/other/state", "$R/runner/other/state",
		"$R/control-plane/state", "$R/opencode/other/state",
	} {
		text := "of others"
		if filepath.Base(file) == "x" {
			text = "marked\n"
		}
		u.Write(t, w.at(file), text, 0o644)
	}
	for _, repo := range []string{"$W/repo", "$I/workspaces/task"} {
		w.git(t, repo, "init", "-q", "-b", "main")
		w.git(t, repo, "add", ".")
		w.git(t, repo, "-c", "user.name=u", "-c", "user.email=u@example.com", "commit", "-q", "-m", "x")
		w.git(t, repo, "gc", "-q")
	}
	w.install(t)
	return w
}

func (w *world) at(text string) string {
	text = strings.ReplaceAll(text, "$R", "$I/runtime/paperclip-runner")
	text = strings.ReplaceAll(text, "$I", "$W/instance")
	text = strings.ReplaceAll(text, "$B", w.programs)
	return strings.ReplaceAll(text, "$W", w.dir)
}

func (w *world) all(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = w.at(text)
	}
	return out
}

func (w *world) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.at("$W/home"), "LC_ALL=C", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}
}

func (w *world) git(t *testing.T, dir string, args ...string) {
	t.Helper()
	r := launch.Cmd{Path: launch.Look(t, "git"), Args: append([]string{"git"}, args...), User: w.user, Dir: w.at(dir), Env: w.env()}.Run(t)
	if r.Code != 0 {
		t.Fatalf("git %q: %v", args, r)
	}
}

// install copies the programs of the harness, and puts a shim in front of one
// runner in a directory for PATH, and of another in place.
func (w *world) install(t *testing.T) {
	t.Helper()
	for _, dir := range []string{"$B/bin", "$B/in-place", "$B/lib"} {
		if err := os.Mkdir(w.at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, to := range []string{"$B/bin/paperclip-runnerd", "$B/in-place/paperclip-runnerd", "$B/lib/try.cjs", "$B/lib/agent.sh", "$B/lib/harness.mjs"} {
		data, err := os.ReadFile(filepath.Join("testdata", filepath.Base(to)))
		if err != nil {
			t.Fatal(err)
		}
		launch.WriteProgram(t, w.at(to), data)
	}
	_, installer := launch.Binaries(t)
	for _, place := range [][]string{{"--dir", w.at("$B/shims"), "paperclip-runnerd"}, {"--in-place", w.at("$B/in-place/paperclip-runnerd")}} {
		args := append([]string{
			"install-shim", "install", "--policy-env", policyEnv, "--report", w.at("$W/control/launches.jsonl"), "--log", w.at("$W/control/log"),
		}, place...)
		path := w.at("PATH=$B/shims:$B/bin:") + os.Getenv("PATH")
		r := launch.Cmd{Path: installer, Args: args, User: launch.Current(), Env: []string{path, "HOME=" + launch.Nowhere}}.Run(t)
		if r.Code != 0 || r.Stderr != "" {
			t.Fatalf("%q: %v", args, r)
		}
	}
}

// A form is how a launcher names the runner.
type form struct {
	Name    string `json:"name"`
	Command string `json:"command"`
	Path    string `json:"path"` // PATH of the launch
}

func (w *world) forms() []form {
	path := os.Getenv("PATH")
	return []form{
		{"name", "paperclip-runnerd", w.at("$B/shims:$B/bin:") + path},
		{"absolute", w.at("$B/in-place/paperclip-runnerd"), path},
	}
}

// A launched is what the harness says of one launch.
type launched struct {
	Session, Way, Form string
	Held               bool
	Code               any
	Stderr             string
	PID                int

	SamePID, SameParent, SameEnv, SameCwd bool
	// VariableGone: the runner's /proc/self/environ does not have its name.
	VariableGone bool
	// Outlived: the background process made its tries when its parents had ended.
	Outlived bool
	// Answered: messages went both ways over the channel.
	Answered bool
	// Tries has the outcomes of each who tried.
	Tries struct{ Runner, Shell, Node, Background []string }
	Git   []string
}

// hidden are the paths that the harness names.
var hidden = []string{"$W/repo/tests", "$W/repo/.git", "$W/control"}

// socket is where the database listens.
const socket = "$I/db/.s.PGSQL.5432"

// run has the harness play a scenario.
func (w *world) run(t *testing.T, scenario string, rows []row, late ...string) []launched {
	t.Helper()
	type try struct {
		Op   string `json:"op"`
		Path string `json:"path"`
	}
	type show struct {
		Dir  string `json:"dir"`
		Args string `json:"args"`
	}
	var tries []try
	for _, r := range rows {
		tries = append(tries, try{r.op, w.at(r.path)})
	}
	var shows []show
	for _, g := range gitRows {
		shows = append(shows, show{w.at(g.dir), g.args})
	}
	plan, err := json.Marshal(map[string]any{
		"scenario": scenario, "hidden": w.all(hidden), "instance": w.at("$I"), "workspace": w.at("$I/workspaces/task"), "lib": w.at("$B/lib"),
		"socket": w.at(socket), "forms": w.forms(), "tries": tries, "git": shows, "late": w.all(late),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.user.Write(t, w.at("$W/plan.json"), string(plan), 0o644)
	r := launch.Cmd{
		Path: launch.Look(t, "node"), Args: []string{"node", w.at("$B/lib/harness.mjs"), w.at("$W/plan.json")}, User: w.user, Env: w.env(),
		Timeout: patience,
	}.Run(t)
	var out []launched
	if err := json.Unmarshal([]byte(r.Stdout), &out); err != nil || r.Code != 0 || r.Stderr != "" {
		t.Fatalf("the harness (%v): %v", err, r)
	}
	return out
}
