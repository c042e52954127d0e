package isolation

import (
	"path/filepath"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// The flags of the audit log are asked of kernels that know them, and never
// stop a launch on others. The faked kernel refuses every flag.
func TestAuditStopsNoLaunch(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Seccomp, launch.ABIAtLeast(7))
	for _, abi := range []*launch.ABI{nil, {Version: 7, Errata: 7}, {Version: 6, Errata: 7}, {Version: 1}} {
		u := launch.Current()
		dir := u.Dir(t)
		sh := launch.Install(t, dir, "sh", launch.Record{Real: "/bin/sh"})
		report := filepath.Join(dir, "report")
		c := launch.Shell(sh, "echo started")
		c.User, c.FakeABI = u, abi
		c.Policy = object{"version": 1, "hidden": []string{"/srv/none"}, "audit": true, "report": report}
		if r := c.Run(t); r.Stdout != "started\n" || r.Stderr != "" {
			t.Errorf("%+v: %v", abi, r)
		}
		got := launch.Report(t, report)
		if want := abi == nil || abi.Version >= 7; launch.Enforced(got, "audit") != want || (len(launch.NotEnforced(got, "audit")) == 0) != want {
			t.Errorf("%+v: %+v, %+v", abi, got.Enforced, got.NotEnforced)
		}
	}
}
