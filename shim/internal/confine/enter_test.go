package confine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/seccomp"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/child"
)

// stage is a directory with a secret, a workspace and something exposed, which
// every user may read and nobody owns.
func stage(t *testing.T) (dir string) {
	t.Helper()
	dir = child.Dir(t)
	for _, d := range []string{"secret/shown", "ws", "beside"} {
		errnotest.Must(t, os.MkdirAll(dir+"/"+d, 0o755))
		errnotest.Touch(t, dir+"/"+d+"/f")
	}
	errnotest.Touch(t, dir+"/secret/f")
	if os.Geteuid() == 0 {
		errnotest.Must(t, os.Chown(dir+"/ws", child.Nobody, child.Nobody))
	}
	return dir
}

// listen opens the socket outside that a child tries to reach.
func listen(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	errnotest.Must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	errnotest.Must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: abstractName(os.Getpid())}))
}

func users() []int {
	if me := os.Geteuid(); me != 0 {
		return []int{me}
	}
	return []int{0, child.Nobody}
}

func TestADomainHoldsWhatWasAsked(t *testing.T) {
	kernel(t, 6)
	dir := stage(t)
	listen(t)
	everything := rules.IsolateTTY | rules.IsolateUnixSockets | rules.IsolateProc
	for _, row := range []struct {
		name string
		p    rules.Policy
		want map[string]string
	}{
		{"hidden", rules.Policy{Hidden: hide(dir + "/secret")}, map[string]string{
			"read " + dir + "/secret/f": "EACCES", "read " + dir + "/secret": "EACCES",
			"read " + dir + "/beside/f": "", "tcp": "", "unix": "", "terminal": "EBADF", "abstract": "",
		}},
		{"exposed", rules.Policy{Hidden: hide(dir + "/secret"), Exposed: hide(dir + "/secret/shown")}, map[string]string{
			"read " + dir + "/secret/f": "EACCES", "read " + dir + "/secret/shown/f": "",
		}},
		{"workspace", rules.Policy{
			Scope: rules.ScopeWorkspace, Workspace: dir + "/ws", Toolchain: rules.ToolchainDirs{Mode: rules.ToolchainNone},
		}, map[string]string{"make " + dir + "/ws": "", "make /var/tmp": "EACCES", "read " + dir + "/secret/f": ""}},
		{"network", rules.Policy{Scope: rules.ScopeWorkspace, Workspace: dir + "/ws", Network: rules.Network{Mode: rules.NetworkDeny}}, map[string]string{
			"tcp": "EACCES", "udp": "EACCES", "unix": "",
		}},
		{"isolated", rules.Policy{Isolate: everything}, map[string]string{"unix": "EACCES", "terminal": "EPERM", "environ": "EACCES", "tcp": ""}},
		{"abstract", rules.Policy{Hidden: hide(dir + "/secret"), Isolate: rules.IsolateAbstractUnix}, map[string]string{"abstract": "EPERM"}},
	} {
		for _, uid := range users() {
			t.Run(fmt.Sprintf("%s, uid %d", row.name, uid), func(t *testing.T) {
				row.p.Version, row.p.Required = 1, true
				o := order{Policy: row.p}
				for what := range row.want {
					verb, path, ok := strings.Cut(what, " ")
					switch {
					case !ok:
						o.Tries = append(o.Tries, what)
					case verb == "read":
						o.Read = append(o.Read, path)
					default:
						o.Make = append(o.Make, path)
					}
				}
				var got, free finding
				child.Run(t, uid, "enter", o, &got)
				o.Nothing = true
				child.Run(t, uid, "enter", o, &free)
				if got.Proof != "" || got.Warning != "" {
					t.Errorf("proof: %q, warning: %q", got.Proof, got.Warning)
				}
				for what, want := range row.want {
					if got.Found[what] != want {
						t.Errorf("%s: %q, want %q", what, got.Found[what], want)
					}
					// What is refused here is not refused without a domain.
					if without := free.Found[what]; without != "" && without != "EBADF" && uid == os.Geteuid() {
						t.Errorf("%s: %q without a domain, so the row shows nothing", what, without)
					}
				}
				if nnp := got.Status["NoNewPrivs"]; nnp != "1" || free.Status["NoNewPrivs"] == "1" {
					t.Errorf("no_new_privs is %q, was %q", nnp, free.Status["NoNewPrivs"])
				}
			})
		}
	}
}

// A program of another session is not signalled from a domain with that scope.
func TestSignalsStayInTheDomain(t *testing.T) {
	if k := kernel(t, 6); !k.HasSignalScope() {
		child.Unavailable(t, "needs the erratum of the signal scope")
	}
	o := order{Policy: rules.Policy{Version: 1, Hidden: hide(stage(t) + "/secret"), Isolate: rules.IsolateSignals}, Tries: []string{"signal"}}
	var got, free finding
	child.Run(t, os.Geteuid(), "enter", o, &got)
	o.Nothing = true
	child.Run(t, os.Geteuid(), "enter", o, &free)
	if got.Found["signal"] != "EPERM" || free.Found["signal"] != "" {
		t.Errorf("%q, without a domain %q", got.Found["signal"], free.Found["signal"])
	}
}

// Only what reaches around nothing is left of root's capabilities, in every set.
func TestCapabilitiesAreRestricted(t *testing.T) {
	kernel(t, 1)
	child.Root(t)
	const kept = "00000000a00005fb" // see keptCapabilities
	o := order{Policy: rules.Policy{Version: 1, Required: true, Hidden: hide(stage(t) + "/secret")}}
	var got finding
	child.Run(t, 0, "enter", o, &got)
	if all, err := strconv.ParseUint(kept, 16, 64); err != nil || all != keptCapabilities {
		t.Errorf("kept: %#x, %v", keptCapabilities, err)
	}
	for _, set := range []string{"CapEff", "CapPrm", "CapBnd"} {
		if got.Status[set] != kept {
			t.Errorf("%s is %s, want %s", set, got.Status[set], kept)
		}
	}
	if len(got.Gaps) > 0 {
		t.Errorf("gaps: %+v", got.Gaps)
	}
	o.Policy.Capabilities = rules.CapabilitiesKeep
	var all finding
	child.Run(t, 0, "enter", o, &all)
	if all.Status["CapEff"] == kept || len(all.Gaps) != 1 || !all.Gaps[0].Limit || !strings.Contains(all.Gaps[0].Why, "SYS_ADMIN") {
		t.Errorf("kept as the policy says: %s, %+v", all.Status["CapEff"], all.Gaps)
	}
}

// What the kernel says to have taken is looked at again.
func TestCapabilitiesAreProved(t *testing.T) {
	child.Root(t)
	for _, nr := range []uintptr{unix.SYS_CAPSET, unix.SYS_PRCTL} {
		errnotest.Answering(t, errnotest.Call{Nr: nr}, 0, func() {
			err := restrictCapabilities()
			if nr == unix.SYS_CAPSET && (err == nil || !strings.Contains(err.Error(), "still held")) {
				t.Errorf("capset that does nothing: %v", err)
			}
		})
	}
	drop := errnotest.Call{Nr: unix.SYS_PRCTL, Some: true, Arg: 0, Is: unix.PR_CAPBSET_DROP}
	errnotest.Answering(t, drop, unix.EPERM, func() {
		if err := restrictCapabilities(); !errors.Is(err, unix.EPERM) {
			t.Errorf("the bounding set: %v", err)
		}
	})
	errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_CAPSET}, unix.EPERM, func() {
		for _, required := range []bool{true, false} {
			d := &Domain{asked: &rules.Policy{Required: required}}
			err := d.dropCapabilities()
			if required && err == nil || !required && (err != nil || d.Warning == "" || len(d.Gaps) != 1 || d.Gaps[0].Limit || d.Capabilities) {
				t.Errorf("required %v: %v, %+v", required, err, d)
			}
		}
	})
}

// A step that the kernel refuses is an error, but for a domain too many where the
// policy is not required.
func TestWhatCannotBeEnteredIsSaid(t *testing.T) {
	k := kernel(t, 1)
	dir := stage(t)
	policy := func(required bool) *rules.Policy {
		return &rules.Policy{
			Version: 1, Required: required, Hidden: hide(dir + "/secret"), Isolate: rules.IsolateTTY,
			Capabilities: rules.CapabilitiesKeep,
		}
	}
	restrict := errnotest.Call{Nr: unix.SYS_LANDLOCK_RESTRICT_SELF}
	for _, row := range []struct {
		call     errnotest.Call
		errno    unix.Errno
		required bool
		stops    bool
	}{
		{restrict, unix.E2BIG, true, true},
		{restrict, unix.E2BIG, false, false},
		{restrict, unix.EPERM, false, true},
		{restrict, unix.ENOMEM, true, true},
		{errnotest.Call{Nr: unix.SYS_SECCOMP}, unix.ENOMEM, false, true},
		{errnotest.Call{Nr: unix.SYS_PRCTL, Some: true, Is: unix.PR_SET_NO_NEW_PRIVS}, unix.EINVAL, false, true},
	} {
		rs, err := NewRuleset(policy(row.required), k, nil)
		errnotest.Must(t, err)
		errnotest.Answering(t, row.call, row.errno, func() {
			d, err := Enter(policy(row.required), k, rs, func(string) {})
			switch {
			case row.stops && (err == nil || d != nil):
				t.Errorf("%v, required %v: goes on: %v", row.errno, row.required, err)
			case !row.stops && (err != nil || d.Warning == "" || d.Ruleset != nil || d.InForce().ABI != 0 || d.InForce().Unavailable == ""):
				t.Errorf("%v, required %v: %v, %+v", row.errno, row.required, err, d)
			}
		})
		rs.Close()
	}
}

// What is in force is what was entered, not what was offered.
func TestInForce(t *testing.T) {
	offered := rules.Kernel{ABI: 7, Errata: 3}
	files := &rules.Policy{Hidden: hide("/x"), Capabilities: rules.CapabilitiesKeep, Isolate: rules.IsolateTTY}
	rs, filter := &Ruleset{fd: -1}, seccomp.Config{NoTerminalInput: true}
	for _, row := range []struct {
		name string
		d    Domain
		want rules.Kernel
	}{
		{"all", Domain{Ruleset: rs, Filter: filter}, offered},
		{"no ruleset", Domain{Filter: filter}, rules.Kernel{Unavailable: "no ruleset was enforced"}},
		{"too many", Domain{Filter: filter, noRuleset: "too many"}, rules.Kernel{Unavailable: "too many"}},
		{"no filter", Domain{Ruleset: rs}, rules.Kernel{ABI: 7, Errata: 3, NoSeccomp: "no filter was loaded"}},
	} {
		row.d.asked, row.d.offered = files, offered
		if got := row.d.InForce(); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
	restricted := Domain{asked: &rules.Policy{}, offered: offered, Filter: filter}
	child.Root(t)
	if !restricted.InForce().ProcCapabilities {
		t.Error("capabilities that were not taken do not count")
	}
	restricted.Capabilities = true
	if restricted.InForce().ProcCapabilities {
		t.Error("capabilities that were taken count")
	}
}

// An explanation foresees what Enter does.
func TestForesee(t *testing.T) {
	k := kernel(t, 1)
	p := &rules.Policy{Version: 1, Hidden: hide(stage(t) + "/secret"), Isolate: rules.IsolateTTY, Network: rules.Network{Mode: rules.NetworkDeny}}
	for _, row := range []struct {
		name            string
		p               *rules.Policy
		k               rules.Kernel
		ruleset, filter bool
		capabilities    bool
	}{
		{"all", p, k, true, true, true},
		{"no seccomp", p, rules.Kernel{ABI: 1, NoSeccomp: "none"}, true, false, true},
		{"no Landlock", p, rules.Kernel{}, false, true, true},
		{"only a filter", &rules.Policy{Isolate: rules.IsolateTTY, Capabilities: rules.CapabilitiesKeep}, k, false, true, false},
	} {
		f := Foresee(row.p, row.k)
		if f.Ruleset != nil != row.ruleset || f.Filter.Empty() == row.filter || f.Capabilities != row.capabilities {
			t.Errorf("%s: %+v", row.name, f)
		}
		if row.name != "all" {
			continue
		}
		child.Thread(func() {
			rs, err := NewRuleset(p, k, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer rs.Close()
			d, err := Enter(p, k, rs, func(string) {})
			if err != nil || d.Ruleset != rs || d.Filter != f.Filter || d.Capabilities != f.Capabilities || d.InForce() != f.InForce() {
				t.Errorf("entered %+v, foreseen %+v, %v", d, f, err)
			}
		})
	}
}
