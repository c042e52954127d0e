package pathcheck_test

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
)

const resolveTree = `
	/data/real/f
	/data/real/sub/
	/data/up -> ..
	/data/rel -> real
	/data/chain -> rel
	/data/dangling -> gone/far
	/data/outof -> missing/../real
	/data/loop -> loop2
	/data/loop2 -> loop
	/data/slashes -> //data///./real//
	/data/closed/ nosearch
	/data/intoclosed -> closed/x
	/abs -> /data/real
	/root -> /
	/up -> ../../..
	/dir/deep -> /data/real/sub
	/f
	/tofile -> f
`

func TestResolve(t *testing.T) {
	tests := []struct {
		path   string
		want   string
		exists bool
		above  string
		links  string
	}{
		{path: "/", want: "/", exists: true},
		{path: "//./.", want: "/", exists: true},
		{path: "/..", want: "/", exists: true},
		{path: "/../../data", want: "/data", exists: true, above: "/"},
		{path: "/data/real/f", want: "/data/real/f", exists: true, above: "/ /data /data/real"},
		{path: "/data/rel/f", want: "/data/real/f", exists: true, above: "/ /data /data/real", links: "/data/rel"},
		{path: "/data/chain", want: "/data/real", exists: true, above: "/ /data", links: "/data/chain /data/rel"},
		{path: "/abs/f", want: "/data/real/f", exists: true, above: "/ /data /data/real", links: "/abs"},
		{path: "/root/root/abs", want: "/data/real", exists: true, above: "/ /data", links: "/root /root /abs"},
		{path: "/up", want: "/", exists: true, links: "/up"},
		{path: "/data/slashes", want: "/data/real", exists: true, above: "/ /data", links: "/data/slashes"},
		{path: "/tofile", want: "/f", exists: true, above: "/", links: "/tofile"},
		// ".." counts from where the link before it led.
		{path: "/dir/deep/..", want: "/data/real", exists: true, above: "/ /data", links: "/dir/deep"},
		{path: "/dir/deep/../f", want: "/data/real/f", exists: true, above: "/ /data /data/real", links: "/dir/deep"},
		{path: "/data/up/data", want: "/data", exists: true, above: "/", links: "/data/up"},
		// What is missing is taken as it stands.
		{path: "/gone", want: "/gone", above: "/"},
		{path: "/gone/a/b", want: "/gone/a/b", above: "/"},
		{path: "/abs/gone/a", want: "/data/real/gone/a", above: "/ /data /data/real", links: "/abs"},
		{path: "/data/dangling", want: "/data/gone/far", above: "/ /data", links: "/data/dangling"},
		{path: "/data/dangling/x", want: "/data/gone/far/x", above: "/ /data", links: "/data/dangling"},
		// So is what may not be looked up.
		{path: "/data/closed", want: "/data/closed", exists: true, above: "/ /data"},
		{path: "/data/closed/x/y", want: "/data/closed/x/y", above: "/ /data /data/closed"},
		{path: "/data/intoclosed", want: "/data/closed/x", above: "/ /data /data/closed", links: "/data/intoclosed"},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			tree := pathtest.New(resolveTree)
			loc, err := pathcheck.Resolve(tree, tt.path)
			if err != nil {
				t.Fatal(err)
			}
			if loc.Path != tt.want || loc.Exists != tt.exists {
				t.Errorf("got %q, exists %v; want %q, %v", loc.Path, loc.Exists, tt.want, tt.exists)
			}
			if want := strings.Contains(loc.Path, "/closed/"); loc.Denied != want {
				t.Errorf("Denied is %v, want %v", loc.Denied, want)
			}
			if loc.Exists && loc.Info.ID != tree.Info(tt.want).ID {
				t.Errorf("Info is that of another inode")
			}
			var above []string
			for _, a := range loc.Above {
				above = append(above, a.Path)
				if a.ID != tree.Info(a.Path).ID {
					t.Errorf("identity of %q is wrong", a.Path)
				}
			}
			if diff := cmp.Diff(strings.Fields(tt.above), append([]string{}, above...)); diff != "" {
				t.Errorf("Above (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(strings.Fields(tt.links), append([]string{}, loc.Links...)); diff != "" {
				t.Errorf("Links (-want +got):\n%s", diff)
			}
			checkNodes(t, tree)
		})
	}
}

// checkNodes is what Resolve and Lookup promise about open nodes.
func checkNodes(t *testing.T, tree *pathtest.Tree) {
	t.Helper()
	if n := tree.Open(); n != 0 {
		t.Errorf("%d nodes stay open", n)
	}
	if n := tree.MaxOpen(); n > 2 {
		t.Errorf("%d nodes were open at once", n)
	}
}

func TestResolveErrors(t *testing.T) {
	tests := []struct {
		path string
		want error
	}{
		{"", pathcheck.ErrNotAbsolute},
		{"data", pathcheck.ErrNotAbsolute},
		{"/f/x", pathcheck.ErrNotDir},
		{"/f/..", pathcheck.ErrNotDir},
		{"/tofile/x", pathcheck.ErrNotDir},
		{"/data/loop", pathcheck.ErrLoop},
		{"/data/loop/x", pathcheck.ErrLoop},
		{"/gone/../data", pathcheck.ErrDotDot},
		{"/data/outof", pathcheck.ErrDotDot},
		{"/data/closed/../real", nil}, // closed itself may be entered, only nothing in it
		{"/data/closed/x/..", pathcheck.ErrDotDot},
		{"/" + strings.Repeat("n", 256), syscall.ENAMETOOLONG},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			tree := pathtest.New(resolveTree)
			if _, err := pathcheck.Resolve(tree, tt.path); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			checkNodes(t, tree)
		})
	}
}

// TestResolveLinkLimit: the kernel follows 40 links and no more.
func TestResolveLinkLimit(t *testing.T) {
	tree := pathtest.New("/d/f\n/d/l -> .")
	if _, err := pathcheck.Resolve(tree, "/d"+strings.Repeat("/l", 40)+"/f"); err != nil {
		t.Errorf("40 links: %v", err)
	}
	if _, err := pathcheck.Resolve(tree, "/d"+strings.Repeat("/l", 41)+"/f"); !errors.Is(err, pathcheck.ErrLoop) {
		t.Errorf("41 links: got %v, want %v", err, pathcheck.ErrLoop)
	}
}

// TestResolveDotDotChanged: going up means opening the directories above once
// more, and they may be others by then.
func TestResolveDotDotChanged(t *testing.T) {
	changes := map[string]func(*pathtest.Tree){
		"exchanged":    func(tree *pathtest.Tree) { tree.Exchange("/a/b", "/other/b") },
		"gone":         func(tree *pathtest.Tree) { tree.Rename("/a/b", "/elsewhere") },
		"made symlink": func(tree *pathtest.Tree) { tree.Exchange("/a/b", "/link") },
		"not":          func(*pathtest.Tree) {},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			tree := pathtest.New("/a/b/c/\n/other/b/c/\n/link -> /other")
			tree.BeforeOpen = func(path string) {
				if path == "/a/b/c" {
					tree.BeforeOpen = nil
				}
			}
			reached := false
			tree.BeforeOpen = func(path string) {
				if path == "/a/b/c" {
					reached = true
				} else if reached && path == "/" {
					reached = false
					change(tree)
				}
			}
			loc, err := pathcheck.Resolve(tree, "/a/b/c/..")
			if name == "not" {
				if err != nil || loc.Path != "/a/b" {
					t.Errorf("got %q, %v", loc.Path, err)
				}
			} else if !errors.Is(err, pathcheck.ErrChanged) {
				t.Errorf("got %q, %v; want %v", loc.Path, err, pathcheck.ErrChanged)
			}
			checkNodes(t, tree)
		})
	}
}

func TestLookup(t *testing.T) {
	tests := []struct {
		path string
		want error
	}{
		{"/", nil},
		{"/data/real/f", nil},
		{"/abs", pathcheck.ErrLoop},
		{"/abs/f", pathcheck.ErrLoop},
		{"/f/x", pathcheck.ErrNotDir},
		{"/gone", fs.ErrNotExist},
		{"/data/closed/x", fs.ErrPermission},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			tree := pathtest.New(resolveTree)
			n, err := pathcheck.Lookup(tree, tt.path)
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if err == nil {
				if n.Info().ID != tree.Info(tt.path).ID {
					t.Error("another inode")
				}
				n.Close()
			}
			checkNodes(t, tree)
		})
	}
}
