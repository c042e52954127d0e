package network

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// The report says what is in force and by what, and what of the launcher's was
// closed or stays.
func TestReportSaysWhatIsInForce(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.ABIAtLeast(4))
	r := newRecorder(t)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		dir := u.Dir(t)
		run := func(network any) report.Report {
			t.Helper()
			sh := launch.Install(t, dir, "sh", launch.Record{Real: "/bin/sh"})
			path := filepath.Join(dir, "report")
			defer os.Remove(path)
			in, _, _ := inheritConn("tcp4")(t, r, "")
			defer in.Close()
			other, _, _ := inheritSocket(unix.SOCK_DGRAM)(t, r, "")
			defer other.Close()
			res := launch.Cmd{
				Path: sh, Args: []string{"sh", "-c", "exit 3"}, User: u, Stdin: in, Extra: []*os.File{other},
				Policy: map[string]any{"version": 1, "network": network, "report": path},
			}.Run(t)
			if res.Code != 3 || res.Stderr != "" {
				t.Fatal(res)
			}
			return launch.Report(t, path)
		}
		for _, c := range []struct {
			name     string
			network  any
			enforced string
		}{
			{"deny", "deny", "network/seccomp network-tcp/landlock keyrings/seccomp"},
			{"ports", map[string]any{"connectTCP": []int{1}, "bindTCP": []int{2}, "udp": "deny"}, "connect-tcp/landlock bind-tcp/landlock udp/seccomp other-sockets/seccomp keyrings/seccomp"},
			{"ports", map[string]any{"udp": "allow"}, "other-sockets/seccomp keyrings/seccomp file-ioctls/seccomp"},
		} {
			got := run(c.network)
			var by []string
			for _, e := range got.Enforced {
				if e.What != "capabilities" && e.What != "kernel-files" {
					by = append(by, e.What+"/"+e.By)
				}
			}
			if strings.Join(by, " ") != c.enforced || got.Network != c.name || !strings.Contains(got.Mechanism, "seccomp") {
				t.Errorf("%v: network %q by %q: %q, want %q", c.network, got.Network, got.Mechanism, by, c.enforced)
			}
			if len(got.Descriptors) != 2 || got.Descriptors[0].FD != 0 || got.Descriptors[0].Closed || got.Descriptors[1].FD != 3 || !got.Descriptors[1].Closed {
				t.Errorf("%v: descriptors %+v", c.network, got.Descriptors)
			}
			if n := launch.NotEnforced(got, "network-services"); len(n) != 1 || n[0] != "limit" {
				t.Errorf("%v: not enforced: %+v", c.network, got.NotEnforced)
			}
		}
	})
}
