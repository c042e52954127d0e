package hiding

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(m *testing.M) { launch.Main(m) }

const secret = "the hidden text"

// witness builds the program that tries operations, once, beside the shim.
func witness(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(filepath.Dir(launch.Shim(tb)), "witness")
	buildWitness.Do(func() {
		cmd := exec.Command("go", "build", "-o", path, "./testdata/witness")
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

// A world is the directory of one launch, "$W" in paths and policies:
//
//	secret/f         the hidden text
//	secret/own/f     what an exposure opens
//	secret/p         an executable
//	secret/sub/      an empty directory
//	secret/link      a symlink to f
//	work/f work/p work/sub/
//	file             a file beside secret
//	report/          where the report goes, not named by any test
type world struct {
	dir  string
	user launch.User
	shim string
	// env is the launch's environment, nil for the usual one.
	env []string
	// cwd is the launch's current directory, "" for /.
	cwd   string
	setup *launch.Setup
	extra []*os.File
}

func newWorld(t *testing.T, u launch.User) *world {
	t.Helper()
	w := &world{dir: u.Dir(t), user: u}
	for _, dir := range []string{"secret", "secret/own", "secret/sub", "work", "work/sub", "report"} {
		u.Mkdir(t, w.at("$W/"+dir), 0o755)
	}
	program, err := os.ReadFile(launch.Look(t, "true"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"secret", "work"} {
		u.Write(t, w.at("$W/"+dir+"/f"), secret, 0o644)
		u.Own(t, launch.WriteProgram(t, w.at("$W/"+dir+"/p"), program))
	}
	u.Write(t, w.at("$W/secret/own/f"), "own", 0o644)
	u.Write(t, w.at("$W/file"), "beside", 0o644)
	w.symlink(t, "f", "$W/secret/link")
	w.shim = launch.Install(t, launch.Dir(t), "witness", launch.Record{Real: witness(t)})
	return w
}

// at puts the world's directory in the place of "$W".
func (w *world) at(text string) string { return strings.ReplaceAll(text, "$W", w.dir) }

func (w *world) symlink(t *testing.T, text, path string) {
	t.Helper()
	if err := os.Symlink(w.at(text), w.at(path)); err != nil {
		t.Fatal(err)
	}
	w.user.Own(t, w.at(path))
}

func (w *world) mkdir(t *testing.T, path string) { t.Helper(); w.user.Mkdir(t, w.at(path), 0o755) }

func (w *world) write(t *testing.T, path, text string) {
	t.Helper()
	w.user.Write(t, w.at(path), text, 0o644)
}

// A try is one operation of the witness, see testdata/witness.
type try struct{ Op, Path, To string }

type result struct{ Errno, Data string }

func (w *world) command(t *testing.T, policy any, tries []try) launch.Cmd {
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
		Path: w.shim, Args: []string{"witness", string(arg)}, User: w.user, Policy: policy,
		Env: w.env, Dir: w.at(w.cwd), Setup: w.setup, Extra: w.extra,
	}
}

// policy makes the JSON of a policy that reports into the world.
func (w *world) policy(t *testing.T, text string) string {
	t.Helper()
	var p map[string]any
	if err := json.Unmarshal([]byte(w.at(text)), &p); err != nil {
		t.Fatalf("policy %s: %v", text, err)
	}
	p["report"] = w.at("$W/report/r")
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// free makes the tries without a policy.
func (w *world) free(t *testing.T, tries ...try) []result {
	t.Helper()
	return w.results(t, w.command(t, nil, tries).Run(t), len(tries))
}

// held makes the tries under a policy and returns the launch's report too.
func (w *world) held(t *testing.T, policy string, tries ...try) ([]result, report.Report) {
	t.Helper()
	r := w.command(t, w.policy(t, policy), tries).Run(t)
	out := w.results(t, r, len(tries))
	if r.Stderr != "" {
		t.Logf("stderr: %s", r.Stderr)
	}
	return out, w.report(t)
}

func (w *world) results(t *testing.T, r launch.Result, want int) []result {
	t.Helper()
	var out []result
	if err := json.Unmarshal([]byte(r.Stdout), &out); err != nil || r.Code != 0 || len(out) != want {
		t.Fatalf("the witness did not answer (%v): %v", err, r)
	}
	return out
}

// report returns the last launch's report.
func (w *world) report(t *testing.T) report.Report {
	t.Helper()
	rs := launch.Reports(t, w.at("$W/report/r"))
	if len(rs) == 0 {
		t.Fatal("no report was written")
	}
	return rs[len(rs)-1]
}

// refused asserts that a policy ends the launch with 125 before the program
// starts, and that stderr is one line (and a hint) that holds what is wanted.
func (w *world) refused(t *testing.T, policy string, want ...string) {
	t.Helper()
	r := w.command(t, w.policy(t, policy), []try{{Op: "stat", Path: "/"}}).Run(t)
	if r.Code != 125 || r.Stdout != "" {
		t.Fatalf("want exit 125 and no program, have %v", r)
	}
	line, rest, _ := strings.Cut(r.Stderr, "\n")
	if rest != "" && (!strings.HasPrefix(rest, "sandbox-exec-shim: hint: ") || strings.Count(rest, "\n") != 1) {
		t.Errorf("more than one line and a hint: %q", r.Stderr)
	}
	for _, text := range want {
		if !strings.Contains(line, w.at(text)) {
			t.Errorf("stderr %q does not say %q", line, w.at(text))
		}
	}
}

// A row is an operation with its outcome without a policy and with it.
type row struct {
	op, path, to string
	free, held   string
}

const (
	ok     = "ok"
	denied = "EACCES"
)

// table makes the rows twice, each time in a new world: without a policy and
// with one. The launch's report comes back.
func table(t *testing.T, u launch.User, policy string, prepare func(t *testing.T, w *world), rows []row) report.Report {
	t.Helper()
	tries := make([]try, len(rows))
	for i, r := range rows {
		tries[i] = try{r.op, r.path, r.to}
	}
	worlds := [2]*world{newWorld(t, u), newWorld(t, u)}
	for _, w := range worlds {
		if prepare != nil {
			prepare(t, w)
		}
	}
	free := worlds[0].free(t, tries...)
	held, report := worlds[1].held(t, policy, tries...)
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

// limits returns the reasons that a report gives for what.
func limits(r report.Report, what string) []string {
	var out []string
	for _, g := range r.NotEnforced {
		if g.What == what {
			out = append(out, g.Path+": "+g.Why)
		}
	}
	return out
}

// wantLimit asserts that the report names a limit.
func wantLimit(t *testing.T, r report.Report, what string) {
	t.Helper()
	for _, kind := range launch.NotEnforced(r, what) {
		if kind == "limit" {
			return
		}
	}
	t.Errorf("the report does not list the limit %q: %+v", what, r.NotEnforced)
}

func loader() string {
	if runtime.GOARCH == "arm64" {
		return "/lib/ld-linux-aarch64.so.1"
	}
	return "/lib64/ld-linux-x86-64.so.2"
}

// awaitFile waits for a file that the launch makes.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	defer f.Close()
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(path), unix.IN_CREATE); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	for {
		if _, err := os.Lstat(path); err == nil {
			return
		}
		if err := f.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Read(buf); err != nil {
			t.Fatalf("the launch did not make %s: %v", path, err)
		}
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
