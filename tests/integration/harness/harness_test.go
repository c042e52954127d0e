package harness

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// patience is for one run of the harness, which starts some 150 processes.
const patience = 8 * time.Minute

const (
	ok     = "ok"
	denied = "EACCES"
	// reported is the outcome that the launch report announces.
	reported = "as reported"
	// outside is what git exits with where it sees no repository.
	outside = "128"
	marked  = "0 marked"
)

// A row is a try with its outcome without and with the variable. "$own" is the
// session, "$other" another one.
type row struct {
	op, path   string
	free, held string
}

var rows = []row{
	{"read", "$W/repo/tests/x", ok, denied},
	{"list", "$W/repo/tests", ok, denied},
	{"read", "$W/repo/.git/HEAD", ok, denied},
	{"list", "$W/repo/.git/objects/pack", ok, denied},
	{"read", "$W/repo/README", ok, ok},
	{"read", "$W/control/launches.jsonl", ok, denied},
	{"read", "/proc/$harness/environ", ok, denied},

	{"read", "$I/db/PG_VERSION", ok, denied},
	{"write", "$I/db/PG_VERSION", ok, denied},
	{"list", "$I/db/pg_wal", ok, denied},
	{"read", "$I/db/pg_wal/000000010000000000000001", ok, denied},
	{"write", "$I/db/pg_wal/000000010000000000000001", ok, denied},
	{"connect", socket, ok, reported},
	{"read", "$I/secrets/key", ok, denied},
	{"read", "$I/data/run-logs/other", ok, denied},
	{"read", "$I/data/backups/f", ok, denied},
	{"read", "$R/control-plane/state", ok, denied},
	{"read", "$R/runner/other/state", ok, denied},

	{"list", "$R/durable-sessions", ok, denied},
	{"list", "$R/durable-sessions/$other", ok, denied},
	{"read", "$R/durable-sessions/$other/state", ok, denied},
	{"write", "$R/durable-sessions/$other/state", ok, denied},
	{"create", "$R/durable-sessions/$other/new", ok, denied},
	{"read", "$R/opencode/$other/state", ok, denied},
	{"read", "$I/data/provider-traces/$other", ok, denied},
	{"write", "$I/data/provider-traces/$other", ok, denied},

	{"list", "$R/durable-sessions/$own", ok, ok},
	{"read", "$R/durable-sessions/$own/state", ok, ok},
	{"write", "$R/durable-sessions/$own/state", ok, ok},
	{"create", "$R/durable-sessions/$own/runner/new", ok, ok},
	{"write", "$R/opencode/$own/state", ok, ok},
	{"create", "$R/opencode/$own/new", ok, ok},
	{"read", "$I/data/provider-traces/$own", ok, ok},
	{"write", "$I/data/provider-traces/$own", ok, ok},
	{"create", "$R/acpx/new-$own", ok, ok},
	{"create", "$I/skills/new-$own", ok, ok},
	{"create", "$I/workspaces/task/new-$own", ok, ok},
	{"create", "/tmp/shim-harness-$own", ok, ok},
	{"create", "$I/new-$own", ok, denied}, // frozen
}

var gitRows = []struct {
	dir, args  string
	free, held string
}{
	{"$W/repo", "show HEAD:tests/x", marked, outside},
	{"$W/repo", "cat-file -p HEAD:tests/x", marked, outside},
	{"$W/repo", "log -p", marked, outside},
	{"$I/workspaces/task", "show HEAD:x", marked, marked},
}

// runHidden are the places that the run scope adds.
var runHidden = []string{
	"$R/durable-sessions", "$R/runner", "$R/control-plane", "$R/opencode", "$I/data/run-logs", "$I/data/provider-traces", "$I/data/backups",
	"$I/db", "$I/secrets",
}

// TestEveryFunctionOfNodeIsConfined: every function of node:child_process, by name and by absolute path.
func TestEveryFunctionOfNodeIsConfined(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		got := w.run(t, "everyWay", rows)
		w.check(t, got, rows, []string{"spawn", "spawnSync", "execFile", "execFileSync", "promisified"})
	})
}

// TestTwoSessionsSeeOnlyTheirOwn: two runners are alive at once, and each is the other's other
// session. When both are ready, the server adds files to what they share.
func TestTwoSessionsSeeOnlyTheirOwn(t *testing.T) {
	shared := []string{
		"$R/acpx/late", "$I/companies/late", "$I/projects/late/f", "$I/workspaces/late/f", "$I/runtime-context-assets/late", "$I/skills/late/f",
		"$I/runtime/provider-packs/late",
	}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		rows := slices.Clone(rows)
		for _, path := range shared {
			rows = append(rows, row{"read", path, ok, ok})
		}
		rows = append(rows, row{"read", "$I/late/f", ok, denied}) // frozen
		got := w.run(t, "twoSessions", rows, append(shared, "$I/late/f")...)
		w.check(t, got, rows, []string{"spawn", "spawn"})
	})
}

// TestHarnessTalksToItsRunner: the harness and the runner talk over Node's channel.
func TestHarnessTalksToItsRunner(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		got := w.run(t, "channel", rows)
		w.check(t, got, rows, []string{"ipc"})
		for _, l := range got {
			if !l.Answered {
				t.Errorf("%s: no answer over the channel", l.Session)
			}
		}
	})
}

// check compares launches with the rows, and with what the shims wrote down. There
// must be one launch for each way and form, with the variable and without.
func (w *world) check(t *testing.T, got []launched, rows []row, ways []string) {
	t.Helper()
	var want, have []string
	for _, f := range w.forms() {
		for _, way := range ways {
			want = append(want, way+" "+f.Name+" held", way+" "+f.Name+" free")
		}
	}
	reports := launch.Reports(t, w.at("$W/control/launches.jsonl"))
	log, err := os.ReadFile(w.at("$W/control/log"))
	if err != nil {
		t.Fatal(err)
	}
	lines := launch.LogLines(t, log)
	held := 0
	for _, l := range got {
		name := l.Way + " " + l.Form + " free"
		if l.Held {
			name = l.Way + " " + l.Form + " held"
			held++
		}
		have = append(have, name)
		t.Run(l.Session, func(t *testing.T) {
			if l.Code != 0.0 || l.Stderr != "" {
				t.Fatalf("exit %v, stderr %q", l.Code, l.Stderr)
			}
			if !l.SamePID || !l.SameParent || !l.SameEnv || !l.SameCwd || !l.VariableGone || !l.Outlived {
				t.Errorf("not as it was started: %+v", l)
			}
			ofPID := func(r report.Report) bool { return r.PID == l.PID }
			if !l.Held {
				if slices.ContainsFunc(reports, ofPID) {
					t.Error("a launch without the variable has a report")
				}
				w.outcomes(t, l, rows, "")
				return
			}
			i := slices.IndexFunc(reports, ofPID)
			if i < 0 {
				t.Fatalf("no report of pid %d", l.PID)
			}
			w.outcomes(t, l, rows, announced(t, reports[i]))
			w.written(t, l, reports[i], lines)
		})
	}
	slices.Sort(want)
	slices.Sort(have)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("launches (-want +got)\n%s", diff)
	}
	if len(reports) != held || len(lines) != held {
		t.Errorf("%d launches with the variable, %d reports, %d lines of the log", held, len(reports), len(lines))
	}
}

// outcomes compares what each process of a launch could do. connect is the outcome
// to expect of a unix socket in a hidden directory.
func (w *world) outcomes(t *testing.T, l launched, rows []row, connect string) {
	t.Helper()
	for _, who := range []struct {
		name string
		got  []string
	}{{"runner", l.Tries.Runner}, {"shell", l.Tries.Shell}, {"node", l.Tries.Node}, {"background", l.Tries.Background}} {
		if len(who.got) != len(rows) {
			t.Errorf("%s: %d outcomes of %d: %q", who.name, len(who.got), len(rows), who.got)
			continue
		}
		for i, r := range rows {
			want := r.free
			if l.Held {
				want = r.held
			}
			if want == reported {
				want = connect
			}
			if r.op == "connect" && who.name == "shell" {
				want = "-" // bash connects to no unix socket
			}
			if who.got[i] != want {
				t.Errorf("%s: %s %s: %s, want %s", who.name, r.op, r.path, who.got[i], want)
			}
		}
	}
	if len(l.Git) != len(gitRows) {
		t.Fatalf("git: %q", l.Git)
	}
	for i, g := range gitRows {
		want := g.free
		if l.Held {
			want = g.held
		}
		if l.Git[i] != want {
			t.Errorf("git -C %s %s: %s, want %s", g.dir, g.args, l.Git[i], want)
		}
	}
}

// announced returns what becomes of a connection to a unix socket at a hidden path,
// by the report: Landlock denies it from ABI 9 on.
func announced(t *testing.T, r report.Report) string {
	t.Helper()
	enforced, gaps := launch.Enforced(r, "unix-socket"), launch.NotEnforced(r, "unix-socket")
	if r.Landlock == nil || enforced != (r.Landlock.ABI >= 9) {
		t.Errorf("unix-socket enforced: %v, with %+v", enforced, r.Landlock)
	}
	switch {
	case enforced && len(gaps) == 0:
		return denied
	case !enforced && slices.Equal(gaps, []string{"limit"}):
		return ok
	}
	t.Fatalf("the report does not say what becomes of unix sockets: enforced %+v, not enforced %+v", r.Enforced, r.NotEnforced)
	return ""
}

// written compares the report and the log's line of a launch with what it was.
func (w *world) written(t *testing.T, l launched, r report.Report, lines []launch.LogLine) {
	t.Helper()
	exposed := w.all([]string{"$R/durable-sessions/" + l.Session, "$R/opencode/" + l.Session, "$I/data/provider-traces/" + l.Session})
	if r.Outcome != "exec" || r.Mechanism != "landlock" || r.Error != "" {
		t.Errorf("report: %+v", r)
	}
	for _, gap := range r.NotEnforced {
		if !gap.Limit {
			t.Errorf("not enforced: %+v", gap)
		}
	}
	if diff := cmp.Diff(w.all(append(slices.Clone(hidden), runHidden...)), r.Hidden); diff != "" {
		t.Errorf("hidden in the report (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(exposed, r.Exposed); diff != "" {
		t.Errorf("exposed in the report (-want +got)\n%s", diff)
	}
	want := launch.LogLine{PID: l.PID, RunHidden: w.all(runHidden), RunExposed: exposed}
	i := slices.IndexFunc(lines, func(line launch.LogLine) bool { return line.PID == l.PID })
	if i < 0 {
		t.Fatalf("no line of the log about pid %d", l.PID)
	}
	if diff := cmp.Diff(want, lines[i]); diff != "" {
		t.Errorf("log (-want +got)\n%s", diff)
	}
}
