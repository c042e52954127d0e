package names

import (
	"io"
	"os"
	"strings"
	"testing"

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
