package names

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/transparency/bare"
)

// fileCapability returns the value of security.capability for CAP_NET_BIND_SERVICE.
func fileCapability() []byte {
	const revision2, effective = 0x02000000, 1
	b := binary.LittleEndian.AppendUint32(nil, revision2|effective)
	b = binary.LittleEndian.AppendUint32(b, 1<<unix.CAP_NET_BIND_SERVICE)
	return append(b, make([]byte, 12)...)
}

// A shim that was made set-id, or was given file capabilities, starts nothing,
// whether there is a policy or not.
func TestRefusesPrivilege(t *testing.T) {
	launch.Need(t, launch.IsRoot)
	dir := launch.Dir(t)
	real := bare.Real.Install(t, dir, "real")
	policies := []any{nil, "", map[string]any{"version": 1, "scope": "unrestricted"}}
	for i, row := range []struct {
		name     string
		uid, gid int
		mode     uint32
		caps     bool
		user     launch.User
		refused  bool
	}{
		{name: "an ordinary shim", mode: 0o755, user: launch.Nobody},
		{name: "set-user-id root", mode: 0o4755, user: launch.Nobody, refused: true},
		{name: "set-user-id root, not readable", mode: 0o4711, user: launch.Nobody, refused: true},
		{name: "set-group-id root", mode: 0o2755, user: launch.Nobody, refused: true},
		{name: "set-user-id of another, for root", mode: 0o4755, uid: 65534, user: launch.Root, refused: true},
		{name: "set-group-id of another, for root", mode: 0o2755, gid: 65534, user: launch.Root, refused: true},
		{name: "both", mode: 0o6755, user: launch.Nobody, refused: true},
		{name: "file capabilities", mode: 0o755, caps: true, user: launch.Nobody, refused: true},
		{name: "file capabilities, not readable", mode: 0o711, caps: true, user: launch.Nobody, refused: true},
		// No privilege comes from these.
		{name: "set-user-id of the caller", mode: 0o4755, uid: 65534, gid: 65534, user: launch.Nobody},
		{name: "set-user-id root, for root", mode: 0o6755, user: launch.Root},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, record := range []bool{true, false} {
				sub := launch.Root.Mkdir(t, filepath.Join(dir, fmt.Sprintf("%d-%v", i, record)), 0o755)
				var shim string
				if record {
					shim = launch.Install(t, sub, "real", launch.Record{Real: real})
				} else {
					shim = launch.Copy(t, sub, "real")
				}
				for _, err := range []error{os.Chown(shim, row.uid, row.gid), syscall.Chmod(shim, row.mode)} {
					if err != nil {
						t.Fatal(err)
					}
				}
				if row.caps {
					if err := unix.Setxattr(shim, "security.capability", fileCapability(), 0); err != nil {
						t.Skipf("no file capabilities here: %v", err)
					}
				}
				for _, policy := range policies {
					r := launch.Cmd{Path: shim, Args: []string{"real"}, User: row.user, Policy: policy, Env: []string{"PATH=" + sub + ":" + dir}}.Run(t)
					switch {
					case !row.refused && (r.Code != bare.RealCode || r.Stderr != ""):
						t.Errorf("record %v, policy %v: %v", record, policy, r)
					case row.refused && (r.Code != 125 || strings.Count(r.Stderr, "\n") != 1 || !strings.Contains(r.Stderr, ": refused: ")):
						t.Errorf("record %v, policy %v: should be refused: %v", record, policy, r)
					}
				}
			}
		})
	}
}

// A security module may set AT_SECURE for a transition that has nothing to do
// with the shim's file. A tracer sets it here, before the first instruction.
func TestSecureTransitionIsNoReason(t *testing.T) {
	dir := launch.Dir(t)
	real := bare.Real.Install(t, dir, "real")
	sub := launch.Root.Mkdir(t, filepath.Join(dir, "shim"), 0o755)
	shims := map[string]string{
		"recorded": launch.Install(t, sub, "recorded", launch.Record{Real: real}),
		"by PATH":  launch.Copy(t, sub, "real"),
	}
	stderr, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		for name, shim := range shims {
			for _, policy := range []string{"A=1", policyVariable + "=", policyVariable + `={"version":1,"scope":"unrestricted"}`} {
				changed := false
				c := traced{path: shim, argv: []string{"real"}, env: []string{"PATH=" + sub + ":" + dir, policy}, dir: "/", user: u, stderr: stderr}
				c.atExec = func(pid int) error {
					if changed {
						return nil
					}
					changed = true
					return setSecure(pid)
				}
				_, status := c.run(t)
				said, err := os.ReadFile(stderr.Name())
				if err != nil {
					t.Fatal(err)
				}
				if !status.Exited() || status.ExitStatus() != bare.RealCode || len(said) > 0 {
					t.Errorf("%s, %q: status %#x, said %q", name, policy, int(status), said)
				}
			}
		}
	})
}

// setSecure changes AT_SECURE from 0 to 1 in the auxiliary vector of a process
// that stands at its entry point.
func setSecure(pid int) error {
	const atNull, atSecure, word = 0, 23, 8
	sp, err := stackPointer(pid)
	if err != nil {
		return err
	}
	peek := func(at uintptr) (uint64, error) {
		b := make([]byte, word)
		_, err := syscall.PtracePeekData(pid, at, b)
		return binary.LittleEndian.Uint64(b), err
	}
	argc, err := peek(sp)
	if err != nil {
		return err
	}
	at := sp + uintptr(argc+2)*word
	for v := uint64(1); v != 0; at += word { // the environment
		if v, err = peek(at); err != nil {
			return err
		}
	}
	for ; ; at += 2 * word {
		tag, err := peek(at)
		if err != nil {
			return err
		}
		if tag == atNull {
			return fmt.Errorf("no AT_SECURE")
		}
		if tag != atSecure {
			continue
		}
		if v, err := peek(at + word); err != nil || v != 0 {
			return fmt.Errorf("AT_SECURE is %d: %w", v, err)
		}
		_, err = syscall.PtracePokeData(pid, at+word, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		return err
	}
}
