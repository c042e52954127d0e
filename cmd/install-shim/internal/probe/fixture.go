package probe

import (
	"fmt"
	"os"
	"path"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// A fixture is a made-up instance of the runner that the profile
// paperclip-runner knows, with state of the probe's own session and of another.
type fixture struct{ root string }

const (
	fixtureSession = "own-session"
	runnerState    = "/runtime/paperclip-runner"
)

// newFixture makes an instance beside the real one.
func newFixture(real string) (*fixture, error) {
	dir, base := path.Split(path.Clean(real))
	root, err := os.MkdirTemp(path.Clean(dir), base+".probe-")
	if err != nil {
		return nil, fmt.Errorf("make a fixture: %w", err)
	}
	f := &fixture{root: root}
	for _, file := range []string{
		f.state("/durable-sessions/other-scope/runner/state"), f.state("/durable-sessions/own-scope/runner/state"),
		f.state("/runner/other/state"), f.state("/control-plane/state"),
		f.state("/opencode/other-session/state"), f.state("/opencode/own-session/state"),
		root + "/data/run-logs/other.log", f.trace("other"), f.trace("own"),
		root + "/db/pg_wal/000000010000000000000001", root + "/secrets/key", root + "/data/backups/dump",
	} {
		err := os.MkdirAll(path.Dir(file), 0o700)
		if err == nil {
			err = os.WriteFile(file, []byte("fixture\n"), 0o600)
		}
		if err != nil {
			f.remove()
			return nil, fmt.Errorf("make a fixture: %w", err)
		}
	}
	return f, nil
}

func (f *fixture) remove() { _ = os.RemoveAll(f.root) }

func (f *fixture) state(rel string) string { return f.root + runnerState + rel }
func (f *fixture) trace(name string) string {
	return f.root + "/data/provider-traces/" + name + ".jsonl"
}

// args and env are those of a runner's session.
func (f *fixture) args() []string {
	return []string{"--state-dir", f.state("/durable-sessions/own-scope/runner"), "--session-id", fixtureSession}
}

func (f *fixture) env(env []string) []string {
	return rules.Apply(env, rules.EnvChange{
		Unset: []string{"PAPERCLIP_OPENCODE_RUNTIME_DIR"},
		Set:   []rules.EnvVar{{Name: "PAPERCLIP_PROVIDER_TRACE_PATH", Value: f.trace("own")}},
	})
}

// checks adds what a harness checks of the run scope, under its names.
func (f *fixture) checks(s *set) {
	s.prefix = "run:"
	s.add("otherDurableSession", denied, "", try{Op: opRead, Path: f.state("/durable-sessions/other-scope/runner/state")})
	s.add("durableSessionListing", denied, "", try{Op: opList, Path: f.state("/durable-sessions")})
	s.add("otherRunnerState", denied, "", try{Op: opRead, Path: f.state("/runner/other/state")})
	s.add("controlPlaneState", denied, "", try{Op: opRead, Path: f.state("/control-plane/state")})
	s.add("otherOpencodeSession", denied, "", try{Op: opRead, Path: f.state("/opencode/other-session/state")})
	s.add("otherRunLog", denied, "", try{Op: opRead, Path: f.root + "/data/run-logs/other.log"})
	s.add("databaseWal", denied, "", try{Op: opList, Path: f.root + "/db/pg_wal"})
	s.add("secrets", denied, "", try{Op: opRead, Path: f.root + "/secrets/key"})
	s.add("otherProviderTrace", denied, "", try{Op: opRead, Path: f.trace("other")})
	s.launcher(denied)
	s.add("ownDurableSession", allowed, "", try{Op: opUse, Path: f.state("/durable-sessions/own-scope/runner")})
	s.add("ownOpencodeSession", allowed, "", try{Op: opUse, Path: f.state("/opencode/" + fixtureSession)})
	s.add("acpxRuntime", allowed, "", try{Op: opUse, Path: f.state("/acpx")})
	s.add("ownProviderTrace", allowed, "", try{Op: opAppend, Path: f.trace("own")})
}
