package runscope

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(m *testing.M) { launch.Main(m) }

const (
	ok     = "ok"
	denied = "EACCES"

	secret = "of another session"

	// policyEnv is the variable that the first harness sets.
	policyEnv = "PAPERCLIP_RUNNER_E2E_AGENT_FS_SANDBOX"
	openCode  = "PAPERCLIP_OPENCODE_RUNTIME_DIR="
	trace     = "PAPERCLIP_PROVIDER_TRACE_PATH="
)

// witness builds the program that tries operations, once.
func witness(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(filepath.Dir(launch.Shim(tb)), "witness")
	buildWitness.Do(func() {
		cmd := exec.Command("go", "build", "-o", path, "../hiding/testdata/witness")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			errWitness = fmt.Errorf("build the witness: %w\n%s", err, out)
		}
	})
	if errWitness != nil {
		tb.Fatal(errWitness)
	}
	return path
}

var (
	buildWitness sync.Once
	errWitness   error
)

// A world holds an instance of the harness, "$I" in paths, with "$R" its
// directory of runner state, and "$W" the directory around it. Other sessions
// have left their state there.
type world struct {
	dir  string
	user launch.User
	shim string
	// name is argv[0] and the name of the shim's file.
	name string
	// policy is what the variable holds; "" means the first harness's.
	policy string
	env    []string
}

func newWorld(t *testing.T, u launch.User) *world {
	t.Helper()
	launch.Need(t, launch.Landlock)
	w := &world{dir: u.Dir(t), user: u}
	for _, dir := range []string{
		"$W/report", "$W/graders", "$I", "$I/data", "$I/data/run-logs", "$I/data/provider-traces", "$I/data/backups",
		"$I/db", "$I/db/pg_wal", "$I/secrets", "$I/runtime", "$R", "$R/durable-sessions", "$R/durable-sessions/other", "$R/runner",
		"$R/runner/other", "$R/control-plane", "$R/opencode", "$R/opencode/other",
	} {
		u.Mkdir(t, w.at(dir), 0o755)
	}
	for _, file := range []string{
		"$W/graders/f", "$I/data/run-logs/f", "$I/data/provider-traces/other", "$I/data/backups/f", "$I/db/f", "$I/secrets/f",
		"$R/durable-sessions/other/f", "$R/runner/other/f", "$R/control-plane/f", "$R/opencode/other/f",
	} {
		u.Write(t, w.at(file), secret, 0o644)
	}
	w.install(t, "paperclip-runnerd", witness(t))
	return w
}

// install puts a shim in front of a program under a name.
func (w *world) install(t *testing.T, name, real string) {
	t.Helper()
	w.name = name
	w.shim = launch.Install(t, launch.Dir(t), name, launch.Record{Real: real, PolicyEnv: policyEnv, Report: w.at("$W/report/r")})
}

func (w *world) at(text string) string {
	text = strings.ReplaceAll(text, "$R", "$I/runtime/paperclip-runner")
	text = strings.ReplaceAll(text, "$I", "$W/instance")
	return strings.ReplaceAll(text, "$W", w.dir)
}

func (w *world) all(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = w.at(text)
	}
	return out
}

// own are the arguments of the session that the tests speak of.
func own() []string {
	return []string{"--state-dir", "$R/durable-sessions/own-scope/runner", "--session-id", "own-session"}
}

// A try is one operation of the witness.
type try struct{ Op, Path, To string }

type result struct{ Errno, Data string }

// command is a launch of the witness with further arguments.
func (w *world) command(t *testing.T, policy any, args []string, tries []try) launch.Cmd {
	t.Helper()
	list := make([]try, len(tries))
	for i, y := range tries {
		list[i] = try{y.Op, w.at(y.Path), w.at(y.To)}
	}
	arg, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return launch.Cmd{
		Path: w.shim, Args: append([]string{w.name, string(arg)}, w.all(args)...), User: w.user, PolicyEnv: policyEnv,
		Policy: policy, Env: append(launch.DefaultEnv[:len(launch.DefaultEnv):len(launch.DefaultEnv)], w.all(w.env)...),
	}
}

// harness is the policy as the first harness sends it.
const harness = `{"hidden":["$W/graders"],"required":true,"instanceRoot":"$I","x":1}`

func (w *world) text() string {
	if w.policy == "" {
		return w.at(harness)
	}
	return w.at(w.policy)
}

// held makes the tries under the policy.
func (w *world) held(t *testing.T, args []string, tries ...try) ([]result, report.Report) {
	t.Helper()
	r := w.command(t, w.text(), args, tries).Run(t)
	return results(t, r, len(tries)), w.report(t)
}

// free makes the tries without a policy.
func (w *world) free(t *testing.T, tries ...try) []result {
	t.Helper()
	return results(t, w.command(t, nil, nil, tries).Run(t), len(tries))
}

func results(t *testing.T, r launch.Result, want int) []result {
	t.Helper()
	var out []result
	if err := json.Unmarshal([]byte(r.Stdout), &out); err != nil || r.Code != 0 || len(out) != want {
		t.Fatalf("the witness did not answer (%v): %v", err, r)
	}
	return out
}

func (w *world) report(t *testing.T) report.Report {
	t.Helper()
	rs := launch.Reports(t, w.at("$W/report/r"))
	if len(rs) == 0 {
		t.Fatal("no report was written")
	}
	return rs[len(rs)-1]
}

// refused asserts that the launch ends with 125 before the program starts.
func (w *world) refused(t *testing.T, args []string, want ...string) {
	t.Helper()
	r := w.command(t, w.text(), args, []try{{Op: "stat", Path: "/"}}).Run(t)
	if r.Code != 125 || r.Stdout != "" {
		t.Fatalf("want exit 125 and no program, have %v", r)
	}
	line, rest, _ := strings.Cut(r.Stderr, "\n")
	if rest != "" && !strings.HasPrefix(rest, "sandbox-exec-shim: hint: ") {
		t.Errorf("more than one line and a hint: %q", r.Stderr)
	}
	for _, text := range want {
		if !strings.Contains(line, w.at(text)) {
			t.Errorf("stderr %q does not say %q", line, w.at(text))
		}
	}
}

// A row is an operation with its outcome without and with a policy.
type row struct {
	op, path, to string
	free, held   string
}

// table makes the rows under the policy, and without one afterwards in a world
// of its own, which the same policy has prepared.
func table(t *testing.T, u launch.User, args []string, rows []row, prepare func(*testing.T, *world)) report.Report {
	t.Helper()
	worlds := [2]*world{newWorld(t, u), newWorld(t, u)}
	tries := make([]try, len(rows))
	for i, r := range rows {
		tries[i] = try{r.op, r.path, r.to}
	}
	for _, w := range worlds {
		if prepare != nil {
			prepare(t, w)
		}
	}
	worlds[0].held(t, args)
	free := worlds[0].free(t, tries...)
	held, report := worlds[1].held(t, args, tries...)
	for i, r := range rows {
		if free[i].Errno != r.free {
			t.Errorf("%s %s %s: without a policy %s (%q), want %s", r.op, r.path, r.to, free[i].Errno, free[i].Data, r.free)
		}
		if held[i].Errno != r.held {
			t.Errorf("%s %s %s: with the policy %s (%q), want %s", r.op, r.path, r.to, held[i].Errno, held[i].Data, r.held)
		}
	}
	return report
}

// exposed asserts which places the launch opened.
func (w *world) exposed(t *testing.T, r report.Report, want ...string) {
	t.Helper()
	if diff := cmp.Diff(w.all(want), append([]string{}, r.Exposed...)); diff != "" {
		t.Errorf("exposed (-want +got)\n%s", diff)
	}
}
