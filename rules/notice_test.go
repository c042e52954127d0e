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
		want   []string
	}{
		{`{"version":1}`, []string{"Sandbox: scope local, network allow."}},
		{`{"version":1,"scope":"unrestricted"}`, []string{"Sandbox: scope unrestricted, network allow."}},
		{`{"version":1,"scope":"workspace"}`, []string{"Sandbox: scope workspace, network allow.", dirs}},
		{`{"version":1,"scope":"workspace","toolchainDirs":"leaves"}`, []string{"Sandbox: scope workspace, network allow.", dirs}},
		{`{"version":1,"scope":"workspace","toolchainDirs":false}`, []string{"Sandbox: scope workspace, network allow."}},
		{`{"version":1,"scope":"workspace","network":"deny"}`, []string{"Sandbox: scope workspace, network deny.", dirs, deny}},
		{`{"version":1,"network":"deny"}`, []string{"Sandbox: scope local, network deny.", deny}},
		{`{"version":1,"network":{"connectTCP":[],"udp":"deny"}}`, []string{"Sandbox: scope local, network ports."}},
	}
	for _, tt := range tests {
		p, err := rules.Parse([]byte(tt.policy))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, rules.Notice(p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.policy, diff)
		}
	}
}
