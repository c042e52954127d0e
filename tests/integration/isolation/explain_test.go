package isolation

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// An explanation says of /proc what the launch then does.
func TestExplainSaysOfProcWhatALaunchDoes(t *testing.T) {
	launch.Need(t, launch.ABIAtLeast(6))
	for _, text := range []string{
		`{"version":1,"isolate":["proc"]}`,
		`{"version":1,"isolate":["proc"],"capabilities":"keep","required":false}`,
	} {
		p, err := rules.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		x, err := shim.Explain(p, load.Source{}, "/bin/true", &shim.Call{Argv: []string{"true"}, Envp: launch.DefaultEnv, ExecFn: "/bin/true"})
		if err != nil {
			t.Fatal(err)
		}
		report := filepath.Join(t.TempDir(), "report")
		sh := launch.Install(t, launch.Dir(t), "true", launch.Record{Real: "/bin/true", Report: report})
		if r := (launch.Cmd{Path: sh, Args: []string{"true"}, User: launch.Current(), Policy: text}).Run(t); r.Code != 0 {
			t.Fatal(r)
		}
		made := launch.Report(t, report)
		if diff := cmp.Diff(ofProc(made), ofProc(x.Report)); diff != "" {
			t.Errorf("%s: explained is not what was made (-made +explained)\n%s", text, diff)
		}
	}
}

func ofProc(r report.Report) map[string]string {
	out := map[string]string{}
	for _, e := range r.Enforced {
		if e.What == "proc" || e.What == "proc-visibility" {
			out[e.What] = "by " + e.By
		}
	}
	for _, g := range r.NotEnforced {
		if g.What == "proc" || g.What == "proc-visibility" {
			out[g.What] = "not: " + g.Why
		}
	}
	return out
}
