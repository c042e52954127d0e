package runscope

import (
	"os"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// TestProfileOfTheDocumentationHolds: the example of the documentation, in a profile directory
// that was chosen when the shim was installed.
func TestProfileOfTheDocumentationHolds(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		text, err := os.ReadFile("../../../examples/profiles/night-shift.json")
		if err != nil {
			t.Fatal(err)
		}
		u.Mkdir(t, w.at("$W/profiles"), 0o755)
		u.Write(t, w.at("$W/profiles/night-shift.json"), string(text), 0o644)
		w.name = "night-worker"
		w.shim = launch.Install(t, launch.Dir(t), w.name, launch.Record{
			Real: witness(t), PolicyEnv: policyEnv, Report: w.at("$W/report/r"), ProfileDir: w.at("$W/profiles"),
		})
		for _, dir := range []string{"$W/n", "$W/n/spool", "$W/n/spool/acme", "$W/n/spool/acme/16", "$W/n/ledger", "$W/n/ledger/pages", "$W/h", "$W/h/.night-shift"} {
			u.Mkdir(t, w.at(dir), 0o755)
		}
		u.Write(t, w.at("$W/n/spool/acme/16/f"), secret, 0o644)
		u.Write(t, w.at("$W/n/ledger/pages/16"), secret, 0o644)
		w.policy = `{"version":1,"profile":"night-shift","root":"$W/n"}`
		w.env = []string{"NIGHT_TENANT=acme"}
		args := []string{"--job", "17", "--ledger-page", "$W/n/ledger/pages/17"}
		tries := []try{
			{Op: "create", Path: "$W/n/spool/acme/17/f"},
			{Op: "written", Path: "$W/n/ledger/pages/17"},
			{Op: "create", Path: "$W/n/shared/models/f"},
			{Op: "read", Path: "$W/n/spool/acme/16/f"},
			{Op: "list", Path: "$W/n/spool"},
			{Op: "read", Path: "$W/n/ledger/pages/16"},
			{Op: "list", Path: "$W/h/.night-shift"},
		}
		cmd := w.command(t, w.text(), args, tries)
		cmd.Env = append([]string{"HOME=" + w.at("$W/h")}, cmd.Env[2:]...)
		cmd.Env = append(cmd.Env, "PATH=/usr/bin:/bin")
		got := results(t, cmd.Run(t), len(tries))
		for i, want := range []string{ok, ok, ok, denied, denied, denied, denied} {
			if got[i].Errno != want {
				t.Errorf("%s %s: %v, want %s", tries[i].Op, tries[i].Path, got[i], want)
			}
		}
		free := w.free(t, tries[3:]...)
		for i, g := range free {
			if g.Errno != ok {
				t.Errorf("without a policy: %s %s: %v", tries[3+i].Op, tries[3+i].Path, g)
			}
		}
		w.exposed(t, w.report(t), "$W/n/spool/acme/17", "$W/n/ledger/pages/17", "$W/h/.night-shift/_")

		w.policy = `{"version":1,"profile":"gone","root":"$W/n"}`
		w.refused(t, args, "profile: neither built in nor in the profile directory")
		u.Write(t, w.at("$W/profiles/bad.json"), `{"version":1,"hiden":[]}`, 0o644)
		w.policy = `{"version":1,"profile":"bad","required":false}`
		w.refused(t, args, "profile.hiden: unknown key")
	})
}

// TestProfileOfBuildsHolds: the example that confines writing, for two jobs.
func TestProfileOfBuildsHolds(t *testing.T) {
	launch.Need(t, launch.ABIAtLeast(3))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		w.name = "build-job"
		text, err := os.ReadFile("../../../examples/profiles/night-builds.json")
		if err != nil {
			t.Fatal(err)
		}
		u.Mkdir(t, w.at("$W/profiles"), 0o755)
		u.Write(t, w.at("$W/profiles/night-builds.json"), string(text), 0o644)
		w.shim = launch.Install(t, launch.Dir(t), w.name, launch.Record{
			Real: witness(t), PolicyEnv: policyEnv, Report: w.at("$W/report/r"), ProfileDir: w.at("$W/profiles"),
		})
		for _, dir := range []string{
			"$W/h", "$W/b", "$W/b/jobs", "$W/b/jobs/17", "$W/b/jobs/17/workspace", "$W/b/jobs/17/secrets",
			"$W/b/jobs/18", "$W/b/jobs/18/workspace", "$W/b/jobs/18/logs", "$W/b/jobs/18/secrets",
		} {
			u.Mkdir(t, w.at(dir), 0o755)
		}
		for _, file := range []string{
			"$W/b/queue", "$W/b/jobs/17/workspace/src", "$W/b/jobs/17/secrets/token", "$W/b/jobs/17/secrets/key",
			"$W/b/jobs/18/workspace/f", "$W/b/jobs/18/logs/f", "$W/b/jobs/18/secrets/token",
		} {
			u.Write(t, w.at(file), secret, 0o644)
		}
		w.policy = `{"version":1,"profile":"night-builds","root":"$W/b"}`
		rows := []row{
			{op: "create", path: "$W/b/jobs/17/workspace/f", held: ok},
			{op: "create", path: "$W/b/jobs/17/logs/f", held: ok},
			{op: "create", path: "$W/b/cache/f", held: ok},
			{op: "read", path: "$W/b/jobs/17/secrets/token", held: ok},
			{op: "read", path: "$W/b/jobs/17/secrets/key", held: denied},
			{op: "list", path: "$W/b/jobs/17", held: denied},
			{op: "list", path: "$W/b/jobs", held: denied},
			{op: "read", path: "$W/b/queue", held: denied},
			{op: "read", path: "$W/b/jobs/18/workspace/f", held: denied},
			{op: "read", path: "$W/b/jobs/18/logs/f", held: denied},
			{op: "read", path: "$W/b/jobs/18/secrets/token", held: denied},
			{op: "create", path: "$W/b/jobs/18/workspace/g", held: denied},
			{op: "create", path: "$W/h/f", held: denied},
			{op: "read", path: "$W/b/jobs/17/workspace/src", held: ok},
		}
		tries := make([]try, len(rows))
		for i, r := range rows {
			tries[i] = try{Op: r.op, Path: r.path}
		}
		start := func(policy any, job string) []result {
			cmd := w.command(t, policy, []string{"--job", job}, tries)
			cmd.Dir = w.at("$W/b/jobs/" + job + "/workspace")
			cmd.Env = []string{"HOME=" + w.at("$W/h"), "PATH=/usr/bin:/bin", "JOB_TOKEN_FILE=" + w.at("$W/b/jobs/"+job+"/secrets/token")}
			return results(t, cmd.Run(t), len(tries))
		}
		for i, got := range start(w.text(), "17") {
			if got.Errno != rows[i].held {
				t.Errorf("%s %s: %v, want %s", rows[i].op, rows[i].path, got, rows[i].held)
			}
		}
		w.exposed(t, w.report(t), "$W/b/cache", "$W/b/jobs/17/workspace", "$W/b/jobs/17/logs", "$W/b/jobs/17/secrets/token")
		// The other job has what was denied to the first, and the cache.
		other := start(w.text(), "18")
		for i, want := range map[int]string{3: denied, 8: ok, 9: ok, 10: ok, 11: ok, 12: denied, 13: denied} {
			if other[i].Errno != want {
				t.Errorf("job 18: %s %s: %v, want %s", rows[i].op, rows[i].path, other[i], want)
			}
		}
		for i, free := range start(nil, "17")[4:11] {
			if free.Errno != ok {
				t.Errorf("without a policy: %s %s: %v", rows[4+i].op, rows[4+i].path, free)
			}
		}
	})
}

// TestExposedIsWritableInScopeWorkspace: what a template opens can be written there, too,
// unless the launch chose the directory.
func TestExposedIsWritableInScopeWorkspace(t *testing.T) {
	launch.Need(t, launch.ABIAtLeast(3))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		u.Mkdir(t, w.at("$W/ws"), 0o755)
		u.Mkdir(t, w.at("$W/oc"), 0o755)
		w.env = []string{openCode + "$W/oc"}
		w.policy = `{"version":1,"profile":"paperclip-runner","root":"$I","scope":"workspace","workspace":"$W/ws","toolchainDirs":false}`
		tries := []try{
			{Op: "create", Path: "$W/ws/f"},
			{Op: "create", Path: "$R/durable-sessions/own-scope/f"},
			{Op: "read", Path: "$R/durable-sessions/own-scope/f"},
			{Op: "mkdir", Path: "$W/oc/own-session"},
			{Op: "create", Path: "$I/skills/f"},
			{Op: "read", Path: "$R/durable-sessions/other/f"},
			{Op: "list", Path: "$W/oc"},
		}
		got, r := w.held(t, own(), tries...)
		for i, want := range []string{ok, ok, ok, denied, denied, denied, denied} {
			if got[i].Errno != want {
				t.Errorf("%s %s: %v, want %s", tries[i].Op, tries[i].Path, got[i], want)
			}
		}
		w.exposed(t, r, "$R/durable-sessions/own-scope", "$R/opencode/own-session")
		said := false
		for _, d := range r.Dropped {
			said = said || strings.Contains(d.Why, "writable")
		}
		if !said {
			t.Errorf("dropped %+v", r.Dropped)
		}
	})
}
