package network

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A client is a shim for the shell that starts the sender.
type client struct {
	user  launch.User
	sh    string
	out   string
	setup *launch.Setup
}

func newClient(t *testing.T, u launch.User) *client {
	t.Helper()
	dir := u.Dir(t)
	return &client{user: u, sh: launch.Install(t, dir, "sh", launch.Record{Real: "/bin/sh"}), out: filepath.Join(dir, "report")}
}

// does returns what the sender says of one operation, under network of a policy
// or, with nil, without a policy.
func (c *client) does(t *testing.T, operation string, port int, network any) string {
	t.Helper()
	cmd := launch.Shell(c.sh, `exec "$1" "$2" token "$3" 0 -`, sender(t), operation, strconv.Itoa(port))
	cmd.User, cmd.Setup = c.user, c.setup
	if network != nil {
		cmd.Policy = map[string]any{"version": 1, "required": false, "network": network, "report": c.out}
	}
	r := cmd.Run(t)
	if r.Code != 0 {
		t.Fatalf("%s: %v", operation, r)
	}
	return strings.TrimSpace(r.Stdout)
}

func (c *client) reported(t *testing.T) report.Report {
	t.Helper()
	rs := launch.Reports(t, c.out)
	if len(rs) == 0 {
		t.Fatal("no report")
	}
	return rs[len(rs)-1]
}

// freePort is a port that nothing is bound to.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// Of the ports, those that are listed can be bound, and 0 only where it is listed.
// A socket that was never bound takes a free port all the same; the report says so.
func TestOnlyListedPortsAreBound(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.ABIAtLeast(4))
	port, other := freePort(t), freePort(t)
	bind := func(ports ...int) map[string]any {
		return map[string]any{"bindTCP": append([]int{}, ports...), "udp": "deny"}
	}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		c := newClient(t, u)
		for _, row := range []struct {
			name                       string
			network                    any
			port, other, any, unlisted string
		}{
			{"no policy", nil, "sent", "sent", "sent", "sent"},
			{"not limited", map[string]any{"connectTCP": []int{1}, "udp": "deny"}, "sent", "sent", "sent", "sent"},
			{"one port", bind(port), "sent", "EACCES", "EACCES", "sent"},
			{"port 0", bind(0), "EACCES", "EACCES", "sent", "sent"},
			{"none", bind(), "EACCES", "EACCES", "EACCES", "sent"},
			{"deny", "deny", "EACCES", "EACCES", "EACCES", "EACCES"},
		} {
			t.Run(row.name, func(t *testing.T) {
				got := []string{
					c.does(t, "bind", port, row.network), c.does(t, "bind", other, row.network),
					c.does(t, "bind-any", 0, row.network), c.does(t, "listen", 0, row.network),
				}
				if want := []string{row.port, row.other, row.any, row.unlisted}; strings.Join(got, " ") != strings.Join(want, " ") {
					t.Errorf("the port, another, 0, and listen: %q, want %q", got, want)
				}
				network, limits := row.network.(map[string]any)
				if !limits {
					return
				}
				_, lists := network["bindTCP"]
				r := c.reported(t)
				if launch.Enforced(r, "bind-tcp") != lists || (len(launch.NotEnforced(r, "listen")) == 1) != lists {
					t.Errorf("the report: %+v, %+v", r.Enforced, r.NotEnforced)
				}
			})
		}
	})
}

// Landlock denies TCP a second time: also where the kernel takes no filter, which
// a policy that is not required may put up with.
func TestTCPIsDeniedASecondTime(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.ABIAtLeast(4), launch.IsRoot)
	r := newRecorder(t)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		c := newClient(t, u)
		c.setup = &launch.Setup{Errno: []launch.Errno{{Nr: unix.SYS_SECCOMP, Errno: unix.ENOSYS}}}
		for operation, want := range map[string]string{"tcp4": "EACCES", "bind-any": "EACCES", "udp4-sendto": "sent"} {
			if got := c.does(t, operation, r.port, nil); got != "sent" {
				t.Errorf("%s without a policy: %s", operation, got)
			}
			if got := c.does(t, operation, r.port, "deny"); got != want {
				t.Errorf("%s: %s, want %s", operation, got, want)
			}
		}
		if r := c.reported(t); !launch.Enforced(r, "network-tcp") || launch.Enforced(r, "network") {
			t.Errorf("the report: %+v", r.Enforced)
		}
	})
}
