package network

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// Whatever a policy says of the network, another process of the user cannot be
// traced, and so not be made to send.
func TestOtherProcessesAreNotTraced(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.ABIAtLeast(4), launch.IsRoot)
	u := launch.Nobody
	dir := u.Dir(t)
	sh := launch.Install(t, dir, "sh", launch.Record{Real: "/bin/sh"})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	other := launch.Cmd{Path: "/bin/cat", User: u, Stdin: r}.Start(t)
	defer other.Wait(t)
	defer w.Close()
	try := func(network any, abi *launch.ABI) launch.Result {
		// The kernel asks as for ptrace(2), see proc(5).
		c := launch.Shell(sh, fmt.Sprintf("readlink /proc/%d/exe", other.PID))
		c.User, c.FakeABI = u, abi
		if network != nil {
			c.Policy = map[string]any{"version": 1, "network": network}
		}
		return c.Run(t)
	}
	if free := try(nil, nil); !strings.HasSuffix(free.Stdout, "/cat\n") {
		t.Skipf("not even without a policy: %v", free)
	}
	for _, network := range []any{
		"deny", map[string]any{"udp": "deny"}, map[string]any{"udp": "allow"}, map[string]any{"udp": "deny", "bindTCP": []int{}},
	} {
		if r := try(network, nil); r.Stdout != "" || r.Code == 0 || r.Code >= 125 {
			t.Errorf("%v: %v", network, r)
		}
	}
	// Landlock before ABI 4 has nothing to hold for a network, so there is no domain.
	if r := try("deny", &launch.ABI{Version: 3}); !strings.HasSuffix(r.Stdout, "/cat\n") {
		t.Errorf("without a domain: %v; then there is no limit", r)
	}
}
