package probe_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(m *testing.M) { launch.Main(m) }

// An answer is the part of the JSON that these tests read.
type answer struct {
	OK        bool              `json:"ok"`
	Installed bool              `json:"installed"`
	Mechanism string            `json:"sandbox_mechanism"`
	Results   map[string]string `json:"results"`
	Failures  []string          `json:"failures"`
}

// A place has an installed runner and an instance.
type place struct {
	u              launch.User
	dir, installer string
	instance       string
}

func newPlace(t *testing.T, u launch.User) *place {
	t.Helper()
	launch.Need(t, launch.Landlock)
	_, installer := launch.Binaries(t)
	p := &place{u: u, dir: u.Dir(t), installer: installer}
	u.Mkdir(t, p.dir+"/shims", 0o755)
	u.Mkdir(t, p.dir+"/instances", 0o755)
	u.Mkdir(t, p.dir+"/work", 0o755) // for the probe's own files
	p.instance = u.Mkdir(t, p.dir+"/instances/default", 0o755)
	u.Mkdir(t, p.dir+"/graders", 0o755)
	u.Write(t, p.dir+"/graders/answer", "42\n", 0o644)
	launch.Install(t, p.dir+"/shims", "paperclip-runnerd", launch.Record{
		Real: launch.Look(t, "sleep"), PolicyEnv: "PAPERCLIP_RUNNER_E2E_AGENT_FS_SANDBOX",
	})
	return p
}

// firstHarness is the policy in the form of the first harness.
func (p *place) firstHarness(required bool) string {
	return fmt.Sprintf(`{"hidden":[%q],"required":%v,"instanceRoot":%q}`, p.dir+"/graders", required, p.instance)
}

func (p *place) cmd(policy string, args ...string) launch.Cmd {
	return launch.Cmd{
		Path: p.installer, Args: append([]string{"install-shim", "probe", "--dir", p.dir + "/work"}, args...),
		Env:  []string{"PATH=" + p.dir + "/shims:/usr/bin:/bin", "HOME=" + p.dir, "TMPDIR=/tmp", "PAPERCLIP_RUNNER_E2E_AGENT_FS_SANDBOX=" + policy},
		User: p.u,
	}
}

func (p *place) ask(t *testing.T, c launch.Cmd, code int) (answer, launch.Result) {
	t.Helper()
	r := c.Run(t)
	var a answer
	if err := json.Unmarshal([]byte(r.Stdout), &a); err != nil || r.Code != code {
		t.Fatalf("%v, want code %d: %v", err, code, r)
	}
	p.clean(t)
	return a, r
}

// clean checks that nothing of a probe is left.
func (p *place) clean(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{p.dir + "/work/*", p.dir + "/instances/*.probe-*"} {
		if left, err := filepath.Glob(pattern); err != nil || left != nil {
			t.Errorf("left: %q, %v", left, err)
		}
	}
}

// runScope is what a harness checks of the run scope.
var runScope = map[string]string{
	"run:otherDurableSession": "denied", "run:durableSessionListing": "denied", "run:otherRunnerState": "denied",
	"run:controlPlaneState": "denied", "run:otherOpencodeSession": "denied", "run:otherRunLog": "denied",
	"run:databaseWal": "denied", "run:secrets": "denied", "run:otherProviderTrace": "denied", "run:harnessEnviron": "denied",
	"run:ownDurableSession": "allowed", "run:ownOpencodeSession": "allowed", "run:acpxRuntime": "allowed", "run:ownProviderTrace": "allowed",
	"run:harnessCmdline": "allowed",
}

func withPrefix(results map[string]string, prefix string) map[string]string {
	out := maps.Clone(results)
	maps.DeleteFunc(out, func(key, _ string) bool { return !strings.HasPrefix(key, prefix) })
	return out
}

func TestCase39_ProbeFindsTheSessionConfined(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		a, _ := p.ask(t, p.cmd(p.firstHarness(true), "--fixture", "--json"), 0)
		if diff := cmp.Diff(runScope, withPrefix(a.Results, "run:")); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		want := map[string]string{"harnessFile": "denied", "harnessDirectory": "denied", "productFile": "allowed", "temporaryWrite": "allowed", "hidden:" + p.dir + "/graders": "denied"}
		for key, value := range want {
			if a.Results[key] != value {
				t.Errorf("%s is %q, want %q", key, a.Results[key], value)
			}
		}
		if !a.OK || !a.Installed || !strings.HasPrefix(a.Mechanism, "landlock") || len(a.Failures) > 0 {
			t.Errorf("%+v", a)
		}
	})
}

// A runner that is none of the profile's targets has no run scope, and the probe
// finds each thing that is then open.
func TestProbeFindsAnotherTargetOpen(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		launch.Install(t, p.dir+"/shims", "another", launch.Record{
			Real: launch.Look(t, "sleep"), PolicyEnv: "PAPERCLIP_RUNNER_E2E_AGENT_FS_SANDBOX",
		})
		a, r := p.ask(t, p.cmd(p.firstHarness(true), "--fixture", "--json", "--target", "another"), 1)
		for key, want := range runScope {
			open := want == "denied" && key != "run:harnessEnviron"
			if (a.Results[key] == "allowed") != (open || want == "allowed") && key != "run:acpxRuntime" {
				t.Errorf("%s is %q", key, a.Results[key])
			}
			line := "install-shim: agent_filesystem_sandbox_ineffective: " + key + ": "
			if strings.Contains(r.Stderr, line) != open && key != "run:acpxRuntime" {
				t.Errorf("%s in the failures: %v", key, r)
			}
		}
		if a.OK || len(a.Failures) < 9 {
			t.Errorf("%+v", a)
		}
	})
}

// Without Landlock a policy that requires it starts nothing; another one starts
// unconfined, and the probe sees that in each try.
func TestProbeFindsAnUnconfinedLaunch(t *testing.T) {
	launch.Need(t, launch.Seccomp, launch.IsRoot)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		c := p.cmd(p.firstHarness(true), "--json")
		c.FakeABI = &launch.ABI{Errno: syscall.ENOSYS}
		r := c.Run(t)
		if r.Code != 125 || r.Stdout != "" || !strings.HasPrefix(r.Stderr, "install-shim: agent_filesystem_sandbox_unavailable: the shim did not start the target: ") {
			t.Errorf("required: %v", r)
		}
		p.clean(t)

		c = p.cmd(p.firstHarness(false), "--json")
		c.FakeABI = &launch.ABI{Errno: syscall.ENOSYS}
		a, r := p.ask(t, c, 1)
		if a.OK || a.Mechanism != "unavailable" || a.Results["harnessFile"] != "allowed" || a.Results["hidden:"+p.dir+"/graders"] != "allowed" {
			t.Errorf("not required: %+v", a)
		}
		for _, want := range []string{
			"install-shim: agent_filesystem_sandbox_unavailable: ",
			"install-shim: agent_filesystem_sandbox_ineffective: harnessFile: read " + p.dir + "/graders/answer: allowed, expected denied\n",
			"graders by a symbolic link: allowed",
		} {
			if !strings.Contains(r.Stderr, want) {
				t.Errorf("no %q: %v", want, r)
			}
		}
		if text, err := os.ReadFile(p.dir + "/graders/answer"); err != nil || string(text) != "42\n" {
			t.Errorf("the probe changed what it tried: %q, %v", text, err)
		}
		if left, err := filepath.Glob(p.dir + "/graders/.*probe*"); err != nil || left != nil {
			t.Errorf("left: %q", left)
		}
	})
}

// TestCase40_ProbeFindsWhatRootKeeps: with its capabilities root reads the launcher's environment,
// and the probe says so.
func TestCase40_ProbeFindsWhatRootKeeps(t *testing.T) {
	launch.Need(t, launch.IsRoot)
	p := newPlace(t, launch.Root)
	policy := fmt.Sprintf(`{"version":1,"profile":"paperclip-runner","root":%q,"hidden":[%q],"capabilities":%%q}`, p.instance, p.dir+"/graders")
	if a, _ := p.ask(t, p.cmd(fmt.Sprintf(policy, "restricted"), "--fixture", "--json"), 0); a.Results["run:harnessEnviron"] != "denied" {
		t.Errorf("restricted: %+v", a)
	}
	a, _ := p.ask(t, p.cmd(fmt.Sprintf(policy, "keep"), "--fixture", "--json"), 1)
	if a.Results["run:harnessEnviron"] != "allowed" || !slices.ContainsFunc(a.Failures, func(f string) bool { return strings.HasPrefix(f, "run:harnessEnviron: ") }) {
		t.Errorf("kept: %+v", a)
	}
}

// Interrupted at any moment, a probe leaves nothing.
func TestInterruptedProbeLeavesNothing(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		interrupted := 0
		for round := 0; interrupted < 3 && round < 60; round++ {
			c := p.cmd(p.firstHarness(true), "--fixture")
			proc := c.Start(t)
			// Stopped in the middle: once its fixture is there, or earlier.
			pattern := p.dir + "/instances/*.probe-*"
			if round%3 == 2 {
				pattern = p.dir + "/work/*/shim/*"
			}
			for {
				if found, _ := filepath.Glob(pattern); found != nil || !alive(proc.PID) {
					break
				}
			}
			proc.Kill(t, syscall.SIGSTOP)
			proc.Kill(t, []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}[round%3])
			proc.Kill(t, syscall.SIGCONT)
			r := proc.Wait(t)
			switch r.Code {
			case 130:
				interrupted++
			case 0: // it was through already
			default:
				t.Errorf("%v", r)
			}
			p.clean(t)
		}
		if interrupted == 0 {
			t.Error("no probe was interrupted")
		}
	})
}

// alive reports whether a child has not ended yet.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// TestProbeSaysWhetherACallerMeetsTheShim: a caller with an absolute path does not meet a shim on PATH, and
// meets one in place.
func TestProbeSaysWhetherACallerMeetsTheShim(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		tool := p.dir + "/tool"
		u.Write(t, tool, "#!/bin/sh\nexit 0\n", 0o755)
		launch.Install(t, p.dir+"/shims", "tool", launch.Record{Real: tool})
		for _, row := range []struct {
			command string
			code    int
		}{
			{"tool", 0},
			{"env tool", 0},
			{"exec -a x " + p.dir + "/shims/tool", 0},
			{"/bin/sh -c tool", 0},
			{tool, 1},
			{"env -i tool", 1},
			{"PATH=" + p.dir + " tool", 1},
			{"exit 0", 1},
		} {
			c := p.cmd("", "--target", "tool", "--launch", "bash -c '"+row.command+"'")
			if r := c.Run(t); r.Code != row.code || (r.Code == 1) != strings.Contains(r.Stderr, "agent_filesystem_sandbox_ineffective: ") {
				t.Errorf("%s: want code %d: %v", row.command, row.code, r)
			}
			p.clean(t)
		}
		if r := (launch.Cmd{Path: p.installer, Args: []string{"install-shim", "install", "--in-place", tool}, User: u, Env: []string{"PATH=/usr/bin:/bin"}}).Run(t); r.Code != 0 {
			t.Fatal(r)
		}
		if err := os.Remove(p.dir + "/shims/tool"); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{tool, "PATH=" + p.dir + " tool"} {
			if r := p.cmd("", "--target", tool, "--launch", command).Run(t); r.Code != 0 {
				t.Errorf("in place: %s: %v", command, r)
			}
		}
	})
}
