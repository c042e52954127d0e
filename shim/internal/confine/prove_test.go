package confine

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/planner"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/seccomp"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/child"
)

// says reports whether err holds what is wanted, or is nil for "".
func says(err error, want string) bool {
	return want == "" && err == nil || want != "" && err != nil && strings.Contains(err.Error(), want)
}

// A domain that was not entered is found out, whatever else is in force, and
// whatever of the plan would show it alone.
func TestProofOfWhatWasNotEntered(t *testing.T) {
	kernel(t, 1)
	dir := stage(t)
	hidden := planOf(t, &rules.Policy{Version: 1, Hidden: hide(dir + "/secret")})
	workspace := planOf(t, &rules.Policy{
		Version: 1, Scope: rules.ScopeWorkspace, Workspace: dir + "/ws", Toolchain: rules.ToolchainDirs{Mode: rules.ToolchainNone},
	})
	// The same without the paths: only the inodes are left.
	held := *hidden
	held.Files = &plan.Plan{}
	file := planner.Plan{Files: &plan.Plan{}, Held: []pathcheck.Node{nodeAt(t, dir+"/secret/f")}}
	gone := planner.Plan{Files: &plan.Plan{Hidden: []plan.Hidden{{Path: dir + "/beside/f"}}}}
	nothing := planner.Plan{Files: &plan.Plan{}}
	exposed := planner.Plan{Files: &plan.Plan{Exposed: []plan.Exposed{{Path: dir + "/moved", Info: pathcheck.Info{Kind: pathcheck.Regular}}}}}
	moved := planner.Plan{Files: &plan.Plan{Hidden: []plan.Hidden{{Path: dir + "/moved", Exists: true, Info: pathcheck.Info{Kind: pathcheck.Directory}}}}}
	fifo := planner.Plan{Files: &plan.Plan{Hidden: []plan.Hidden{{Path: dir + "/beside/f", Exists: true, Info: pathcheck.Info{Kind: pathcheck.FIFO}}}}}
	rs := &Ruleset{fd: -1}
	for _, row := range []struct {
		name    string
		pl      *planner.Plan
		rs      *Ruleset
		program string
		want    string
	}{
		{"hidden path", hidden, rs, "", "hidden path"},
		{"hidden directory by its inode", &held, rs, "", "hidden inode"},
		{"hidden file by its inode", &file, rs, "", "hidden inode"},
		{"hidden path that has appeared", &gone, rs, "", "has appeared"},
		{"hidden path that was moved", &moved, rs, "", "expected to be denied"},
		{"hidden FIFO, which is not tried", &fifo, rs, "", ""},
		{"exposed path", &exposed, rs, "", "exposed path"},
		{"writable outside of the roots", workspace, rs, "", "can still be written"},
		{"no ruleset at all", &nothing, nil, "", "no ruleset was enforced"},
		{"the program's loader not granted", &nothing, &Ruleset{fd: -1, missing: []string{"/lib/ld"}}, "", "/lib/ld"},
		{"the program gone", &nothing, rs, dir + "/gone", "the program"},
		{"the program not executable", &nothing, rs, dir + "/beside/f", "the program"},
		{"nothing to find", &nothing, rs, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			program := row.program
			if program == "" {
				program = "/bin/true"
			}
			d := Domain{Ruleset: row.rs, asked: &rules.Policy{Hidden: hide("/x")}, offered: rules.Kernel{ABI: 1}}
			if err := d.Prove(row.pl, program); !says(err, row.want) {
				t.Errorf("%v, want %q", err, row.want)
			}
			// A filter proves nothing of files.
			d.asked = &rules.Policy{Hidden: hide("/x"), Isolate: rules.IsolateTTY, Network: rules.Network{Mode: rules.NetworkDeny}}
			d.Filter = filterFor(d.asked)
			if err := d.Prove(row.pl, program); row.want != "" && !says(err, row.want) {
				t.Errorf("with a filter: %v, want %q", err, row.want)
			}
		})
	}
	// Where it was said that there is none, there is none to prove.
	d := Domain{asked: &rules.Policy{Hidden: hide("/x")}, offered: rules.Kernel{ABI: 1, NoSeccomp: "none"}, noRuleset: "too many"}
	if err := d.Prove(hidden, "/bin/true"); err != nil {
		t.Errorf("a domain too many: %v", err)
	}
}

// Ports and signals that a ruleset handles are tried, by the domain as a whole.
func TestProofOfPortsAndSignals(t *testing.T) {
	readableLauncher(t) // so it can be signalled, too
	k := kernel(t, 6)
	for _, row := range []struct {
		p    rules.Policy
		k    rules.Kernel
		want string
	}{
		{rules.Policy{Network: rules.Network{Mode: rules.NetworkPorts, BindTCP: []uint16{}}}, k, "to bind to port"},
		{rules.Policy{Network: rules.Network{Mode: rules.NetworkPorts, ConnectTCP: []uint16{}}}, k, "to connect to port"},
		{rules.Policy{Isolate: rules.IsolateSignals}, rules.Kernel{ABI: 6, Errata: 1 << 1}, "the launcher: can be signalled"},
	} {
		rs, err := NewRuleset(&row.p, row.k, nil)
		errnotest.Must(t, err)
		d := Domain{Ruleset: rs, Filter: filterFor(&row.p), asked: &row.p, offered: row.k}
		if err := d.Prove(nil, ""); !says(err, row.want) {
			t.Errorf("%v, want %q", err, row.want)
		}
		rs.Close()
	}
}

// Each thing that a filter must refuse is tried: one that refuses all but one of
// them is found out by that one.
func TestFilterIsProved(t *testing.T) {
	kernel(t, 0)
	for _, row := range []struct {
		name          string
		asked, loaded seccomp.Config
		want          string
	}{
		{"nothing", seccomp.Config{}, seccomp.Config{}, ""},
		{"TCP", seccomp.Config{Sockets: seccomp.LocalSockets}, seccomp.Config{Sockets: seccomp.TCPSockets}, "a TCP socket"},
		{"UDP", seccomp.Config{Sockets: seccomp.TCPSockets}, seccomp.Config{Sockets: seccomp.TCPAndUDPSockets}, "a UDP socket"},
		{"packets", seccomp.Config{Sockets: seccomp.TCPAndUDPSockets}, seccomp.Config{NoKeyrings: true}, "a packet socket"},
		{"unix sockets", seccomp.Config{NoUnixSockets: true}, seccomp.Config{Sockets: seccomp.LocalSockets}, "a unix socket"},
		{"terminal", seccomp.Config{NoTerminalInput: true}, seccomp.Config{NoUnixSockets: true}, "terminal input"},
		{"keyrings", seccomp.Config{NoKeyrings: true}, seccomp.Config{NoUnixSockets: true}, "keyctl"},
		{"ioctls", seccomp.Config{NoFileIoctls: true}, seccomp.Config{NoKeyrings: true}, "a snapshot"},
		{"limits", seccomp.Config{NoLimitsOfOthers: true}, seccomp.Config{NoKeyrings: true}, "a limit of a process"},
	} {
		row.asked.Mark, row.loaded.Mark = 7, 7 // as if the right one had answered
		try := func(loaded seccomp.Config) (err error) {
			child.Thread(func() {
				if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err == nil {
					err = seccomp.Load(loaded)
				}
				if err == nil {
					err = (&Domain{Filter: row.asked, asked: &rules.Policy{}}).Prove(nil, "")
				}
			})
			return err
		}
		if err := try(row.loaded); !says(err, row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
		if !row.asked.Empty() {
			if err := try(row.asked); err != nil {
				t.Errorf("%s: the filter itself: %v", row.name, err)
			}
		}
	}
	d := Domain{asked: &rules.Policy{Isolate: rules.IsolateTTY}}
	if err := d.Prove(nil, ""); !says(err, "does not answer") {
		t.Errorf("no filter: %v", err)
	}
	d.offered.NoSeccomp = "none here"
	if err := d.Prove(nil, ""); err != nil {
		t.Errorf("no filter to be had: %v", err)
	}
}

// readableLauncher ends a test where nothing needs to keep this process from looking
// into the one that started it.
func readableLauncher(t *testing.T) {
	t.Helper()
	if err := tryRead(launcherProc() + "/environ"); err != nil {
		child.Unavailable(t, "the process that started the tests is another user's: "+err.Error())
	}
}

// A launcher that can be looked into is found out, and with a private /proc one that
// can be seen.
func TestProcIsProved(t *testing.T) {
	readableLauncher(t)
	private := rules.Kernel{PrivateProc: true}
	prove := func(k rules.Kernel) error {
		d := Domain{Ruleset: &Ruleset{fd: -1}, Filter: seccomp.Config{}, asked: &rules.Policy{Isolate: rules.IsolateProc}, offered: k}
		d.offered.ABI, d.Capabilities = 1, true
		return d.Prove(nil, "")
	}
	elsewhere := private
	elsewhere.ProcElsewhere = "/other"
	for _, row := range []struct {
		name string
		k    rules.Kernel
		want string
	}{
		{"a domain alone", rules.Kernel{}, "environment of the launcher can be read"},
		{"a domain and the capability", rules.Kernel{ProcCapabilities: true}, ""},
		{"a private /proc", private, "environment of the launcher can be read"},
		{"a private /proc and another", elsewhere, "environment of the launcher can be read"},
		{"a private /proc and the capability", rules.Kernel{PrivateProc: true, ProcCapabilities: true}, "environment of the launcher can be read"},
	} {
		if err := prove(row.k); !says(err, row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
	errnotest.Answering(t, errnotest.Openat, unix.EACCES, func() {
		if err := prove(private); !says(err, "the launcher can be seen") {
			t.Errorf("closed and not hidden: %v", err)
		}
		for name, k := range map[string]rules.Kernel{"a domain alone": {}, "another /proc": elsewhere} {
			if err := prove(k); err != nil {
				t.Errorf("%s: closed is enough: %v", name, err)
			}
		}
	})
}

// A mount that shows what is hidden, made between the plan and the proof, ends the
// launch; another one does not.
func TestMountsAreProved(t *testing.T) {
	kernel(t, 1)
	child.Root(t)
	dir := stage(t)
	for _, row := range []struct{ what, want string }{{"secret", "shows"}, {"ws", ""}} {
		o := order{Policy: rules.Policy{Version: 1, Hidden: hide(dir + "/secret/f")}, Alias: dir + "/" + row.what, Onto: dir + "/beside"}
		var got finding
		child.Run(t, 0, "enter", o, &got)
		if (got.Proof == "") != (row.want == "") || !strings.Contains(got.Proof, row.want) {
			t.Errorf("%s: %q, want %q", row.what, got.Proof, row.want)
		}
	}
}

// Where files cannot be made anyway the next directory is tried, and one in which
// they can be is never taken for a proof.
func TestReadOnlyLooksOn(t *testing.T) {
	dir := stage(t)
	_, pl := workspaceOf(t, dir+"/ws")
	tmpfile := errnotest.Call{Nr: unix.SYS_OPENAT, Some: true, Arg: 2, Is: uint32(unix.O_TMPFILE | unix.O_WRONLY | unix.O_CLOEXEC | unix.O_LARGEFILE)}
	errnotest.Answering(t, tmpfile, unix.EROFS, func() {
		if err := proveReadOnly(pl); err != nil {
			t.Errorf("a file system without writing: %v", err)
		}
	})
	// Without a scope there is nothing to prove.
	if err := proveReadOnly(hiding(t, dir+"/secret")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir + "/ws/f"); err != nil {
		t.Error(err)
	}
}
