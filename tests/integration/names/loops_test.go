package names

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/transparency/bare"
)

const arrangements = 2000

// Whatever shims, copies, links, records and scripts stand where, a launch ends
// in the real program, or in 127, after a bounded number of execs. It is 126
// where a file is there and the kernel refuses to start it.
func TestNoArrangementIsALoop(t *testing.T) {
	launch.Need(t, launch.IsRoot)
	w, r := newWorld(t), random(t)
	stderr, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	ends, most, total := make(map[int]int), 0, 0
	for done := 0; done < arrangements; {
		a, ok := w.arrange(t, r)
		if !ok {
			continue
		}
		done++
		c := traced{
			path: a.start, argv: []string{a.argv0, "x"}, dir: a.dir, stderr: stderr, user: launch.Nobody,
			env: []string{"PATH=" + strings.Join(a.path, ":")},
		}
		if r.IntN(5) == 0 {
			c.user = launch.Root
		}
		switch r.IntN(8) {
		case 0:
			c.env = append(c.env, policyVariable+`={"version":1,"scope":"unrestricted"}`)
		case 1:
			c.env = append(c.env, policyVariable+"= ")
		}
		if err := stderr.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if _, err := stderr.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		execs, status := c.run(t)
		said, err := os.ReadFile(stderr.Name())
		if err != nil {
			t.Fatal(err)
		}
		code := -1
		if status.Exited() {
			code = status.ExitStatus()
		}
		ends[code]++
		most, total = max(most, execs), total+execs
		good := code == 127 || code == bare.RealCode && len(said) == 0 || code == 126 && strings.Contains(string(said), ": execve: ")
		if !good || execs > maxExecs {
			t.Errorf("as %s: status %#x after %d execs, said %q\n%v", c.user.Name, int(status), execs, said, a)
			if t.Failed() && ends[-1] > 5 {
				break
			}
		}
	}
	t.Logf("ends %v; %d execs at most, %.1f on average", ends, most, float64(total)/arrangements)
	for _, code := range []int{bare.RealCode, 127} {
		if ends[code] < arrangements/20 {
			t.Errorf("only %d launches ended with %d: this is no test", ends[code], code)
		}
	}
}

// Two shims whose records lead to each other end in 127 also when the caller has
// left no descriptor with which one could look at the other.
func TestNoLoopWithoutDescriptors(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		one, two := launch.Dir(t), launch.Dir(t)
		shim := launch.Install(t, one, "prog", launch.Record{Real: filepath.Join(two, "prog")})
		launch.Install(t, two, "prog", launch.Record{Real: shim})
		alone := launch.Install(t, launch.Dir(t), "true", launch.Record{Real: launch.Look(t, "true")})
		for _, row := range []struct {
			limit uint64
			code  int
		}{{0, 126}, {1, 127}, {3, 127}, {4, 127}, {5, 127}, {6, 127}, {7, 127}} {
			c := launch.Cmd{Path: shim, User: u, Setup: &launch.Setup{NoFile: &[2]uint64{row.limit, row.limit}}, Timeout: 20 * time.Second}
			if r := c.Run(t); r.Code != row.code || r.Stdout != "" {
				t.Errorf("%d descriptors: want status %d, have %v", row.limit, row.code, r)
			}
			// A program that needs no descriptor itself starts with as few as before.
			if c.Path = alone; row.limit > 3 {
				if r := c.Run(t); r.Code != 0 {
					t.Errorf("%d descriptors: %v", row.limit, r)
				}
			}
		}
	})
}
