package shim

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/confine"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/child"
)

// A launch with a policy confines, proves, reports and then becomes the program, with
// the caller's arguments and environment without the policy.
func TestLaunch(t *testing.T) {
	landlock(t)
	dir := stage(t)
	secret, err := os.Open(dir + "/secret/f")
	errnotest.Must(t, err)
	defer secret.Close()
	free, err := os.Open(dir + "/free")
	errnotest.Must(t, err)
	defer free.Close()
	a := attempt{
		Policy: policy(`"hidden":["` + dir + `/secret"],"network":"deny","env":{"unset":["GONE"],"set":{"NEW":"1"}}`),
		Env:    []string{"PATH=/usr/bin:/bin", "GONE=x", "KEEP=me"}, Record: record.Record{Report: dir + "/report"},
		Read: []string{dir + "/secret/f", dir + "/free"}, Open: []int{3, 4},
	}
	got, r := run(t, os.Geteuid(), a, secret, free)
	want := call{"/bin/true", []string{"prog", "one", "two"}, []string{"PATH=/usr/bin:/bin", "KEEP=me", "NEW=1"}}
	if len(got.Calls) != 2 || got.Calls[0].Path != want.Path || !slices.Equal(got.Calls[0].Argv, want.Argv) || !slices.Equal(got.Calls[0].Env, want.Env) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for what, want := range map[string]string{dir + "/secret/f": "EACCES", dir + "/free": "", "3": "EBADF", "4": ""} {
		if got.Found[what] != want {
			t.Errorf("%s: %q, want %q", what, got.Found[what], want)
		}
	}
	if r.Outcome != report.OutcomeExec || r.Mechanism != report.MechanismBoth || r.Network != "deny" || !slices.Contains(r.Hidden, dir+"/secret") ||
		r.Target != "/bin/true" || r.Argv0 != "prog" || r.Error != "" || r.Landlock == nil || r.Landlock.Layers != 1 || r.Landlock.Rules == 0 ||
		!slices.Contains(r.Frozen, dir) || len(r.Descriptors) != 1 || r.Descriptors[0].FD != 3 || !r.Descriptors[0].Closed || r.Shim != "test" {
		t.Errorf("%+v", r)
	}
	// The same launch without a policy.
	a.Policy = ""
	a.Record.Real = "/bin/true"
	free2, _ := run(t, os.Geteuid(), a, secret, free)
	if len(free2.Calls) == 0 || free2.Found[dir+"/secret/f"] != "" || free2.Found["3"] != "" || !slices.Equal(free2.Calls[0].Env, a.Env) {
		t.Errorf("without a policy: %+v", free2)
	}
}

// A domain that the kernel only seems to have entered starts nothing, whatever else
// is in force.
func TestNothingStartsUnproved(t *testing.T) {
	landlock(t)
	dir := stage(t)
	hidden := `"hidden":["` + dir + `/secret"]`
	for _, row := range []struct {
		name, keys string
		call       uintptr
		errno      unix.Errno
		want       string
	}{
		{"a ruleset", hidden, unix.SYS_LANDLOCK_RESTRICT_SELF, 0, "the confinement does not hold"},
		{"a ruleset beside a filter", hidden + `,"network":"deny"`, unix.SYS_LANDLOCK_RESTRICT_SELF, 0, "the confinement does not hold"},
		{"a filter", hidden + `,"network":"deny"`, unix.SYS_SECCOMP, 0, "the confinement does not hold"},
		{"a filter alone", `"isolate":["tty"]`, unix.SYS_SECCOMP, 0, "the confinement does not hold"},
		{"no ruleset", hidden, unix.SYS_LANDLOCK_RESTRICT_SELF, unix.EPERM, "confinement"},
		{"one too many", hidden, unix.SYS_LANDLOCK_RESTRICT_SELF, unix.E2BIG, "16 Landlock domains"},
		{"no Landlock", hidden, unix.SYS_LANDLOCK_CREATE_RULESET, unix.ENOSYS, "cannot enforce"},
		{"no rules", hidden, unix.SYS_LANDLOCK_ADD_RULE, unix.ENOMEM, "plan"},
		{"no seccomp", `"isolate":["tty"]`, unix.SYS_SECCOMP, unix.EPERM, "cannot enforce"},
		{"no descriptors", hidden, unix.SYS_FCNTL, unix.EMFILE, "descriptors"},
	} {
		got, _ := run(t, os.Geteuid(), attempt{Policy: policy(row.keys), Fail: row.call, Errno: row.errno})
		if got.Calls != nil || got.Code != exitShim || !strings.Contains(got.Stderr, row.want) {
			t.Errorf("%s: %+v, want %q", row.name, got, row.want)
		}
		if fine, _ := run(t, os.Geteuid(), attempt{Policy: policy(row.keys)}); len(fine.Calls) == 0 {
			t.Errorf("%s: not started where all works: %+v", row.name, fine)
		}
	}
}

// What cannot be had stops a required launch, and another one goes on and says it.
func TestRequiredOrSaid(t *testing.T) {
	landlock(t)
	dir := stage(t)
	for _, row := range []struct {
		name, keys string
		call       uintptr
		errno      unix.Errno
		warning    string
		mechanism  string
	}{
		{"no Landlock", `"hidden":["` + dir + `/secret"]`, unix.SYS_LANDLOCK_CREATE_RULESET, unix.ENOSYS, "not enforced: hidden", report.MechanismUnavailable},
		{"no seccomp", `"isolate":["tty"]`, unix.SYS_SECCOMP, unix.EPERM, "not enforced: tty", report.MechanismNone},
		{"a domain too many", `"hidden":["` + dir + `/secret"]`, unix.SYS_LANDLOCK_RESTRICT_SELF, unix.E2BIG, "adds no confinement", report.MechanismUnavailable},
	} {
		a := attempt{
			Policy: strings.Replace(policy(row.keys), `"required":true`, `"required":false`, 1), Fail: row.call, Errno: row.errno,
			Record: record.Record{Report: dir + "/report-" + strconv.Itoa(int(row.call))},
		}
		got, r := run(t, os.Geteuid(), a)
		if len(got.Calls) == 0 || !strings.Contains(got.Stderr, row.warning) || !strings.Contains(r.Warning, row.warning) || len(r.NotEnforced) == 0 ||
			r.NotEnforced[0].Limit || r.Mechanism != row.mechanism || r.Frozen != nil {
			t.Errorf("%s: %+v, %+v", row.name, got, r)
		}
	}
}

// A start that went wrong ends before anything that the caller can steer.
func TestBadStarts(t *testing.T) {
	for _, row := range []struct {
		name string
		a    attempt
		want string
	}{
		{"no entry point", attempt{Unentered: true, Record: record.Record{Real: "/bin/true"}}, "entry point"},
		{"a damaged record", attempt{Broken: "damaged", Record: record.Record{Real: "/bin/true"}}, "record: damaged"},
		{"privileged", attempt{Privileged: "this file is setuid", Record: record.Record{Real: "/bin/true"}}, "refused: this file is setuid"},
		{"a policy that is none", attempt{Policy: "{", Record: record.Record{Real: "/bin/true"}}, "policy in SANDBOX_EXEC_SHIM_POLICY"},
		{"two policies", attempt{Policy: "{}", Env: []string{"SANDBOX_EXEC_SHIM_POLICY={}"}, Record: record.Record{Real: "/bin/true"}}, "policy"},
		{"a report that cannot be", attempt{Policy: policy(`"report":"/proc/nowhere/report"`)}, "report: open"},
		{"a report descriptor that is none", attempt{Policy: policy(`"report":"fd:999"`)}, "report: descriptor 999"},
	} {
		if got, _ := run(t, os.Geteuid(), row.a); got.Calls != nil || got.Code != exitShim || !strings.Contains(got.Stderr, row.want) {
			t.Errorf("%s: %+v, want %q", row.name, got, row.want)
		}
	}
}

// A report through a descriptor is written although the policy closes all others, and
// says nothing of itself.
func TestReportDescriptorIsNotJudged(t *testing.T) {
	landlock(t)
	dir := stage(t)
	out, err := os.OpenFile(dir+"/out", os.O_CREATE|os.O_RDWR, 0o600)
	errnotest.Must(t, err)
	defer out.Close()
	other, err := os.Open(dir + "/free")
	errnotest.Must(t, err)
	defer other.Close()
	keys := strings.Replace(policy(`"hidden":["`+dir+`/secret"],"report":"fd:3"`), `"descriptors":"keep"`, `"descriptors":"close"`, 1)
	got, _ := run(t, os.Geteuid(), attempt{Policy: keys, Open: []int{3, 4}}, out, other)
	text, err := os.ReadFile(dir + "/out")
	errnotest.Must(t, err)
	line, _, _ := strings.Cut(string(text), "\n")
	var r report.Report
	errnotest.Must(t, json.Unmarshal([]byte(line), &r))
	listed := func(fd int) bool {
		return slices.ContainsFunc(r.Descriptors, func(d report.Descriptor) bool { return d.FD == fd })
	}
	if len(got.Calls) == 0 || got.Found["3"] != "" || got.Found["4"] != "EBADF" || listed(3) || !listed(4) {
		t.Errorf("%+v, %+v", got, r.Descriptors)
	}
}

// A launch that failed says so in the report, once it has one.
func TestFailureIsReported(t *testing.T) {
	landlock(t)
	dir := stage(t)
	a := attempt{
		Policy: policy(`"hidden":["` + dir + `/secret"]`), Record: record.Record{Report: dir + "/report"},
		Fail: unix.SYS_LANDLOCK_RESTRICT_SELF, Errno: unix.EPERM,
	}
	got, _ := run(t, os.Geteuid(), a)
	text, err := os.ReadFile(dir + "/report")
	errnotest.Must(t, err)
	var r report.Report
	errnotest.Must(t, json.Unmarshal(text, &r))
	if got.Code != exitShim || r.Outcome != report.OutcomeError || !strings.Contains(r.Error, "enforce the Landlock ruleset") || r.Landlock != nil {
		t.Errorf("%+v, %s", got, text)
	}
}

// What is asked for is made before the plan is, which would not find it otherwise, and
// also where nothing is confined.
func TestPrecreatedBeforeThePlan(t *testing.T) {
	landlock(t)
	for _, keys := range []string{`"hidden":["%D/secret"],"exposed":["%D/secret/run"]`, `"capabilities":"keep"`} {
		dir := stage(t)
		keys = strings.ReplaceAll(keys+`,"precreate":["%D/secret/run"]`, "%D", dir)
		got, r := run(t, os.Geteuid(), attempt{Policy: policy(keys), Record: record.Record{Report: dir + "/report"}, Read: []string{dir + "/secret/run"}})
		if len(got.Calls) == 0 || got.Found[dir+"/secret/run"] != "" || !slices.Equal(r.Precreated, []string{dir + "/secret/run"}) {
			t.Errorf("%s: %+v, %+v", keys, got, r)
		}
	}
}

// The plan knows the program's environment: the temp directory that may not be frozen
// is the one that it will use.
func TestPlanIsOfTheProgramsEnvironment(t *testing.T) {
	landlock(t)
	dir := stage(t)
	keys := `"hidden":["` + dir + `/secret"],"env":{"set":{"TMPDIR":"` + dir + `"}}`
	if got, _ := run(t, os.Geteuid(), attempt{Policy: policy(keys)}); got.Calls != nil || !strings.Contains(got.Stderr, "temp directory") {
		t.Errorf("%+v", got)
	}
	if got, _ := run(t, os.Geteuid(), attempt{Policy: policy(`"hidden":["` + dir + `/secret"]`)}); len(got.Calls) == 0 {
		t.Errorf("%+v", got)
	}
}

// Capabilities that the policy leaves are said where they reach around it.
func TestKeptCapabilitiesAreReported(t *testing.T) {
	landlock(t)
	child.Root(t)
	dir := stage(t)
	for keys, want := range map[string]bool{`,"capabilities":"keep"`: true, "": false} {
		a := attempt{Policy: policy(`"hidden":["` + dir + `/secret"]` + keys), Record: record.Record{Report: dir + "/report" + strconv.Itoa(len(keys))}}
		got, r := run(t, 0, a)
		said := slices.ContainsFunc(r.NotEnforced, func(g rules.Gap) bool { return g.What == "capabilities" && g.Limit })
		if len(got.Calls) == 0 || said != want {
			t.Errorf("%q: %+v, %+v", keys, got, r.NotEnforced)
		}
	}
}

// Descriptors that are asked for to see whether there are any are given back.
func TestTwoDescriptorsAreGivenBack(t *testing.T) {
	before, err := confine.Inherited([3]bool{})
	errnotest.Must(t, err)
	errnotest.Must(t, twoDescriptors())
	after, err := confine.Inherited([3]bool{})
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("%v, were %v, %v", after, before, err)
	}
}
