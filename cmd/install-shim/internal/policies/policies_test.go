package policies

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	explained "github.com/sandbox-exec-shim/sandbox-exec-shim/shim"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(m *testing.M) { launch.Main(m) }

// call runs a command and returns what it said.
func call(run func(*voice.Caller, []string) error, environ []string, in string, args ...string) (out, said string, code int) {
	var o, e bytes.Buffer
	v := &voice.Caller{In: strings.NewReader(in), Out: &o, Err: &e, Environ: environ}
	code = v.Finish(run(v, args))
	return o.String(), e.String(), code
}

func write(t *testing.T, path, text string, perm os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), perm); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRead: a policy is read from where a shim would read it, and what a launch
// would refuse is refused.
func TestRead(t *testing.T) {
	const text, variable = `{"version":1,"hidden":["/x"]}`, rules.DefaultPolicyEnv + "="
	dir := t.TempDir()
	t.Chdir(dir)
	file := write(t, dir+"/policy", text, 0o600)
	for _, row := range []struct {
		name, file, in string
		environ        []string
		rec            record.Record
		source, wrong  string
	}{
		{name: "a file", file: file, source: file},
		{name: "a relative file", file: "policy"},
		{name: "standard input", file: "-", in: text},
		{name: "the variable", environ: []string{"A=1", variable + text}},
		{name: "another variable", environ: []string{variable + "{", "MINE=" + text}, rec: record.Record{PolicyEnv: "MINE"}},
		{name: "the file that the variable names", environ: []string{variable + "@" + file}, source: file},
		{name: "a file beside a variable", file: file, environ: []string{variable + "{"}, source: file},
		{name: "none", wrong: "no policy: give --policy FILE, or set " + rules.DefaultPolicyEnv},
		{name: "a blank variable", environ: []string{variable + " "}, wrong: "no policy"},
		{name: "two values", environ: []string{variable + text, variable + "{}"}, wrong: "occurs twice"},
		{name: "a relative file in the variable", environ: []string{variable + "@policy"}, wrong: "absolute"},
		{name: "a device in the variable", environ: []string{variable + "@/dev/null"}, wrong: "regular"},
		{name: "no file", file: dir + "/nothing", wrong: "nothing: open: no such file"},
		{name: "no policy", file: "-", in: "{}", wrong: "policy: "},
		{name: "too long", file: "-", in: text + strings.Repeat(" ", 1<<20), wrong: "1 MiB"},
		{name: "no profile", file: "-", in: `{"version":1,"profile":"mine"}`, wrong: "neither built in nor"},
	} {
		v := &voice.Caller{In: strings.NewReader(row.in), Environ: row.environ}
		p, err := Read(v, "cmd", row.file, row.rec)
		if row.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), row.wrong) {
				t.Errorf("%s: %v, want %q", row.name, err, row.wrong)
			}
			continue
		}
		if err != nil || len(p.Hidden) != 1 || p.source.File != row.source {
			t.Errorf("%s: %+v, %v", row.name, p, err)
			continue
		}
		if slices.ContainsFunc(p.Environ, func(s string) bool { return strings.HasPrefix(s, p.Variable+"=") }) {
			t.Errorf("%s: the policy stays in the environment: %q", row.name, p.Environ)
		}
	}
}

// TestProfileDir: a shim's own directory of profiles counts.
func TestProfileDir(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/mine.json", `{"version":1,"hidden":["/x"]}`, 0o600)
	v := &voice.Caller{In: strings.NewReader(`{"version":1,"profile":"mine"}`)}
	if p, err := Read(v, "cmd", "-", record.Record{ProfileDir: dir}); err != nil || len(p.Hidden) != 1 {
		t.Errorf("%v, %v", p, err)
	}
}

// TestStops: only a required policy stops, and only for what is no limit.
func TestStops(t *testing.T) {
	gap := func(limit bool) []rules.Gap { return []rules.Gap{{What: "hidden", Why: "no Landlock", Limit: limit}} }
	for _, row := range []struct {
		name     string
		required bool
		gaps     []rules.Gap
		want     bool
	}{
		{"nothing is missing", true, nil, false},
		{"a limit", true, gap(true), false},
		{"a gap", true, gap(false), true},
		{"behind a limit", true, append(gap(true), gap(false)...), true},
		{"not required", false, gap(false), false},
	} {
		x := &explained.Explanation{}
		x.Report.NotEnforced = row.gaps
		for _, asJSON := range []bool{false, true} {
			var out, said bytes.Buffer
			err := explain(&voice.Caller{Out: &out, Err: &said}, &Policy{Policy: &rules.Policy{Required: row.required}}, x, asJSON, false)
			told := strings.Contains(said.String(), "would stop: cannot enforce hidden") || strings.Contains(out.String(), `"starts": false`)
			if (err != nil) != row.want || told != row.want {
				t.Errorf("%s: %v, %s%s", row.name, err, &out, &said)
			}
		}
	}
}

// TestExplain: the plan is that of the shim's record, and of the program behind it.
func TestExplain(t *testing.T) {
	launch.Need(t, launch.Landlock)
	dir := launch.Dir(t)
	if err := os.Mkdir(dir+"/secret", 0o755); err != nil {
		t.Fatal(err)
	}
	shim := launch.Install(t, dir, "tool", launch.Record{Real: "/bin/true", PolicyEnv: "MINE"})
	bare := launch.Copy(t, dir, "bare")
	plain := write(t, dir+"/plain", "", 0o644)
	environ := []string{"PATH=" + dir + ":/usr/bin:/bin", "MINE=" + `{"version":1,"hidden":["` + dir + `/secret"]}`}
	for _, row := range []struct {
		target, want string
		code         int
	}{
		{shim, "target /bin/true\nhidden " + dir + "/secret\n", 0},
		{"tool", "target /bin/true\nhidden " + dir + "/secret\n", 0},
		{bare, "is a shim without a record", 1},
		{plain, "is not an executable file", 1},
		{"absent", "is not on PATH", 1},
		{"/bin/true", "no policy", 2}, // in the usual variable
	} {
		if out, said, code := call(Explain, environ, "", "--target", row.target); code != row.code || !strings.HasPrefix(out+said[max(0, strings.Index(said, row.want)):], row.want) {
			t.Errorf("%s: %d, %s%s, want %d, %q", row.target, code, out, said, row.code, row.want)
		}
	}
}

// TestCommandPath: run starts the real program, never a shim.
func TestCommandPath(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"/shims", "/place", "/bin"} {
		if err := os.Mkdir(dir+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tool := write(t, dir+"/bin/tool", "#!/bin/sh\n", 0o755)
	write(t, dir+"/bin/text", "", 0o644)
	launch.Install(t, dir+"/shims", "tool", launch.Record{Real: "/bin/false"})
	launch.Install(t, dir+"/place", "placed", launch.Record{Real: tool, InPlace: true})
	v := &voice.Caller{Err: &bytes.Buffer{}, Environ: []string{"PATH=" + dir + "/shims:" + dir + "/place:" + dir + "/bin"}}
	for _, row := range []struct {
		command, want string
		code          int
	}{
		{"tool", tool, 0},
		{"placed", tool, 0},
		{dir + "/shims/tool", "/bin/false", 0},
		{dir + "/bin/tool", tool, 0},
		{"absent", "", 127},
		{"text", "", 127},
		{"", "", 127},
		{dir + "/absent", "", 127},
		{dir + "/bin/tool/x", "", 127},
		{dir + "/bin/text", "", 126},
		{dir + "/bin", "", 126},
	} {
		got, err := commandPath(v, row.command)
		if code := v.Finish(err); got != row.want || code != row.code {
			t.Errorf("%s: %s, %d, %v, want %s, %d", row.command, got, code, err, row.want, row.code)
		}
	}
}

// TestRunFlags: the flags make the policy that they say, and not a weaker one.
func TestRunFlags(t *testing.T) {
	t.Chdir("/usr")
	for _, row := range []struct{ args, want string }{
		{"--hide lib/../x --expose /y", `{"version":1,"required":false,"hidden":["/usr/lib/../x"],"exposed":["/y"]}`},
		{"--required --hide /x", `{"version":1,"required":true,"hidden":["/x"]}`},
		{"--required=false", `{"version":1,"required":false}`},
		{"--set A=1 --unset A", `{"version":1,"required":false,"env":{"unset":["A"]}}`},
		{"--unset A --set A=1 --set A=b=c", `{"version":1,"required":false,"env":{"set":{"A":"b=c"}}}`},
		{"--required=x", ""},
		{"--set A", ""},
		{"--set =1", ""},
		{"--unset A=1", ""},
		{"--hide=", ""},
		{"--hide /x\xff", ""},
		{"--hide /x --expose /x/\xff", ""},
		{"--set A=\xff", ""},
		{"--unset \xff", ""},
	} {
		var r runFlags
		f := voice.NewFlags("run")
		r.register(f)
		var p *Policy
		_, err := f.Read(strings.Fields(row.args))
		if err == nil {
			p, err = r.policy(&voice.Caller{Environ: []string{"A=0", rules.DefaultPolicyEnv + "=x"}})
		}
		switch {
		case row.want == "":
			if err == nil {
				t.Errorf("%s: no error", row.args)
			}
		case err != nil || !r.given || text(t, p.Policy) != row.want || !slices.Equal(p.Environ, []string{"A=0"}):
			t.Errorf("%s: %v, %+v, want %s", row.args, err, p, row.want)
		}
	}
}

// TestRun: what run refuses, it refuses with the codes of a launch.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	bare := launch.Copy(t, dir, "bare")
	installed := launch.Install(t, dir, "tool", launch.Record{Real: "/bin/false"})
	// A program that is started all the same takes the place of this test: it fails.
	for _, row := range []struct {
		name, want string
		args       []string
		code       int
	}{
		{"no command", "no command given", []string{"--hide", "/x"}, 125},
		{"no policy", "no policy", []string{"true"}, 125},
		{"two policies", "goes without", []string{"--policy", "-", "--hide", "/x", "false"}, 125},
		{"an installed shim", "is an installed shim", []string{"--shim", installed, "--hide", "/x", "/bin/false"}, 125},
		{"no shim", "is not a shim", []string{"--shim", "/bin/false", "--hide", "/x", "/bin/false"}, 125},
		{"another program", "names /bin/true, but the command is /bin/false", []string{"--shim", bare, "--policy", "-", "/bin/false"}, 125},
		{"no program", "is not on PATH", []string{"--shim", bare, "--hide", "/x", "absent"}, 127},
		{"too long", "more than an environment variable can hold", []string{"--shim", bare, "--hide", "/x", "--set", "A=" + strings.Repeat("x", MaxString), "/bin/false"}, 125},
	} {
		out, said, code := call(Run, nil, `{"version":1,"program":"/bin/true"}`, row.args...)
		if code != row.code || !strings.Contains(said, row.want) || out != "" {
			t.Errorf("%s: %d, %s%s, want %d, %q", row.name, code, out, said, row.code, row.want)
		}
	}
}

// TestEvalHide: after an error standard output holds what no shim takes for a
// policy, and what is left open is said.
func TestEvalHide(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/top/.git", 0o755); err != nil {
		t.Fatal(err)
	}
	args := func(repo string, more ...string) []string {
		return append([]string{"eval-hide", "--repo", repo, "--temp", "/t", "--private", "/p"}, more...)
	}
	for _, row := range []struct {
		name, out, said string
		args            []string
		code            int
	}{
		{"a policy", `{"version":1,"required":true,"hidden":["/r/tests",`, "", args("/r", "--required"), 0},
		{"no private", "no policy: ", "give --private DIR", []string{"eval-hide", "--repo", "/r", "--temp", "/t"}, 2},
		{"cannot be hidden", "no policy: ", "agent_filesystem_sandbox_incomplete", args("/tmp/r", "--required"), 1},
		{"nor must be", `{"version":1,"required":false,"hidden":["/t/`, "warning: agent_filesystem_sandbox_incomplete", args("/tmp/r"), 0},
		{"a bad flag", "no policy: ", "-x", args("/r", "-x"), 2},
		{"more", "no policy: ", "unexpected", args("/r", "x"), 2},
		{"relative", "no policy: ", "is not absolute", args("/r", "--shared-temp", "x"), 2},
		{"beneath a checkout", `{"version":1`, "lies in the checkout " + dir + "/top", args(dir+"/top/sub", "--shared-temp", "/s"), 0},
		{"a checkout", `{"version":1`, "", args(dir+"/top", "--shared-temp", "/s"), 0},
		{"skipped", `{"version":1`, "warning: --repo: is blank or relative", args(""), 0},
	} {
		out, said, code := call(Print, nil, "", row.args...)
		if code != row.code || !strings.HasPrefix(out, row.out) || !strings.Contains(said, row.said) || row.said == "" && said != "" {
			t.Errorf("%s: %d, %s%s, want %d, %q, %q", row.name, code, out, said, row.code, row.out, row.said)
		}
		if _, err := rules.Parse([]byte(out)); (err == nil) != (code == 0) {
			t.Errorf("%s: as a policy: %v", row.name, err)
		}
	}
	if out, _, _ := call(Print, nil, "", "eval-hide", "--help"); out != "" {
		t.Errorf("help: %s", out)
	}
}

// TestCheckCommand: a policy gives the bounds, and a violation is an exit code.
func TestCheckCommand(t *testing.T) {
	dir := launch.Dir(t)
	for _, row := range []struct {
		name string
		args []string
		in   string
		code int
		want string
	}{
		{"inside", []string{"--workspace", dir, "cat " + dir + "/x"}, "", 0, "inside"},
		{"outside", []string{"--workspace", dir, "cat >/etc/x"}, "", 1, "outside"},
		{"one more root", []string{"--workspace", dir, "--root", "/etc", "cat >/etc/x"}, "", 0, "inside"},
		{"standard input", []string{"--workspace", dir, "-"}, "cat >/etc/x", 1, "outside"},
		{"network", []string{"--workspace", dir, "--scope", "local", "--network", "deny", "curl x"}, "", 1, ""},
		{"a policy", []string{"--policy", "-", "cat </dev/tcp/x/1"}, `{"version":1,"scope":"workspace","workspace":"` + dir + `","network":"deny"}`, 1, ""},
		{"beside a policy", []string{"--policy", "-", "--network", "allow", "curl x"}, "{}", 2, ""},
		{"both from standard input", []string{"--policy", "-", "-"}, "{}", 2, ""},
		{"no such scope", []string{"--scope", "all", "ls"}, "", 2, ""},
		{"no such workspace", []string{"--workspace", dir + "/nothing", "ls"}, "", 1, ""},
	} {
		out, said, code := call(CheckCommand, []string{"PATH=/usr/bin:/bin", "HOME=/root"}, row.in, row.args...)
		if code != row.code || !strings.HasPrefix(out, row.want) || (code != 0) != (said != "") {
			t.Errorf("%s: %d, %s%s, want %d, %q", row.name, code, out, said, row.code, row.want)
		}
	}
}

func text(t *testing.T, p *rules.Policy) string {
	t.Helper()
	text, err := Text(p)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
