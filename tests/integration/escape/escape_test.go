package escape

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

type object = map[string]any

// isolated is all that a launch can be kept from reaching.
var isolated = []string{"signals", "abstract-unix", "unix-sockets", "proc", "tty"}

// policies are what the attempts are made under, with what each promises.
var policies = []struct {
	name     string
	policy   func(p *place) object
	promises []string
}{
	{"hidden", func(p *place) object { return object{"hidden": p.hidden()} }, []string{"hidden", "kernel", "privileges"}},
	{"workspace", func(p *place) object {
		return object{"scope": "workspace", "workspace": p.at("work"), "writable": p.writable(), "toolchainDirs": false}
	}, []string{"writes", "kernel", "privileges"}},
	{"isolate", func(*place) object { return object{"network": "deny", "isolate": isolated} }, []string{
		"network", "signals", "abstract", "unix", "proc", "tty", "ipc", "kernel", "privileges",
	}},
	{"ports", func(*place) object {
		return object{
			"network": object{"connectTCP": []int{}, "bindTCP": []int{}, "udp": "deny"},
			"isolate": []string{"signals", "abstract-unix", "proc", "tty"},
		}
	}, append([]string{"abstract", "signals", "proc", "tty"}, overPorts...)},
	{"keep", func(p *place) object { return object{"hidden": p.hidden(), "capabilities": "keep"} }, []string{"hidden"}},
	{"all", func(p *place) object {
		return object{
			"hidden": p.hidden(), "scope": "workspace", "workspace": p.at("work"), "writable": p.writable(), "toolchainDirs": false,
			"network": "deny", "isolate": isolated,
		}
	}, promises},
}

// overPorts are the attempts at a network that also a policy denies which lets
// sockets be made.
var overPorts = []string{
	"tcp", "tcp6", "tcp-mapped", "mptcp", "mptcp6", "tcp-fast-open-sendto", "tcp-fast-open-sendmsg", "tcp-fast-open-connect", "tcp-bind",
	"udp", "udp-connect", "udp6", "udp-lite", "ping", "raw", "raw6", "packet", "packet-datagram", "socket-diagnosis", "netlink-to-outside",
	"netlink-events", "netlink-generic", "netlink-audit", "netlink-netfilter", "family-vsock", "family-xdp", "family-key", "family-smc",
	"family-sctp", "family-tipc", "family-alg", "inherited-connection", "inherited-udp", "inherited-listener", "ring-socket", "tcp-32-bit",
	"network-in-shell", "setns-network",
}

// promises are all of them.
var promises = []string{"hidden", "writes", "network", "signals", "abstract", "unix", "proc", "tty", "ipc", "kernel", "privileges"}

func (p *place) hidden() []string {
	list := []string{p.at("hidden"), p.at("above/hidden"), p.at("twin/hidden"), p.at("linked"), p.at("above/none")}
	if p.Btrfs != "" {
		list = append(list, p.Btrfs+"/hidden", p.Btrfs+"/hidden-2", p.Btrfs+"/hidden-3", p.Btrfs+"/plain")
	}
	return list
}

func (p *place) writable() []string {
	if p.Btrfs == "" {
		return []string{}
	}
	return []string{p.Btrfs + "/work"}
}

// denials are the errnos by which a confinement says no. One that could come
// from a mistake in the attempt is none.
var denials = []string{"EACCES", "EPERM", "EXDEV", "ENOSYS", "EROFS"}

func denied(name, result string) bool {
	errno, ok := strings.CutPrefix(result, "denied ")
	if !ok {
		return false
	}
	if errno == "EBADF" && strings.Contains(name, "inherited") {
		return true // closed
	}
	return slices.Contains(denials, errno) || errno == "unseen" || errno == "silently"
}

// try makes the attempts that would break some promises and returns the result
// of each.
func (p *place) try(t *testing.T, policy any, promises []string) map[string]string {
	t.Helper()
	c := p.command(policy, promises)
	key, err := os.Open(p.at("hidden/key"))
	if err != nil {
		t.Fatal(err)
	}
	defer key.Close()
	c.Stdin = key
	r := c.Run(t)
	if r.Code != 0 {
		t.Fatalf("the attempts were not made: %v", r)
	}
	if r.Stderr != "" {
		t.Logf("stderr: %s", r.Stderr)
	}
	out := map[string]string{}
	for line := range strings.Lines(r.Stdout) {
		name, result, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		out[name] = result
	}
	return out
}

// TestEscapes makes every attempt without a policy, and those that succeed
// under each policy that promises to deny them.
func TestEscapes(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.ABIAtLeast(6), launch.Seccomp, launch.UserNS, launch.IsRoot)
	list := attempts(t)
	documented, escaped, possible := map[string]bool{}, map[string]bool{}, map[string]bool{}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		counted := control(t, u, list)
		maps.Copy(possible, counted)
		results := map[string]map[string]string{}
		for _, y := range policies {
			if y.name == "keep" && u.UID != 0 {
				continue // of use to root only
			}
			t.Run(y.name, func(t *testing.T) {
				ownMachine(t)
				p := newPlace(t, u)
				policy := y.policy(p)
				policy["version"] = 1
				results[y.name] = p.try(t, policy, y.promises)
			})
		}
		var table strings.Builder
		totals := map[string]int{}
		for _, a := range list {
			if !counted[a.Name] {
				continue
			}
			fmt.Fprintf(&table, "%-40s", a.Name)
			for _, y := range policies {
				result, made := results[y.name][a.Name]
				if !made {
					continue
				}
				fmt.Fprintf(&table, "  %s: %s", y.name, result)
				kind, _, _ := strings.Cut(result, " ")
				totals[kind]++
				switch {
				case denied(a.Name, result):
				case result == "documented":
					documented[a.Limit] = true
				case result == "ESCAPED" && y.name == "keep":
					documented[keptCapabilities] = true
				case result == "ESCAPED" && open[a.Name] != 0:
					escaped[a.Name] = true
				default:
					t.Errorf("%s under %s: %s", a.Name, y.name, result)
				}
			}
			table.WriteByte('\n')
		}
		t.Logf("%d attempts that succeed without a policy: %v\n%s", len(counted), totals, table.String())
		if len(counted) < leastAttempts {
			t.Errorf("%d attempts count, want %d", len(counted), leastAttempts)
		}
	})
	if t.Failed() {
		return // what follows needs all results
	}
	for _, name := range slices.Sorted(maps.Keys(open)) {
		if possible[name] && !escaped[name] {
			t.Errorf("%s is listed as open, and is not", name)
		}
	}
	t.Run("documented", func(t *testing.T) { compareLimits(t, list, documented) })
}

// keptCapabilities is the heading about what root can do that keeps them.
const keptCapabilities = "Capabilities that are kept"

// leastAttempts is how many must count for each user.
const leastAttempts = 150

// control makes all attempts without a policy and returns those that count.
func control(t *testing.T, u launch.User, list []attempt) map[string]bool {
	t.Helper()
	counted := map[string]bool{}
	t.Run("control", func(t *testing.T) {
		ownMachine(t)
		results := newPlace(t, u).try(t, nil, promises)
		var not []string
		for _, a := range list {
			result := results[a.Name]
			switch {
			case result == "ESCAPED" || result == "documented":
				counted[a.Name] = true
				if a.Root && u.UID != 0 {
					t.Errorf("%s: not only root can do it", a.Name)
				}
			case a.Root && u.UID != 0 || a.User && u.UID == 0:
				not = append(not, a.Name)
			case strings.HasPrefix(result, "error: this machine lacks ") && a.Rare != "":
				t.Run(a.Name, func(t *testing.T) { t.Skip(result) })
			case strings.HasPrefix(result, "error: this machine lacks ") && a.Needs != "":
				t.Run(a.Name, func(t *testing.T) {
					if os.Getenv("CI") != "" {
						t.Fatal(result)
					}
					t.Skip(result)
				})
			default:
				t.Errorf("%s does not succeed without a policy: %s", a.Name, result)
			}
		}
		t.Logf("%d attempts are none of this user: %s", len(not), strings.Join(not, " "))
	})
	return counted
}
