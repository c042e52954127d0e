package runscope

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// bystander is a process of the user outside of the launch, such as the harness.
func (w *world) bystander(t *testing.T) int {
	t.Helper()
	p := launch.Cmd{
		Path: witness(t), Args: []string{"witness", `[{"Op":"await","Path":"` + w.at("$W/never") + `"}]`}, User: w.user,
		Env: []string{"HARNESS_SECRET=1"},
	}.Start(t)
	t.Cleanup(func() {
		p.Kill(t, syscall.SIGKILL)
		p.Wait(t)
	})
	return p.PID
}

// TestCase39_SessionSeesOnlyItsOwn: what a session is denied and what it is allowed.
func TestCase39_SessionSeesOnlyItsOwn(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		var pids [2]int
		n := 0
		rows := []row{
			{"read", "$R/durable-sessions/other/f", "", ok, denied},
			{"list", "$R/durable-sessions", "", ok, denied},
			{"read", "$R/runner/other/f", "", ok, denied},
			{"read", "$R/control-plane/f", "", ok, denied},
			{"read", "$R/opencode/other/f", "", ok, denied},
			{"read", "$I/data/run-logs/f", "", ok, denied},
			{"list", "$I/db/pg_wal", "", ok, denied},
			{"read", "$I/secrets/f", "", ok, denied},
			{"read", "$I/data/provider-traces/other", "", ok, denied},
			{"read", "$W/graders/f", "", ok, denied},
			{"read", "$W/environ", "", ok, denied},

			{"create", "$R/durable-sessions/own-scope/f", "", ok, ok},
			{"written", "$R/durable-sessions/own-scope/f", "", ok, ok},
			{"read", "$R/durable-sessions/own-scope/f", "", ok, ok},
			{"unlink", "$R/durable-sessions/own-scope/f", "", ok, ok},
			{"create", "$R/opencode/own-session/f", "", ok, ok},
			{"read", "$R/opencode/own-session/f", "", ok, ok},
			{"unlink", "$R/opencode/own-session/f", "", ok, ok},
			{"create", "$R/acpx/f", "", ok, ok},
			{"read", "$R/acpx/f", "", ok, ok},
			{"unlink", "$R/acpx/f", "", ok, ok},
			{"written", "$I/data/provider-traces/own", "", ok, ok},
			{"read", "$I/data/provider-traces/own", "", ok, ok},
			{"read", "$W/cmdline", "", ok, ok},
		}
		table(t, u, own(), rows, func(t *testing.T, w *world) {
			w.env = []string{trace + "$I/data/provider-traces/own"}
			pids[n] = w.bystander(t)
			// The link's text is what differs between the worlds.
			for _, name := range []string{"environ", "cmdline"} {
				if err := os.Symlink(fmt.Sprintf("/proc/%d/%s", pids[n], name), w.at("$W/"+name)); err != nil {
					t.Fatal(err)
				}
			}
			n++
		})
	})
}

// TestCase40_EnvironIsDeniedToRoot: root is denied the harness's environment because its
// capabilities are dropped, and a policy that keeps them says what that costs.
func TestCase40_EnvironIsDeniedToRoot(t *testing.T) {
	launch.Need(t, launch.IsRoot)
	w := newWorld(t, launch.Root)
	environ := try{Op: "read", Path: fmt.Sprintf("/proc/%d/environ", w.bystander(t))}
	if got := w.free(t, environ); got[0].Errno != ok || !strings.Contains(got[0].Data, "HARNESS_SECRET") {
		t.Fatalf("without a policy: %v", got)
	}
	got, r := w.held(t, own(), environ)
	if got[0].Errno != denied || !launch.Enforced(r, "capabilities") {
		t.Errorf("with the policy: %v, %+v", got, r.Enforced)
	}
	w.policy = `{"version":1,"profile":"paperclip-runner","root":"$I","capabilities":"keep"}`
	got, r = w.held(t, own(), environ)
	if reported := slices.Contains(launch.NotEnforced(r, "capabilities"), "limit"); got[0].Errno != denied && !reported {
		t.Errorf("capabilities kept: %v, and the report does not say so: %+v", got, r.NotEnforced)
	}
}

func TestCase41_OwnTraceIsOpen(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		table(t, u, own(), []row{
			{"read", "$I/data/provider-traces/own", "", ok, ok},
			{"written", "$I/data/provider-traces/own", "", ok, ok},
			{"read", "$I/data/provider-traces/other", "", ok, denied},
			{"written", "$I/data/provider-traces/other", "", ok, denied},
			{"create", "$I/data/provider-traces/new", "", ok, denied},
			{"create", "$W/f", "", ok, denied}, // frozen
			{"rename", "$R/acpx", "$I/data/provider-traces/own", "ENOTDIR", denied},
			{"unlink", "$I/data/provider-traces/own", "", ok, denied},
		}, func(t *testing.T, w *world) {
			w.env = []string{trace + "$I/data/provider-traces/own"}
			u.Write(t, w.at("$I/data/provider-traces/own"), "earlier\n", 0o600)
		})
		w := newWorld(t, u)
		w.env = []string{trace + "$I/data/provider-traces/own"}
		u.Write(t, w.at("$I/data/provider-traces/own"), "earlier\n", 0o600)
		got, r := w.held(t, nil, try{Op: "written", Path: "$I/data/provider-traces/own"}, try{Op: "read", Path: "$I/data/provider-traces/own"})
		if got[1].Data != "earlier\n+" {
			t.Errorf("the earlier content is %q", got[1].Data)
		}
		w.exposed(t, r, "$I/data/provider-traces/own")

		for _, path := range []string{"$I/db/f", "$W/trace", "$I/data/provider-traces/sub/own", "$I/data/provider-traces", "own", "$I/data/provider-traces/../../db/f"} {
			w.env = []string{trace + path}
			got, r := w.held(t, nil, try{Op: "read", Path: "$I/db/f"})
			if got[0].Errno != denied {
				t.Errorf("%s: %v", path, got)
			}
			w.exposed(t, r)
			if len(r.Dropped) == 0 {
				t.Errorf("%s: nothing is reported as dropped", path)
			}
		}
	})
}

func TestCase42_StateDirectoryOpensNothingElse(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		for _, tt := range []struct {
			name string
			args []string
			want []string
		}{
			{"joined form", []string{"--state-dir=$R/durable-sessions/own"}, nil},
			{"the directory itself", []string{"--state-dir", "$R/durable-sessions"}, nil},
			{"the directory itself with a slash", []string{"--state-dir", "$R/durable-sessions/"}, nil},
			{"out by dot-dot", []string{"--state-dir", "$R/durable-sessions/../db"}, nil},
			{"out by dot-dot to the database", []string{"--state-dir", "$R/durable-sessions/../../../db"}, nil},
			{"relative", []string{"--state-dir", "durable-sessions/own"}, nil},
			{"first of two", []string{"--state-dir", "$R/durable-sessions/one", "--state-dir", "$R/durable-sessions/other"}, []string{"$R/durable-sessions/one"}},
			{"under runner", []string{"--state-dir", "$R/runner/x/y"}, []string{"$R/runner/x"}},
			{"no value", []string{"--state-dir"}, nil},
			{"nothing", nil, nil},
		} {
			got, r := w.held(t, tt.args, try{Op: "read", Path: "$I/db/f"}, try{Op: "read", Path: "$R/durable-sessions/other/f"}, try{Op: "list", Path: "$R/durable-sessions"})
			if got[0].Errno != denied || got[1].Errno != denied || got[2].Errno != denied {
				t.Errorf("%s: %v", tt.name, got)
			}
			t.Run(tt.name, func(t *testing.T) { w.exposed(t, r, tt.want...) })
		}
		if err := os.Symlink("other", w.at("$R/durable-sessions/link")); err != nil {
			t.Fatal(err)
		}
		w.refused(t, []string{"--state-dir", "$R/durable-sessions/link/runner"}, "profile.exposed[0]", "$R/durable-sessions/link", "symbolic link")
	})
}

func TestCase43_SessionNamesAreMadeSafe(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		for _, tt := range []struct{ id, want string }{
			{"a/b", "a_b"},
			{"..", ""},
			{".", ""},
			{strings.Repeat("x", 130), strings.Repeat("x", 120)},
			{"😀", "__"},
			{"", ""},
			{" \t", ""},
			{"../other", ".._other"},
			{"a\nb\xff", "a_b_"},
			{strings.Repeat("/", 100<<10), strings.Repeat("_", 120)},
		} {
			_, r := w.held(t, []string{"--session-id", tt.id})
			if tt.want == "" {
				w.exposed(t, r)
				continue
			}
			w.exposed(t, r, "$R/opencode/"+tt.want)
		}
	})
}

func TestCase44_OwnOpenCodeDirectoryIsOpen(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		w.env = []string{openCode + "$R/durable-sessions/own-scope/opencode"}
		got, r := w.held(t, own(), try{Op: "mkdir", Path: "$R/durable-sessions/own-scope/opencode"},
			try{Op: "create", Path: "$R/durable-sessions/own-scope/opencode/f"}, try{Op: "list", Path: "$R/durable-sessions/own-scope/opencode"})
		if got[0].Errno != ok || got[1].Errno != ok || got[2].Data != "f" {
			t.Errorf("in the own session: %v", got)
		}
		w.exposed(t, r, "$R/durable-sessions/own-scope", "$R/opencode/own-session")

		u.Mkdir(t, w.at("$W/oc"), 0o755)
		u.Mkdir(t, w.at("$W/oc/other"), 0o755)
		u.Write(t, w.at("$W/oc/other/f"), secret, 0o644)
		elsewhere := []try{
			{Op: "list", Path: "$W/oc"}, {Op: "read", Path: "$W/oc/other/f"}, {Op: "create", Path: "$W/oc/own-session/f"},
		}
		w.env = []string{openCode + "$W/oc"}
		got, r = w.held(t, own(), elsewhere...)
		if got[0].Errno != denied || got[1].Errno != denied || got[2].Errno != ok {
			t.Errorf("elsewhere: %v", got)
		}
		w.exposed(t, r, "$R/durable-sessions/own-scope", "$R/opencode/own-session", "$W/oc/own-session")
		if free := w.free(t, elsewhere[:2]...); free[0].Errno != ok || free[1].Errno != ok {
			t.Errorf("elsewhere, without a policy: %v", free)
		}

		w.env = []string{openCode + "oc"}
		_, r = w.held(t, own())
		w.exposed(t, r, "$R/durable-sessions/own-scope", "$R/opencode/own-session")
	})
}

func TestCase48_StoreOfALinkedWorkTreeIsHidden(t *testing.T) {
	launch.Need(t, launch.Program("git"))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		w.env = []string{"GIT_CONFIG_GLOBAL=/dev/null"}
		git := func(dir string, args ...string) {
			t.Helper()
			r := launch.Cmd{
				Path: launch.Look(t, "git"), Args: append([]string{"git", "-c", "user.name=u", "-c", "user.email=u@example.com"}, args...),
				User: u, Dir: w.at(dir), Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + launch.Nowhere, "GIT_CONFIG_GLOBAL=/dev/null"},
			}.Run(t)
			if r.Code != 0 {
				t.Fatalf("git %q: %v", args, r)
			}
		}
		u.Mkdir(t, w.at("$W/repo"), 0o755)
		git("$W/repo", "init", "-q", "-b", "main")
		u.Mkdir(t, w.at("$W/repo/tests"), 0o755)
		u.Write(t, w.at("$W/repo/tests/x"), "grader\n", 0o644)
		git("$W/repo", "add", ".")
		git("$W/repo", "commit", "-q", "-m", "x")
		git("$W/repo", "worktree", "add", "-q", w.at("$W/tree"))
		w.install(t, "paperclip-runnerd", launch.Look(t, "git"))
		show := w.command(t, nil, nil, nil)
		show.Args, show.Dir = []string{"git", "show", "HEAD:tests/x"}, w.at("$W/tree")
		if r := show.Run(t); r.Stdout != "grader\n" {
			t.Fatalf("without a policy: %v", r)
		}
		show.Policy = w.at(`{"hidden":["$W/repo/.git","$W/repo/.git/worktrees/tree","$W/tree/.git","$W/tree/tests"],"required":true}`)
		if r := show.Run(t); r.Code != 128 || strings.Contains(r.Stdout, "grader") {
			t.Errorf("with the policy: %v", r)
		}
		show.Policy = w.at(`{"hidden":["$W/repo/.git","$W/repo/.git/worktrees/tree"],"required":true}`)
		if r := show.Run(t); r.Code != 128 || strings.Contains(r.Stdout, "grader") {
			t.Errorf("with its .git file readable: %v", r)
		}
	})
}

func TestCase49_LogAndReportNameTheSession(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		w.policy = `{"version":1,"profile":"paperclip-runner","root":"$I","hidden":["$W/graders"],"log":{"level":"info","to":"$W/report/log"}}`
		cmd := w.command(t, w.text(), own(), nil)
		run := cmd.Run(t)
		r := w.report(t)
		data, err := os.ReadFile(w.at("$W/report/log"))
		if err != nil {
			t.Fatal(err)
		}
		lines := launch.LogLines(t, data)
		if len(lines) != 1 {
			t.Fatalf("%d lines about a launch in %s", len(lines), data)
		}
		want := launch.LogLine{
			PID:        run.PID,
			RunHidden:  w.all([]string{"$R/durable-sessions", "$R/runner", "$R/control-plane", "$R/opencode", "$I/data/run-logs", "$I/data/provider-traces", "$I/data/backups", "$I/db", "$I/secrets"}),
			RunExposed: w.all([]string{"$R/durable-sessions/own-scope", "$R/opencode/own-session"}),
		}
		if diff := cmp.Diff(want, lines[0]); diff != "" {
			t.Errorf("log (-want +got)\n%s", diff)
		}
		if r.PID != run.PID || !slices.Equal(r.Hidden, append([]string{w.at("$W/graders")}, want.RunHidden...)) || !slices.Equal(r.Exposed, want.RunExposed) {
			t.Errorf("report: %+v", r)
		}
	})
}

func TestCase50_AnotherTargetIsReported(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		tries := []try{{Op: "read", Path: "$W/graders/f"}, {Op: "read", Path: "$I/secrets/f"}, {Op: "list", Path: "$R/durable-sessions"}}
		got, r := w.held(t, own(), tries...)
		if got[0].Errno != denied || got[1].Errno != denied || got[2].Errno != denied {
			t.Fatalf("the target itself: %v", got)
		}
		if len(launch.NotEnforced(r, "run-scope")) != 0 {
			t.Errorf("the run scope of the target is called missing")
		}
		before := len(launch.Reports(t, w.at("$W/report/r")))
		w.install(t, "bash", witness(t))
		got, r = w.held(t, own(), tries...)
		if got[0].Errno != denied || got[1].Errno != ok || got[2].Errno != ok {
			t.Errorf("another target: %v", got)
		}
		if !slices.Equal(launch.NotEnforced(r, "run-scope"), []string{"limit"}) || len(launch.Reports(t, w.at("$W/report/r"))) != before+1 {
			t.Errorf("the report does not say so: %+v", r.NotEnforced)
		}
		if len(r.Exposed) != 0 || !slices.Equal(r.Hidden, w.all([]string{"$W/graders"})) {
			t.Errorf("hidden %q, exposed %q", r.Hidden, r.Exposed)
		}
	})
}
