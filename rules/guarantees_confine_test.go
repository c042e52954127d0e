package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// TestAssessConfinement: what network, isolate and audit give, by kernel and
// launch. An element is "what/by", "what!" for a guarantee that is missing, and
// "what?" for a limit.
func TestAssessConfinement(t *testing.T) {
	deny := `"network":"deny"`
	ports := `"network":{"connectTCP":[1],"bindTCP":[],"udp":"deny"}`
	proc := `"isolate":["proc"]`
	private := rules.Kernel{ABI: 7, Errata: 7, PrivateProc: true}
	for _, row := range []struct {
		name, keys string
		kernel     rules.Kernel
		want       string
	}{
		{"deny", deny, rules.Kernel{ABI: 7}, "network/seccomp network-tcp/landlock network-services? network-devices?"},
		{"deny, old Landlock", deny, rules.Kernel{ABI: 3}, "network/seccomp network-tcp? network-services? network-devices?"},
		{"deny, no Landlock", deny, rules.Kernel{}, "network/seccomp network-tcp? network-services? network-devices?"},
		{"deny, no seccomp", deny, rules.Kernel{ABI: 7, NoSeccomp: "x"}, "network! network-tcp/landlock network-services? network-devices?"},
		{"ports", ports, rules.Kernel{ABI: 4}, "connect-tcp/landlock bind-tcp/landlock udp/seccomp other-sockets/seccomp network-services? network-devices? listen?"},
		{"ports, old Landlock", ports, rules.Kernel{ABI: 3}, "connect-tcp! bind-tcp! udp/seccomp other-sockets/seccomp network-services? network-devices? listen?"},
		{"udp only", `"network":{"udp":"deny"}`, rules.Kernel{ABI: 3}, "udp/seccomp other-sockets/seccomp network-services? network-devices?"},
		{"ports, no seccomp", ports, rules.Kernel{ABI: 4, NoSeccomp: "x"}, "connect-tcp/landlock bind-tcp/landlock udp! other-sockets! network-services? network-devices? listen?"},
		{"workspace", `"scope":"workspace"`, rules.Kernel{ABI: 3}, "writes/landlock metadata-changes?"},
		{"workspace, old", `"scope":"workspace"`, rules.Kernel{ABI: 2}, "writes! metadata-changes?"},
		{"command check", `"scope":"workspace","commandCheck":"deny"`, rules.Kernel{ABI: 3}, "writes/landlock metadata-changes? command?"},
		{"signals", `"isolate":["signals"]`, rules.Kernel{ABI: 6, Errata: 7}, "signals/landlock resource-limits/seccomp process-limits?"},
		{"signals, no correction", `"isolate":["signals"]`, rules.Kernel{ABI: 6, Errata: 1}, "signals! resource-limits/seccomp process-limits?"},
		{"signals, old", `"isolate":["signals"]`, rules.Kernel{ABI: 5, Errata: 7}, "signals! resource-limits/seccomp process-limits?"},
		{"abstract", `"isolate":["abstract-unix"]`, rules.Kernel{ABI: 6}, "abstract-unix/landlock"},
		{"abstract, old", `"isolate":["abstract-unix"]`, rules.Kernel{ABI: 5}, "abstract-unix!"},
		{"unix", `"isolate":["unix-sockets"]`, rules.Kernel{ABI: 7}, "unix-sockets/seccomp unix-sockets-by-path?"},
		{"unix, new", `"isolate":["unix-sockets"]`, rules.Kernel{ABI: 9}, "unix-sockets/seccomp unix-sockets-by-path/landlock"},
		{"unix, no seccomp", `"isolate":["unix-sockets"]`, rules.Kernel{ABI: 9, NoSeccomp: "x"}, "unix-sockets! unix-sockets-by-path/landlock"},
		{"tty", `"isolate":["tty"]`, rules.Kernel{}, "tty/seccomp terminal?"},
		{"tty, own terminals", `"isolate":["tty"]`, rules.Kernel{Terminals: rules.Closure{By: "mount-namespace"}}, "tty/seccomp other-terminals/mount-namespace terminal?"},
		{"tty, others'", `"isolate":["tty"]`, rules.Kernel{Terminals: rules.Closure{Why: "x"}}, "tty/seccomp other-terminals? terminal?"},
		{"ipc", `"isolate":["ipc"]`, rules.Kernel{IPC: rules.Closure{By: "ipc-namespace"}}, "ipc/ipc-namespace"},
		{"ipc, no namespace", `"isolate":["ipc"]`, rules.Kernel{IPC: rules.Closure{Why: "x"}}, "ipc!"},
		{"signals, control groups", `"isolate":["signals"]`, rules.Kernel{ABI: 6, Errata: 7, ControlGroups: rules.Closure{By: "landlock"}}, "signals/landlock control-groups/landlock resource-limits/seccomp process-limits?"},
		{"signals, no control groups", `"isolate":["signals"]`, rules.Kernel{ABI: 6, Errata: 7, ControlGroups: rules.Closure{Why: "x"}}, "signals/landlock control-groups! resource-limits/seccomp process-limits?"},
		{"files of the kernel", deny, rules.Kernel{ABI: 7, KernelFiles: rules.Closure{By: "landlock"}}, "network/seccomp network-tcp/landlock network-services? network-devices? kernel-files/landlock"},
		{"files of the kernel, open", deny, rules.Kernel{ABI: 7, KernelFiles: rules.Closure{Why: "x"}}, "network/seccomp network-tcp/landlock network-services? network-devices? kernel-files!"},
		{"files of the kernel, not confined", `"audit":true`, rules.Kernel{KernelFiles: rules.Closure{Why: "x"}}, ""},
		{"tty, no seccomp", `"isolate":["tty"]`, rules.Kernel{ABI: 7, NoSeccomp: "x"}, "tty! terminal?"},
		{"proc", proc, private, "proc/landlock proc-visibility/mount-namespace"},
		{"proc, no namespace", proc, rules.Kernel{ABI: 1, NoPrivateProc: "x"}, "proc/landlock proc-visibility?"},
		{"proc, not asked", proc, rules.Kernel{ABI: 1}, "proc/landlock proc-visibility?"},
		{"proc, no Landlock", proc, rules.Kernel{PrivateProc: true}, "proc! proc-visibility?"},
		{"proc, capabilities", proc, rules.Kernel{ABI: 7, PrivateProc: true, ProcCapabilities: true}, "proc/mount-namespace proc-visibility/mount-namespace"},
		{"proc, capabilities, no namespace", proc, rules.Kernel{ABI: 7, ProcCapabilities: true}, "proc! proc-visibility?"},
		{"proc, elsewhere", proc, rules.Kernel{ABI: 7, PrivateProc: true, ProcElsewhere: "/p"}, "proc/landlock proc-visibility?"},
		{"proc, elsewhere, capabilities", proc, rules.Kernel{ABI: 7, PrivateProc: true, ProcElsewhere: "/p", ProcCapabilities: true}, "proc! proc-visibility?"},
		{"audit", deny + `,"audit":true`, rules.Kernel{ABI: 7}, "network/seccomp network-tcp/landlock network-services? network-devices? audit/landlock"},
		{"audit, old", deny + `,"audit":true`, rules.Kernel{ABI: 6}, "network/seccomp network-tcp/landlock network-services? network-devices? audit?"},
		{"audit of nothing", `"audit":true`, rules.Kernel{ABI: 6}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, err := rules.Parse([]byte(`{"version":1,` + row.keys + `}`))
			if err != nil {
				t.Fatal(err)
			}
			held, gaps := rules.Assess(p, row.kernel)
			var got []string
			for _, e := range held {
				if e.What == "keyrings" || e.What == "file-ioctls" {
					continue // TestAssessFilter
				}
				got = append(got, e.What+"/"+e.By)
			}
			for _, g := range gaps {
				if g.What == "keyrings" {
					continue
				}
				if g.Why == "" {
					t.Errorf("%s is missing without a reason", g.What)
				}
				got = append(got, g.What+map[bool]string{true: "?", false: "!"}[g.Limit])
			}
			want := strings.Fields(row.want)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// The signal scope is used only where it does not separate the threads of one
// process.
func TestHasSignalScope(t *testing.T) {
	for _, row := range []struct {
		abi, errata int
		want        bool
	}{{6, 2, true}, {7, 7, true}, {6, 0, false}, {6, 1, false}, {5, 7, false}, {0, 7, false}} {
		if got := (rules.Kernel{ABI: row.abi, Errata: row.errata}).HasSignalScope(); got != row.want {
			t.Errorf("ABI %d, errata %d: %v", row.abi, row.errata, got)
		}
	}
}
