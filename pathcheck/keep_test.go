package pathcheck_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
)

func TestKeepOpensOnce(t *testing.T) {
	tree := pathtest.New(`
		/a/b/c/f
		/a/b/d/
		/a/link -> b/c
		/dev/null char 1:3
		/dev/zero char 1:5
	`)
	paths := []string{"/a/b/c/f", "/a/b/d", "/a/link/f", "/a/b/c/../d", "/a/b/none/x", "/dev/null", "/dev/zero", "/"}
	var plain []pathcheck.Location
	for _, p := range paths {
		plain = append(plain, mustResolve(t, tree, p))
	}
	once, before := pathcheck.Keep(tree), tree.Opens()
	for range 3 {
		for i, p := range paths {
			if got := mustResolve(t, once, p); fmt.Sprint(got) != fmt.Sprint(plain[i]) {
				t.Errorf("%s: got %+v, want %+v", p, got, plain[i])
			}
		}
	}
	// a, b, c, f, d, link, f again behind it, dev, null, zero.
	if got := tree.Opens() - before; got > 12 {
		t.Errorf("%d opens", got)
	}
	n, err := pathcheck.Lookup(once, "/a/b/d")
	if err != nil || n.Info() != plain[1].Info {
		t.Errorf("lookup: %v, %v", n, err)
	}
	once.Release()
	if got := tree.Open(); got != 1 {
		t.Errorf("%d nodes are open beside the one looked up", got-1)
	}
	n.Close()
	if got := tree.Open(); got != 0 {
		t.Errorf("%d nodes stay open", got)
	}
}

// What a Kept returns may be changed by who got it.
func TestKeepSharesNoSlices(t *testing.T) {
	tree := pathtest.New("/a/b/f\n/a/l -> b\n/l -> a/l")
	k := pathcheck.Keep(tree)
	defer k.Release()
	first := mustResolve(t, k, "/l/f")
	_ = append(first.Above, pathcheck.Place{Path: "/x"})
	_ = append(first.Links, "/x")
	second, third := mustResolve(t, k, "/l/f"), mustResolve(t, k, "/l/f")
	a, b := append(second.Above, pathcheck.Place{Path: "/1"}), append(third.Above, pathcheck.Place{Path: "/2"})
	if a[len(a)-1].Path != "/1" || b[len(b)-1].Path != "/2" {
		t.Error("two results share what is behind their ends")
	}
	c, d := append(second.Links, "/1"), append(third.Links, "/2")
	if c[len(c)-1] != "/1" || d[len(d)-1] != "/2" {
		t.Error("two results share what is behind their links")
	}
}

// At most a handful of directories is open, however many were looked up.
func TestKeepIsBounded(t *testing.T) {
	var text strings.Builder
	var paths []string
	for i := range 100 {
		p := fmt.Sprintf("/d%d/e/f", i)
		paths = append(paths, p)
		fmt.Fprintln(&text, p)
	}
	deep := "/" + strings.Repeat("x/", 100)
	fmt.Fprintln(&text, deep)
	tree := pathtest.New(text.String())
	k := pathcheck.Keep(tree)
	for _, p := range append(slices.Clone(paths), deep, paths[0], deep+".") {
		mustResolve(t, k, p)
		n, err := pathcheck.Lookup(k, strings.TrimSuffix(strings.TrimSuffix(p, "."), "/"))
		if err != nil {
			t.Fatal(p, err)
		}
		n.Close()
	}
	if got := tree.MaxOpen(); got > 20 {
		t.Errorf("%d nodes were open at a time", got)
	}
	k.Release()
	if got := tree.Open(); got != 0 {
		t.Errorf("%d nodes stay open", got)
	}
	// A tree that was released still answers, and keeps nothing.
	if n, err := pathcheck.Lookup(k, paths[1]); err != nil || n.Close() != nil {
		t.Error(err)
	}
	k.Release()
	if got := tree.Open(); got != 0 {
		t.Errorf("%d nodes stay open after the second release", got)
	}
}

// Node.Open opens anew: what stands at the name now, not what stood there.
func TestKeepOpenIsFresh(t *testing.T) {
	tree := pathtest.New("/a/b/f\n/other/g")
	k := pathcheck.Keep(tree)
	defer k.Release()
	old := mustResolve(t, k, "/a/b")
	tree.Exchange("/a/b", "/other")
	if again := mustResolve(t, k, "/a/b"); again.Info.ID != old.Info.ID {
		t.Error("the Kept forgot")
	}
	a, err := pathcheck.Lookup(k, "/a")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := a.Open("b")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.Info().ID == old.Info.ID {
		t.Error("Open took a directory that is kept")
	}
	if fresh := mustResolve(t, pathcheck.Keep(tree), "/a/b"); fresh.Info.ID != b.Info().ID {
		t.Error("the tree itself was not changed")
	}
}

const errMany = syscall.EMFILE

// scarce is a tree in which at most free nodes can be open.
type scarce struct {
	pathcheck.Tree
	free *int
}

type scarceNode struct {
	pathcheck.Node
	free *int
}

func (s scarce) Root() (pathcheck.Node, error) {
	n, err := s.Tree.Root()
	*s.free--
	return scarceNode{n, s.free}, err
}

func (n scarceNode) Open(name string) (pathcheck.Node, error) {
	if *n.free == 0 {
		return nil, fmt.Errorf("open %q: %w", name, errMany)
	}
	next, err := n.Node.Open(name)
	if err == nil {
		*n.free--
	}
	return scarceNode{next, n.free}, err
}

func (n scarceNode) Close() error {
	*n.free++
	return n.Node.Close()
}

// Where descriptors are scarce, those that are only kept are given back.
func TestKeepGivesBack(t *testing.T) {
	free := 4
	k := pathcheck.Keep(scarce{pathtest.New("/a/b/c/d/e/f\n/g/h"), &free})
	for _, p := range []string{"/a/b/c/d/e/f", "/g/h", "/a/b/c", "/none", "/a/b/c/d/e/f/"} {
		if loc, err := pathcheck.Resolve(k, p); err != nil || !loc.Exists && p != "/none" {
			t.Errorf("%s: %+v, %v", p, loc, err)
		}
	}
	k.Release()
	if free != 4 {
		t.Errorf("%d free in the end", free)
	}
	free = 1
	k = pathcheck.Keep(scarce{pathtest.New("/a/b"), &free})
	if _, err := pathcheck.Resolve(k, "/a/b"); !errors.Is(err, errMany) {
		t.Errorf("with nothing left: %v", err)
	}
	k.Release()
}

// A failing tree gives an error for "/bad".
type failing struct {
	pathcheck.Tree
	err error
}

type failingNode struct {
	pathcheck.Node
	err error
}

func (f failing) Root() (pathcheck.Node, error) {
	n, err := f.Tree.Root()
	return failingNode{n, f.err}, err
}

func (n failingNode) Open(name string) (pathcheck.Node, error) {
	if name == "bad" {
		return nil, fmt.Errorf("open %q: %w", name, n.err)
	}
	return n.Node.Open(name)
}

// A lookup that failed for want of a descriptor or of memory is not forgotten,
// whatever its caller made of it.
func TestKeepErr(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EACCES, syscall.ENOENT, syscall.ENOTCONN} {
		exhausted := errno == syscall.EMFILE || errno == syscall.ENFILE || errno == syscall.ENOMEM
		for name, look := range map[string]func(pathcheck.Tree){
			"resolve": func(k pathcheck.Tree) { _, _ = pathcheck.Resolve(k, "/bad/x") },
			"lookup":  func(k pathcheck.Tree) { _, _ = pathcheck.Lookup(k, "/bad") },
		} {
			k := pathcheck.Keep(failing{pathtest.New("/good/f"), errno})
			mustResolve(t, k, "/good/f")
			if err := k.Err(); err != nil {
				t.Errorf("before: %v", err)
			}
			look(k)
			mustResolve(t, k, "/good/f")
			if err := k.Err(); errors.Is(err, errno) != exhausted || (err == nil) == exhausted {
				t.Errorf("%s, %v: the tree says %v", name, errno, err)
			}
			k.Release()
		}
	}
}

func mustResolve(t *testing.T, tree pathcheck.Tree, path string) pathcheck.Location {
	t.Helper()
	loc, err := pathcheck.Resolve(tree, path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return loc
}
