package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A descriptor on which the launcher left a file outside open for writing can
// still be written; the report lists it, and no other.
func TestDescriptorsThatWriteOutsideAreReported(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		open := func(path string, flags int) *os.File {
			t.Helper()
			f, err := os.OpenFile(path, flags, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			return f
		}
		outside := filepath.Join(p.outside, "file")
		gone := open(filepath.Join(p.outside, "gone"), os.O_RDWR|os.O_CREATE)
		if err := os.Remove(gone.Name()); err != nil {
			t.Fatal(err)
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		c := launch.Shell(p.sh, `echo more >&3`)
		c.User, c.Dir, c.Env, c.Policy = u, p.ws, p.env(), p.policy(nil)
		c.Extra = []*os.File{
			open(outside, os.O_WRONLY|os.O_APPEND), open(outside, os.O_RDONLY), open(outside, unix.O_PATH),
			open(u.Write(t, filepath.Join(p.ws, "own"), "", 0o600), os.O_RDWR), gone, w, open(os.DevNull, os.O_RDWR),
		}
		if res := c.Run(t); res.Code != 0 || res.Stderr != "" {
			t.Fatal(res)
		}
		if data, err := os.ReadFile(outside); err != nil || string(data) != "textmore\n" {
			t.Errorf("%q, %v", data, err)
		}
		if d := p.report(t).Descriptors; len(d) != 1 || d[0].FD != 3 || d[0].Closed || d[0].LeadsTo != outside {
			t.Errorf("reported: %+v", d)
		}
	})
}
