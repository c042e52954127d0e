package network

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A kernel whose Landlock cannot check ports: the report does not say that a
// list of ports is in force.
func TestUncheckedPortsAreNotReportedInForce(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Seccomp)
	u := launch.Current()
	dir := u.Dir(t)
	report := filepath.Join(dir, "report")
	c := launch.Shell(launch.Install(t, dir, "sh", launch.Record{Real: "/bin/sh"}), "echo started")
	c.User, c.FakeABI = u, &launch.ABI{Version: 3}
	for _, row := range []struct {
		network any
		want    string
	}{
		{map[string]any{"connectTCP": []int{1}, "udp": "deny"}, "allow"},
		{map[string]any{"bindTCP": []int{}, "udp": "deny"}, "allow"},
		{map[string]any{"udp": "deny"}, "ports"},
		{"deny", "deny"},
	} {
		os.Remove(report)
		c.Policy = map[string]any{"version": 1, "required": false, "network": row.network, "report": report}
		if r := c.Run(t); r.Code != 0 || r.Stdout != "started\n" {
			t.Errorf("%v: %v", row.network, r)
			continue
		}
		if got := launch.Report(t, report).Network; got != row.want {
			t.Errorf("%v: sandbox_network %q, want %q", row.network, got, row.want)
		}
	}
}
