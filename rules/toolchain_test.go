package rules_test

import (
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

func TestToolchainEnv(t *testing.T) {
	p := parse(t, `{"version":1,"scope":"workspace","toolchainDirs":{"owned":"/c"},"env":{"set":{"GOCACHE":"/g"},"unset":["UV_CACHE_DIR"]}}`)
	env := []string{"GOCACHE=/g", "PIP_CACHE_DIR=/else", "MAVEN_ARGS=-q"}
	got := map[string]string{}
	for _, v := range rules.Apply(env, p.ToolchainEnv(env)) {
		name, value, _ := strings.Cut(v, "=")
		got[name] = value
	}
	for name, want := range map[string]string{
		"GOCACHE": "/g", "UV_CACHE_DIR": "", "PIP_CACHE_DIR": "/c/pip", "TMPDIR": "/c/tmp", "GOTMPDIR": "/c/tmp",
		"MAVEN_ARGS": "-q -Dmaven.repo.local=/c/maven", "XDG_CACHE_HOME": "/c/cache",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for _, text := range []string{`{"version":1}`, `{"version":1,"scope":"workspace"}`, `{"version":1,"scope":"workspace","toolchainDirs":"leaves"}`} {
		if c := parse(t, text).ToolchainEnv(env); len(c.Set)+len(c.Unset) > 0 {
			t.Errorf("%s changes the environment: %v", text, c)
		}
	}
}
