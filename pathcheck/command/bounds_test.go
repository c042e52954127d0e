//go:build !race

// The race detector allocates, too, and nothing here happens at the same time.

package command

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestCheckIsBounded counts what a check does to texts of several sizes: bytes
// that it allocates, and directories that it looks into. Both may grow as the text
// does, or the check must have given the text up and said so.
func TestCheckIsBounded(t *testing.T) {
	_, o := tree(t)
	for _, g := range growths {
		t.Run(g.name, func(t *testing.T) {
			const small, large = 8 << 10, MaxLength
			var bytes [2]uint64
			givenUp := false
			for i, size := range []int{small, large} {
				looked := 0
				o.Resolve = func(path string) (string, error) {
					looked += lookups(path)
					return resolve(path)
				}
				c, text := newChecker(o), g.of(size)
				if len(text) < size/2 || len(text) > size {
					t.Fatalf("a text of %d bytes, want %d", len(text), size)
				}
				bytes[i] = allocated(func() { c.text(text) })
				if looked > maxLookups+1000 {
					t.Errorf("%d bytes: %d directories looked into", size, looked)
				}
				said := map[string]bool{}
				for _, op := range c.result.Opaque {
					said[op.Why] = true
				}
				if tired := c.steps > maxSteps; tired != said["too long to follow"] {
					t.Errorf("%d bytes: %d steps, opaque %v", size, c.steps, said)
				} else if tired {
					givenUp = true
				}
				if c.unlooked != said["too many paths to look up"] {
					t.Errorf("%d bytes: paths left out: %v, opaque %v", size, c.unlooked, said)
				}
			}
			const slack, most = 1 << 20, 96 << 20
			if bytes[1] > most {
				t.Errorf("%d bytes allocated for a text of %d", bytes[1], large)
			}
			if limit := bytes[0]*large/small*3/2 + slack; bytes[1] > limit && !givenUp {
				t.Errorf("%d bytes allocated for a text of %d, %d for one of %d: this grows faster than the text", bytes[0], small, bytes[1], large)
			}
		})
	}
}

// A text that is given up is searched for absolute paths, and says so.
func TestCheckGivesUp(t *testing.T) {
	base, o := tree(t)
	long := strings.Repeat("eval a;", 9000)
	for _, tc := range []struct {
		name, text, want string
	}{
		{"nothing", long, fine},
		{"outside", long + " cat /etc/x", abs},
		{"inside", long + " cat " + base + "/ws/x", fine},
		{"through a symlink", long + " cat " + base + "/ws/leaves/x", abs},
		{"in braces", ": " + strings.Repeat("{a,", 21_000) + "; cat /etc/x", abs},
		{"behind braces", ": " + strings.Repeat("{a,", 21_000) + "; cat ../x", rel},
		{"paths", manyPaths(6000) + " /etc/x", abs},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res, err := Check(tc.text, o)
			if kindOf(err) != tc.want || len(res.Opaque) == 0 {
				t.Errorf("%v, opaque %d; want %q and some", err, len(res.Opaque), tc.want)
			}
		})
	}
}

func manyPaths(n int) string {
	var b strings.Builder
	b.WriteString("cat")
	for i := range n {
		fmt.Fprintf(&b, " ./d%d", i)
	}
	return b.String()
}
