package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/confine"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/output"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/planner"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/target"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
)

func hide(paths ...string) []rules.Entry {
	var out []rules.Entry
	for _, path := range paths {
		out = append(out, rules.Entry{Key: "hidden", Path: path})
	}
	return out
}

// An exit code tells who failed, as a shell's do.
func TestExitCodes(t *testing.T) {
	dir := stage(t)
	errnotest.Must(t, os.WriteFile(dir+"/broken", []byte("#!/no/such/thing\n"), 0o755))
	errnotest.Must(t, os.WriteFile(dir+"/text", []byte("exit 0\n"), 0o755))
	for _, row := range []struct {
		name   string
		a      attempt
		code   int
		stderr string
	}{
		{"execve fails", attempt{Record: record.Record{Real: "/bin/true"}, Exec: []unix.Errno{unix.EACCES}}, exitRefused, "execve"},
		{"gone meanwhile", attempt{Policy: `{"version":1,"program":"/bin/true"}`, Exec: []unix.Errno{unix.ENOENT}}, exitRefused, "its loader is missing"},
		{"not there", attempt{Record: record.Record{Real: dir + "/none"}}, exitNotFound, "not found"},
		{"not executable", attempt{Record: record.Record{Real: dir + "/free"}}, exitRefused, "cannot be executed"},
		{"refused without a policy", attempt{Record: record.Record{Real: "/bin/true", OnMissing: record.Refuse}}, exitRefused, "no policy in SANDBOX_EXEC_SHIM_POLICY"},
		{"another variable", attempt{Record: record.Record{Real: "/bin/true", OnMissing: record.Refuse, PolicyEnv: "P"}}, exitRefused, "no policy in P"},
	} {
		got, _ := run(t, os.Geteuid(), row.a)
		if got.Code != row.code || !strings.Contains(got.Stderr, row.stderr) {
			t.Errorf("%s: %+v, want %d, %q", row.name, got, row.code, row.stderr)
		}
	}
	l := newLaunch(&Call{Exec: func(string, []string, []string) error { return unix.ENOENT }})
	l.program.Path = dir + "/none"
	if f := asFailure("x", l.become(nil)); f.code != exitNotFound || f.hint != "" {
		t.Errorf("gone: %+v", f)
	}
	if f := asFailure("x", errors.New("any")); f.code != exitShim || f.Error() != "x: any" {
		t.Errorf("any error: %+v", f)
	}
	if f := asFailure("x", fmt.Errorf("in: %w", &failure{code: 1})); f.code != 1 {
		t.Errorf("a failure in another: %+v", f)
	}
	for err, want := range map[error]string{errors.New("x"): "plan", &rules.Error{Key: "scope"}: "policy"} {
		if f := asFailure("", planFailure(err)); f.what != want {
			t.Errorf("%v: %s", err, f.what)
		}
	}
}

// The program gets the caller's argv, or its path where that was chosen; a file that
// execve does not know is a script for /bin/sh.
func TestBecome(t *testing.T) {
	var calls []call
	var errs []error
	exec := func(path string, argv, envp []string) error {
		calls = append(calls, call{path, slices.Clone(argv), envp})
		return errs[min(len(calls), len(errs))-1]
	}
	for _, row := range []struct {
		argv  []string
		argv0 record.Argv0
		errs  []error
		want  []string
	}{
		{[]string{"a", "b"}, record.Keep, []error{unix.EPERM}, []string{"/p a b"}},
		{[]string{"a", "b"}, record.Real, []error{unix.EPERM}, []string{"/p /p b"}},
		{nil, record.Keep, []error{unix.EPERM}, []string{"/p "}},
		{nil, record.Real, []error{unix.EPERM}, []string{"/p /p"}},
		{[]string{"a", "b"}, record.Keep, []error{unix.ENOEXEC, unix.EPERM}, []string{"/p a b", "/bin/sh /bin/sh /p b"}},
	} {
		calls, errs = nil, row.errs
		l := newLaunch(&Call{Argv: row.argv, Record: record.Record{Argv0: row.argv0}, Exec: exec})
		l.program.Path = "/p"
		err := l.become([]string{"E=1"})
		var got []string
		for _, c := range calls {
			got = append(got, c.Path+" "+strings.Join(c.Argv, " "))
			if !slices.Equal(c.Env, []string{"E=1"}) {
				t.Errorf("%q: %q", row.argv, c.Env)
			}
		}
		if !slices.Equal(got, row.want) || !errors.Is(err, row.errs[len(row.errs)-1]) {
			t.Errorf("%q, %v: %q, %v, want %q", row.argv, row.argv0, got, err, row.want)
		}
	}
}

// The record's places are for a policy that names none.
func TestDecode(t *testing.T) {
	c := &Call{Record: record.Record{Report: "/r", Log: "/l", PolicyEnv: "P"}}
	named := `{"version":1,"report":"/mine","log":{"level":"warn","to":"/mine.log"}}`
	for text, want := range map[string][3]string{`{"version":1}`: {"/r", "/l", "info"}, named: {"/mine", "/mine.log", "warn"}} {
		r, err := decode(c, text, []string{"A=1"})
		errnotest.Must(t, err)
		p := r.Policy
		if got := [3]string{p.Report.Path, p.Log.To.Path, p.Log.Level}; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if _, err := decode(c, "{", nil); err == nil || !strings.HasPrefix(err.Error(), "policy in P: ") {
		t.Errorf("%v", err)
	}
	r := newRequest(&rules.Policy{Env: rules.EnvChange{Unset: []string{"A"}, Set: []rules.EnvVar{{Name: "B", Value: "2"}}}}, load.Source{}, []string{"A=1", "C=3"})
	if !slices.Equal(r.Env, []string{"C=3", "B=2"}) {
		t.Errorf("%q", r.Env)
	}
	more := r.with(rules.Gap{What: "log"})
	if len(r.gaps) != 0 || len(more.gaps) != 1 {
		t.Errorf("%+v, %+v", r.gaps, more.gaps)
	}
}

// A required launch stops for the first guarantee that is missing, and for no limit.
func TestDemand(t *testing.T) {
	limit, gap := rules.Gap{What: "metadata", Why: "never", Limit: true}, rules.Gap{What: "hidden", Why: "old"}
	for _, required := range []bool{true, false} {
		l := newLaunch(&Call{})
		l.request = &request{Policy: &rules.Policy{Required: required}}
		if err := l.demand([]rules.Gap{limit}, ""); err != nil || l.warnings != nil {
			t.Errorf("required %v, a limit: %v, %q", required, err, l.warnings)
		}
		err := l.demand([]rules.Gap{limit, gap}, "look there")
		f, stopped := errors.AsType[*failure](err)
		switch {
		case stopped != required:
			t.Errorf("required %v: %v", required, err)
		case required && (f.code != exitShim || f.hint != "look there" || !strings.Contains(f.Error(), "hidden: old")):
			t.Errorf("%+v", f)
		case !required && (len(l.warnings) != 1 || l.warnings[0] != "not enforced: hidden (old)"):
			t.Errorf("%q", l.warnings)
		}
	}
}

// What was taken for report and log was not left open for the program; what the policy
// names for them and could not be taken is judged like the rest.
func TestForeign(t *testing.T) {
	var p [2]int
	errnotest.Must(t, unix.Pipe(p[:]))
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	l := newLaunch(&Call{})
	l.inherited = []int{0, p[0], p[1]}
	if got := l.foreign(); !slices.Equal(got, l.inherited) {
		t.Errorf("%v of %v", got, l.inherited)
	}
	for _, file := range []**output.File{&l.out, &l.logTo} {
		var err error
		*file, err = output.Open(rules.Destination{IsFD: true, FD: p[1]}, l.inherited)
		errnotest.Must(t, err)
		if got := l.foreign(); !slices.Equal(got, []int{0, p[0]}) || len(l.inherited) != 3 {
			t.Errorf("%v of %v", got, l.inherited)
		}
		*file = nil
	}
	if f, err := output.Open(rules.Destination{IsFD: true, FD: p[0]}, l.inherited); err == nil {
		t.Errorf("one for reading was taken: %v", f)
	}
}

// The report is made from what was entered: what is not in force is not claimed.
func TestReportIsMadeFromTheDomain(t *testing.T) {
	p := &rules.Policy{
		Hidden: []rules.Entry{{Key: "hidden", Path: "/h"}}, Network: rules.Network{Mode: rules.NetworkDeny}, Capabilities: rules.CapabilitiesRestricted,
	}
	full, old := rules.Kernel{ABI: 7, Errata: 3}, rules.Kernel{Unavailable: "old"}
	noFilter := rules.Kernel{ABI: 7, NoSeccomp: "none"}
	files := &planner.Plan{
		Rules: 5, Frozen: []string{"/"}, Gaps: []rules.Gap{{What: "overlay", Limit: true}},
		Files: &plan.Plan{Hidden: []plan.Hidden{{Path: "/h"}}, Exposed: []plan.Exposed{{Path: "/x"}}},
	}
	for _, row := range []struct {
		name      string
		k         *rules.Kernel
		entered   bool
		p         *rules.Policy
		mechanism string
		network   string
		layers    int
	}{
		{"nothing asked", nil, false, &rules.Policy{}, report.MechanismNone, "allow", 0},
		{"not entered yet", &full, false, p, report.MechanismUnavailable, "allow", 0},
		{"all", &full, true, p, report.MechanismBoth, "deny", 1},
		{"no filter", &noFilter, true, p, report.MechanismLandlock, "allow", 1},
		{"no Landlock", &old, true, p, report.MechanismUnavailable, "deny", 0},
		{"only a filter", &full, true, &rules.Policy{Isolate: rules.IsolateTTY}, report.MechanismSeccomp, "allow", 0},
	} {
		l := newLaunch(&Call{Argv: []string{"a0", "x"}, Version: "v"})
		l.request = &request{Policy: row.p, gaps: []rules.Gap{{What: "log", Limit: true}}}
		l.program, l.kernel = target.Program{Path: "/bin/p"}, row.k
		l.warnings, l.precreated = []string{"one", "two"}, []string{"/made"}
		l.closed = []confine.Descriptor{{FD: 7, LeadsTo: "/l", Why: "w", Closed: true}}
		l.checked = commandResult{done: true, unseen: "part"}
		if row.p == p {
			l.plan = files
		}
		if row.entered {
			l.domain = confine.Foresee(row.p, *row.k)
		}
		r := l.report(nil)
		layers, rulesOf := 0, 0
		if r.Landlock != nil {
			layers, rulesOf = r.Landlock.Layers, r.Landlock.Rules
		}
		if r.Mechanism != row.mechanism || r.Network != row.network || layers != row.layers || (r.Frozen != nil) != (row.layers > 0) || row.layers > 0 && rulesOf != 5 {
			t.Errorf("%s: %+v, %+v", row.name, r, r.Landlock)
		}
		text, err := json.Marshal(r)
		errnotest.Must(t, err)
		for _, want := range []string{
			`"outcome":"exec"`, `"target":"/bin/p"`, `"argv0":"a0"`, `"sandbox_warning":"one; two"`, `"precreated":["/made"]`, `"fd":7`,
			`{"what":"log","why":"","limit":true}`, `{"what":"command","why":"part","limit":true}`,
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: no %s in %s", row.name, want, text)
			}
		}
		has := func(what string) bool {
			return slices.ContainsFunc(r.Enforced, func(e rules.Enforcement) bool { return e.What == what })
		}
		if has("hidden") != (row.entered && row.k.ABI > 0 && row.p == p) || has("command") != row.entered || has("capabilities") != (row.entered) {
			t.Errorf("%s: enforced %+v", row.name, r.Enforced)
		}
		if row.p == p && (!slices.Equal(r.Hidden, []string{"/h"}) || !slices.Equal(r.Exposed, []string{"/x"}) ||
			!slices.ContainsFunc(r.NotEnforced, func(g rules.Gap) bool { return g.What == "overlay" })) {
			t.Errorf("%s: %+v", row.name, r)
		}
		failed := l.report(fail("step", errors.New("a\nb")))
		if failed.Outcome != report.OutcomeError || failed.Error != `step: a\nb` {
			t.Errorf("%s: %+v", row.name, failed)
		}
	}
}

// An explanation changes nothing, and says what a launch would make and report.
func TestExplain(t *testing.T) {
	landlock(t)
	dir := stage(t)
	p := &rules.Policy{
		Version: 1, Capabilities: rules.CapabilitiesRestricted, Hidden: []rules.Entry{{Key: "hidden[0]", Path: dir + "/secret", Derived: &rules.Derived{}}},
		Precreate: []rules.Entry{{Key: "precreate[0]", Path: dir + "/new/sub"}, {Key: "precreate[1]", Path: dir}},
		Exposed: []rules.Entry{
			{Key: "exposed[0]", Path: dir + "/secret/run", Derived: &rules.Derived{Kind: rules.KindDir, Beneath: dir, Base: dir}},
			{Key: "exposed[1]", Path: dir + "/secret/f"},
		},
	}
	status := func() string {
		text, err := os.ReadFile("/proc/thread-self/status")
		errnotest.Must(t, err)
		return string(text)
	}
	x, err := Explain(p, load.Source{}, "/bin/true", &Call{Argv: []string{"true"}, Envp: []string{"PATH=/bin"}, ExecFn: "/opt/shims/true", Version: "v"})
	errnotest.Must(t, err)
	if !slices.Equal(x.Made, []string{dir + "/new/sub", dir + "/secret/run"}) {
		t.Errorf("made %q, dropped %+v", x.Made, x.Report.Dropped)
	}
	if _, err := os.Lstat(dir + "/new"); err == nil || strings.Contains(status(), "NoNewPrivs:\t1") {
		t.Error("an explanation changed something")
	}
	granted := func(path string) bool {
		return slices.ContainsFunc(x.Grants, func(g plan.Grant) bool { return g.Path == path })
	}
	if !granted(dir+"/free") || granted(dir+"/secret") || !granted(dir+"/secret/f") {
		t.Errorf("%+v", x.Grants)
	}
	if r := x.Report; r.Mechanism != report.MechanismLandlock || !slices.Contains(r.Frozen, dir) || !slices.Equal(r.Hidden, []string{dir + "/secret"}) || r.Target != "/bin/true" {
		t.Errorf("%+v", r)
	}
	// The caller's policy stays, also where nothing in it came of a template.
	p = &rules.Policy{Version: 1, Hidden: hide(dir + "/secret"), Precreate: hide(dir + "/secret/new/x"), Exposed: hide(dir+"/secret/new", dir+"/secret/f")}
	if _, err := Explain(p, load.Source{}, "/bin/true", &Call{Envp: []string{"PATH=/bin"}, ExecFn: "/opt/shims/true"}); err != nil ||
		p.Exposed[0].Path != dir+"/secret/new" || p.Exposed[1].Path != dir+"/secret/f" {
		t.Errorf("%+v, %v", p.Exposed, err)
	}
}

// Toolchain directories are not made for an explanation, which says that they will be.
func TestExplainToolchain(t *testing.T) {
	dir := stage(t)
	p := &rules.Policy{
		Version: 1, Scope: rules.ScopeWorkspace, Workspace: dir + "/secret", Toolchain: rules.ToolchainDirs{Mode: rules.ToolchainOwned, Owned: dir + "/cache"},
	}
	x, err := Explain(p, load.Source{}, "/bin/true", &Call{Envp: []string{"PATH=/bin"}, ExecFn: "/opt/shims/true"})
	errnotest.Must(t, err)
	if _, err := os.Lstat(dir + "/cache"); err == nil || !slices.Contains(x.Made, dir+"/cache") || !slices.Contains(x.Report.WritableDirs, dir+"/cache") {
		t.Errorf("made %q, writable %q, %v", x.Made, x.Report.WritableDirs, err)
	}
}
