package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// TestMain: a stage starts this test binary as the helper.
func TestMain(m *testing.M) {
	if os.Getenv(HelperEnv) != "" {
		v := &voice.Caller{Err: os.Stderr}
		os.Exit(v.Finish(Helper(os.Stdin, os.Stdout)))
	}
	launch.Main(m)
}

// call runs a probe and returns what it said.
func call(environ []string, in string, args ...string) (out, said string, code int) {
	var o, e bytes.Buffer
	v := &voice.Caller{In: strings.NewReader(in), Out: &o, Err: &e, Environ: environ}
	code = v.Finish(Run(v, args))
	return o.String(), e.String(), code
}

// world makes a directory with something to hide, and a shim for /bin/true.
func world(t *testing.T) (dir string) {
	t.Helper()
	launch.Need(t, launch.Landlock)
	dir = launch.Dir(t)
	for _, d := range []string{"/secret", "/open", "/shims"} {
		if err := os.Mkdir(dir+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"/secret/file", "/open/file"} {
		if err := os.WriteFile(dir+file, []byte("text"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	launch.Install(t, dir+"/shims", "tool", launch.Record{Real: "/bin/true", PolicyEnv: "MINE"})
	launch.Install(t, dir+"/shims", "usual", launch.Record{Real: "/bin/true"})
	launch.Install(t, dir+"/shims", "other", launch.Record{Real: "/bin/false", PolicyEnv: "MINE"})
	return dir
}

// TestProbe: each exit code, with the policy that gives it.
func TestProbe(t *testing.T) {
	dir := world(t)
	path := "PATH=" + dir + "/shims:/usr/bin:/bin"
	policy := `{"version":1,"hidden":["` + dir + `/secret"],"report":"/nowhere","env":{"set":{"A":"1"}}}`
	for _, row := range []struct {
		name, want string
		environ    []string
		in         string
		args       []string
		code       int
	}{
		{"the shim whose variable holds a policy", "other: a copy of " + dir + "/shims/other; landlock", []string{path, "MINE=" + policy}, "", nil, 0},
		{"a policy of a file", "a copy of " + dir + "/shims/tool;", []string{path}, policy, []string{"--policy", "-", "--target", "tool"}, 0},
		{"an expectation that holds", "", []string{path}, policy, []string{"--policy", "-", "--target", "tool", "--expect", "x=read:" + dir + "/secret/file:denied"}, 0},
		{"one that does not", "ineffective: x: read " + dir + "/open/file: allowed, expected denied", []string{path}, policy, []string{"--policy", "-", "--target", "tool", "--expect", "x=read:" + dir + "/open/file:denied"}, 1},
		{"a path that is not there", "absent (ENOENT), expected denied", []string{path}, policy, []string{"--policy", "-", "--target", "tool", "--expect", "x=read:" + dir + "/open/no:denied"}, 1},
		{"a policy that cannot start", "unavailable: the shim did not start the target", []string{path}, `{"version":1,"hidden":["` + dir + `"]}`, []string{"--policy", "-", "--target", "tool"}, 125},
		{"no shim", "no shim is installed for it", []string{path}, policy, []string{"--policy", "-", "--target", "ls"}, 125},
		{"no policy", "no policy", []string{path}, "", []string{"--target", "tool"}, 2},
		{"no profile", "--fixture wants", []string{path}, policy, []string{"--policy", "-", "--target", "tool", "--fixture"}, 2},
		{"a bad flag", "-x", []string{path}, "", []string{"-x"}, 2},
		{"no time", "must be positive", []string{path}, "", []string{"--timeout", "0s"}, 2},
		{"a launch that meets it", "meets a shim: argv[0] tool, real program /bin/true", []string{path}, "", []string{"--launch", "tool"}, 0},
		{"a launch that does not", "meets no shim", []string{path}, "", []string{"--launch", "/bin/true"}, 1},
		{"another shim of the same variable", "not to that of tool", []string{path}, "", []string{"--target", "tool", "--launch", "other"}, 1},
		{"another's shim", "not to that of ls", []string{path}, "", []string{"--target", "ls", "--launch", "usual"}, 1},
	} {
		out, said, code := call(row.environ, row.in, append([]string{"--dir", dir}, row.args...)...)
		if code != row.code || !strings.Contains(out+said, row.want) {
			t.Errorf("%s: %d, %s%s, want %d, %q", row.name, code, out, said, row.code, row.want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// TestEveryWay: what is hidden is tried by each way, and nothing of it works.
func TestEveryWay(t *testing.T) {
	dir := world(t)
	out, said, code := call([]string{"PATH=" + dir + "/shims"}, `{"version":1,"hidden":["`+dir+`/secret","`+dir+`/later/x"]}`, "--policy", "-", "--target", "tool", "--dir", dir, "--json")
	if code != 0 {
		t.Fatalf("%d, %s%s", code, out, said)
	}
	var got struct{ Checks []check }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	ways := map[string][]string{}
	for _, c := range got.Checks {
		if !strings.HasPrefix(c.Name, "hidden:") {
			continue
		}
		key := c.Op + " " + strings.TrimPrefix(c.Path, dir)
		if i := strings.Index(key, ".install-shim-probe"); i > 0 {
			key = key[:i]
		}
		ways[key] = append(ways[key], c.Way)
		if c.Expected != denied || c.Result != denied || !c.OK {
			t.Errorf("%+v", c)
		}
	}
	four := []string{"", "a symbolic link", "..", "/proc/self/root"}
	five := append(slices.Clone(four), "an inherited descriptor")
	for key, want := range map[string][]string{
		"list /secret": five, "create /secret/": four, "read /secret/file": five, "write /secret/file": four, "execute /secret/file": four,
		"create /later": four,
	} {
		if !slices.Equal(ways[key], want) {
			t.Errorf("%s: %q, want %q", key, ways[key], want)
		}
		delete(ways, key)
	}
	if len(ways) > 0 {
		t.Errorf("more: %q", ways)
	}
	if text, err := os.ReadFile(dir + "/secret/file"); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestWays: each way is another path to the same file.
func TestWays(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(dir+"/links", 0o755), os.Mkdir(dir+"/a", 0o755), os.WriteFile(dir+"/a/file", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	want, err := os.Stat(dir + "/a/file")
	if err != nil {
		t.Fatal(err)
	}
	s := &set{stage: &stage{dir: dir}}
	s.everyWay("x", opRead, dir+"/a/file")
	tried := map[string]bool{}
	for _, c := range s.checks {
		if got, err := os.Stat(c.try.Path); err != nil || !os.SameFile(got, want) {
			t.Errorf("%s: %s: %v", c.Way, c.try.Path, err)
		}
		tried[c.try.Path] = true
	}
	for _, p := range []string{dir + "/a/file", dir + "/links/1", dir + "/a/../a/file", "/proc/self/root" + dir + "/a/file"} {
		if !tried[p] {
			t.Errorf("%s is not tried: %v", p, tried)
		}
	}
}

// TestControl: the same try outside is made beside each check, but nothing is
// created for it.
func TestControl(t *testing.T) {
	dir := t.TempDir()
	s := &set{prefix: "p:"}
	for _, row := range []struct {
		try     try
		outside string
	}{
		{try{Op: opList, Path: dir}, allowed},
		{try{Op: opList, Path: dir + "/no"}, "absent"},
		{try{Op: opCreate, Path: dir + "/new"}, allowed},
		{try{Op: opCreate, Path: dir + "/no/new"}, "absent"},
		{try{Op: opUse, Path: dir}, ""},
	} {
		if c := s.add("x", denied, "", row.try); c.Outside != row.outside || c.Name != "p:x" {
			t.Errorf("%+v: %+v, want %q", row.try, c, row.outside)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("made: %v, %v", entries, err)
	}
}

// TestSample: a file is tried that can be read here, and nothing that is exposed.
func TestSample(t *testing.T) {
	dir := t.TempDir()
	for name, perm := range map[string]os.FileMode{"a/open": 0o755, "b/empty": 0, "c/text": 0o644, "d/program": 0o755} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		text := "#!/bin/sh\n"
		if perm == 0 {
			text, perm = "", 0o644
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), perm); err != nil {
			t.Fatal(err)
		}
	}
	file, program := sample(dir, []string{dir + "/a"})
	if file != dir+"/c/text" || program != dir+"/d/program" {
		t.Errorf("%s, %s", file, program)
	}
	if file, program := sample(dir+"/b", nil); file != "" || program != "" {
		t.Errorf("%s, %s", file, program)
	}
}

// TestResults: of several checks of one name, a failed one speaks for all.
func TestResults(t *testing.T) {
	res := &result{checks: []*check{
		{Name: "a", Result: denied, OK: true, Op: "read", Path: "/x"},
		{Name: "a", Result: allowed, Expected: denied, Op: "read", Path: "/x y", Way: ".."},
		{Name: "a", Result: "absent", Expected: denied, Errno: "ENOENT", Op: "list", Path: "/z"},
		{Name: "b", Result: allowed, OK: true}, {Name: "b", Result: denied, OK: true},
	}}
	got := res.results()
	if got["a"] != allowed || got["b"] != allowed || got["harnessFile"] != "unprobed" {
		t.Errorf("%v", got)
	}
	want := []string{
		`a: read "/x y" by ..: allowed, expected denied`,
		"a: list /z: absent (ENOENT), expected denied: there is nothing, so that nothing was shown",
	}
	if got := res.failures(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var out, said bytes.Buffer
	v := &voice.Caller{Out: &out, Err: &said}
	for _, row := range []struct {
		name string
		res  result
		code int
	}{
		{"as expected", result{checks: res.checks[:1]}, 0},
		{"a failure", *res, 1},
		{"no confinement", result{report: report.Report{Mechanism: "unavailable"}}, 1},
	} {
		for _, asJSON := range []bool{false, true} {
			if code := v.Finish(row.res.print(v, &options{json: asJSON})); code != row.code {
				t.Errorf("%s: %d", row.name, code)
			}
		}
	}
}

// TestRunCommand: a command that does not end is killed with its children, and an
// interruption is told from that.
func TestRunCommand(t *testing.T) {
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		return r, w
	}
	for _, row := range []struct {
		name    string
		ctx     func() (context.Context, context.CancelFunc)
		timeout time.Duration
		want    error
	}{
		{"too long", func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) }, 50 * time.Millisecond, context.DeadlineExceeded},
		{"interrupted", func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(50*time.Millisecond, cancel)
			return ctx, cancel
		}, time.Minute, errInterrupted},
	} {
		ctx, cancel := row.ctx()
		r, w := pipe()
		err := runCommand(ctx, row.timeout, "/bin/sh", func(cmd *exec.Cmd) {
			cmd.Args = []string{"sh", "-c", "sleep 600 & wait"}
			cmd.ExtraFiles = []*os.File{w}
		})
		cancel()
		w.Close()
		if !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", row.name, err, row.want)
		}
		// The end of the pipe says that no child has it any more.
		done := make(chan struct{})
		go func() { _, _ = r.Read(make([]byte, 1)); close(done) }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: a child goes on", row.name)
		}
		r.Close()
	}
	if err := runCommand(context.Background(), time.Minute, "/bin/false", func(*exec.Cmd) {}); err == nil {
		t.Error("a failure is none")
	}
}
