package pathcheck_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// The index answers as going through the table does, for random tables.
func TestMountIndex(t *testing.T) {
	found, others := 0, 0
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		path := func() string {
			p := ""
			for range rnd.IntN(4) {
				p += "/" + string("abc"[rnd.IntN(3)])
			}
			if p == "" {
				return "/"
			}
			return p
		}
		ms := pathcheck.Mounts{{ID: 1, Parent: 0, Dev: "8:1", Root: "/", Point: "/"}}
		if seed%5 == 0 {
			ms[0].Point = "/elsewhere" // as after chroot(2)
		}
		for id := 2; id < 3+rnd.IntN(12); id++ {
			ms = append(ms, pathcheck.Mount{
				ID: id, Parent: 1 + rnd.IntN(id-1), Dev: fmt.Sprintf("8:%d", 1+rnd.IntN(3)), Root: path(), Point: path(),
			})
		}
		ix := ms.Index()
		for range 40 {
			p := path()
			want, ok := walkTable(ms, p)
			got, known := ix.Of(p)
			if known != ok || ok && got.ID != want.ID {
				t.Fatalf("seed %d, %s: got %v %v, want %v %v\n%v", seed, p, got, known, want, ok, ms)
			}
			if ok {
				found++
			}
			var same []string
			for _, m := range ms {
				inside := pathcheck.Join(want.Root, pathcheck.Rel(want.Point, p))
				if !ok || m.ID == want.ID || m.Dev != want.Dev || !pathcheck.Within(m.Root, inside) {
					continue
				}
				other := pathcheck.Join(m.Point, pathcheck.Rel(m.Root, inside))
				if by, ok := walkTable(ms, other); ok && by.ID == m.ID {
					same = append(same, other)
				}
			}
			others += len(same)
			if diff := cmp.Diff(same, ix.Others(p)); diff != "" {
				t.Fatalf("seed %d, %s (-want +got):\n%s\n%v", seed, p, diff, ms)
			}
		}
	}
	if found < 1000 || others < 100 {
		t.Errorf("%d mounts and %d other paths were found, too few to say anything", found, others)
	}
}

// walkTable is a lookup of an absolute path in the table, mount by mount.
func walkTable(ms pathcheck.Mounts, path string) (cur pathcheck.Mount, known bool) {
	cur.ID = -1
	for _, m := range ms {
		if slices.ContainsFunc(ms, func(p pathcheck.Mount) bool { return p.ID == m.Parent && m.Parent != m.ID }) {
			continue
		}
		if m.Point == "/" {
			cur, known = m, true
			break
		}
		cur.ID = m.Parent
	}
	at := ""
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name == "" {
			break
		}
		at += "/" + name
	again:
		for _, m := range ms {
			if m.Parent == cur.ID && m.ID != m.Parent && m.Point == at {
				cur, known = m, true
				goto again
			}
		}
	}
	return cur, known
}
