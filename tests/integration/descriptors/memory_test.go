package descriptors

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// TestMemoryOfAProcessIsClosed hands over the memory of a process outside: who may write
// it runs what it likes there, so no launch that confines leaves it open.
func TestMemoryOfAProcessIsClosed(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		dir := u.Dir(t)
		hidden := u.Mkdir(t, filepath.Join(dir, "hidden"), 0o755)
		report := filepath.Join(dir, "report")
		shim := launch.Install(t, u.Mkdir(t, filepath.Join(dir, "bin"), 0o755), "sh", launch.Record{Real: "/bin/sh"})
		c := launch.Shell(shim, asks, "3", "4")
		c.User = u
		c.Extra = []*os.File{open(t, fmt.Sprintf("/proc/%d/mem", os.Getpid()), unix.O_RDWR), open(t, "/proc/self/status", unix.O_RDONLY)}
		if r := c.Run(t); r.Code != 0 || strings.TrimSpace(r.Stdout) != "3 4" {
			t.Fatalf("without a policy: %v", r)
		}
		c.Policy = object{"version": 1, "hidden": []string{hidden}, "report": report}
		if r := c.Run(t); r.Code != 0 || strings.TrimSpace(r.Stdout) != "4" {
			t.Fatalf("with a policy: %v", r)
		}
		if ds := launch.Report(t, report).Descriptors; len(ds) != 1 || ds[0].FD != 3 || !ds[0].Closed || !strings.Contains(ds[0].Why, "memory") {
			t.Errorf("reported %+v", ds)
		}
	})
}
