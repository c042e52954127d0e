package rules_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

func TestNotice(t *testing.T) {
	const (
		dirs = "For this run, temp and per-user cache directories are writable."
		deny = "For this run, the network is blocked; if that stops the work, report it as the blocker."
	)
	tests := []struct {
		policy string
		lost   bool // nothing of it is in force
		want   []string
	}{
		{`{"version":1}`, false, []string{"Sandbox: scope local, network allow."}},
		{`{"version":1,"scope":"unrestricted"}`, false, []string{"Sandbox: scope unrestricted, network allow."}},
		{`{"version":1,"scope":"workspace"}`, false, []string{"Sandbox: scope workspace, network allow.", dirs}},
		{`{"version":1,"scope":"workspace","toolchainDirs":"leaves"}`, false, []string{"Sandbox: scope workspace, network allow.", dirs}},
		{`{"version":1,"scope":"workspace","toolchainDirs":false}`, false, []string{"Sandbox: scope workspace, network allow."}},
		{`{"version":1,"scope":"workspace","network":"deny"}`, false, []string{"Sandbox: scope workspace, network deny.", dirs, deny}},
		{`{"version":1,"network":"deny"}`, false, []string{"Sandbox: scope local, network deny.", deny}},
		{`{"version":1,"network":{"connectTCP":[],"udp":"deny"}}`, false, []string{"Sandbox: scope local, network ports."}},
		{`{"version":1,"scope":"workspace","network":"deny"}`, true, []string{"Sandbox: scope local, network allow."}},
	}
	for _, tt := range tests {
		p, err := rules.Parse([]byte(tt.policy))
		if err != nil {
			t.Fatal(err)
		}
		e := rules.Planned(p)
		if tt.lost {
			e = rules.Effective{}
		}
		if diff := cmp.Diff(tt.want, rules.Notice(p, e)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.policy, diff)
		}
	}
}

func TestResultFields(t *testing.T) {
	tests := []struct {
		result rules.Result
		want   map[string]any
	}{
		{rules.Result{}, map[string]any{"sandbox_network": "allow"}},
		{
			rules.Result{Mechanism: "landlock", Warning: "w", Network: rules.NetworkDeny, WritableDirs: []string{"/ws", "/tmp"}},
			map[string]any{
				"sandbox_mechanism": "landlock", "sandbox_warning": "w", "sandbox_network": "deny",
				"sandbox_writable_dirs": []string{"/ws", "/tmp"},
			},
		},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.result.Fields()); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.result, diff)
		}
	}
}
