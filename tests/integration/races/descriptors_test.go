package races

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// TestShimHoldsFewDescriptors counts the descriptors of a large launch at each stop of
// its system calls: never more than 64 of the shim's own.
func TestShimHoldsFewDescriptors(t *testing.T) {
	const (
		siblings = 10000
		hidden   = 40
		deep     = 100
		most     = 64
		stdio    = 3
		// The shim holds 32 of the hidden paths open for its proof; a count
		// that never sees them is wrong.
		held = 32
	)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		t.Parallel()
		onStage(t, u, func(s *stage) error {
			dir := "/w" + strings.Repeat("/d", deep)
			if err := os.MkdirAll(s.at(dir), 0o755); err != nil {
				return err
			}
			for n := range siblings {
				if err := os.WriteFile(s.at(fmt.Sprintf("%s/s%d", dir, n)), []byte(openText), 0o644); err != nil {
					return err
				}
			}
			var p struct {
				Version int      `json:"version"`
				Hidden  []string `json:"hidden"`
			}
			p.Version = 1
			s.tracee.argv = []string{"witness"}
			for n := range hidden {
				path := fmt.Sprintf("%s/h%d", dir, n)
				if err := os.Mkdir(s.at(path), 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(s.at(path+"/f"), []byte(hiddenText), 0o644); err != nil {
					return err
				}
				p.Hidden = append(p.Hidden, path)
				s.tracee.argv = append(s.tracee.argv, path+"/f")
			}
			s.tracee.argv = append(s.tracee.argv, filepath.Join(dir, "s9999"))
			text, err := json.Marshal(p)
			if err != nil {
				return err
			}
			s.tracee.env = []string{"PATH=/bin", "SANDBOX_EXEC_SHIM_POLICY=" + string(text)}

			stops, highest := 0, 0
			o, err := s.tracee.run(func(at stop) (bool, error) {
				n, err := descriptors(at.pid)
				highest = max(highest, n-stdio)
				stops++
				return true, err
			}, nil)
			if err != nil {
				return err
			}
			t.Logf("%d stops, at most %d descriptors of the shim's own", stops, highest)
			if highest > most || highest < held {
				t.Errorf("%d descriptors, want %d to %d", highest, held, most)
			}
			if stops < siblings {
				t.Errorf("only %d stops", stops)
			}
			if len(o.rounds) != 1 {
				return fmt.Errorf("the program was not started: %v", o)
			}
			for i, got := range o.rounds[0] {
				want := "EACCES"
				if i == hidden {
					want = openText
				}
				if got != want {
					t.Errorf("%s: %q, want %q", s.tracee.argv[1+i], got, want)
				}
			}
			return nil
		})
	})
}

// descriptors counts what a process has open.
func descriptors(pid int) (int, error) {
	dir, err := unix.Open(fmt.Sprintf("/proc/%d/fd", pid), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(dir)
	var buf [8192]byte
	var names []string
	for {
		n, err := unix.ReadDirent(dir, buf[:])
		if err != nil {
			return 0, fmt.Errorf("list descriptors: %w", err)
		}
		if n == 0 {
			return len(names), nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}
