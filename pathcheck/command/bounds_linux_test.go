//go:build !race

// The race detector allocates, too, and nothing here happens at the same time.

package command

import (
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
			const small, large = 8 << 10, maxLength
			var bytes [2]uint64
			givenUp := false
			for i, size := range []int{small, large} {
				looked := 0
				o.Resolve = func(path string) (string, error) {
					looked += lookups(path)
					return resolve(path)
				}
				text := g.of(size)
				if len(text) < size/2 || len(text) > size {
					t.Fatalf("a text of %d bytes, want %d", len(text), size)
				}
				var res Result
				bytes[i] = allocated(func() { res, _ = Check(text, o) })
				if looked > maxLookups {
					t.Errorf("%d bytes: %d directories looked into", size, looked)
				}
				for _, op := range res.Opaque {
					givenUp = givenUp || op.Why == "too long to follow"
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

// lookups is how many directories the resolution of p looks into: it starts again
// at the top for each "..".
func lookups(p string) (n int) {
	depth := 0
	for name := range strings.SplitSeq(strings.TrimPrefix(p, "/"), "/") {
		if n++; name == ".." {
			depth = max(0, depth-1)
			n += depth
		} else if name != "" && name != "." {
			depth++
		}
	}
	return n
}

// A text that is given up is searched for absolute paths, and says so.
func TestCheckGivesUp(t *testing.T) {
	base, o := tree(t)
	long := strings.Repeat("sh -c a;", 8000)
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", long, fine},
		{"outside", long + " touch /etc/x", abs},
		{"inside", long + " touch " + base + "/ws/x", fine},
		{"through a symlink", long + " touch " + base + "/ws/leaves/x", abs},
		{"cd", long + " cd ..", cdOut},
		{"paths", "touch" + strings.Repeat(" ./d", 15_000) + " /etc/x", abs},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res, err := Check(tc.text, o)
			if kindOf(err) != tc.want || len(res.Opaque) == 0 {
				t.Errorf("%v, opaque %d; want %q and some", err, len(res.Opaque), tc.want)
			}
		})
	}
}
