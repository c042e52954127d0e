package pathcheck_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// TestResolveAsTheKernel resolves paths in random trees on the disk and asks
// the kernel the same.
func TestResolveAsTheKernel(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		dir := filepath.Join(base, fmt.Sprint(seed))
		grow(t, rnd, dir)
		var tree pathcheck.Tree = pathcheck.OS{}
		if seed%2 == 1 {
			k := pathcheck.Keep(tree)
			defer k.Release()
			tree = k
		}
		for range 40 {
			path := dir + randomPath(rnd)
			loc, err := pathcheck.Resolve(tree, path)
			fd, kernelErr := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
			if kernelErr == nil {
				var st unix.Stat_t
				if err := unix.Fstat(fd, &st); err != nil {
					t.Fatal(err)
				}
				real, linkErr := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
				unix.Close(fd)
				if linkErr != nil {
					t.Fatal(linkErr)
				}
				seen["found"]++
				if err != nil || !loc.Exists || loc.Path != real || loc.Info.ID != (pathcheck.ID{Dev: uint64(st.Dev), Ino: st.Ino}) {
					t.Fatalf("seed %d, %q: got %+v, %v; the kernel finds %q", seed, path, loc, err, real)
				}
				continue
			}
			seen[kernelErr.Error()]++
			switch kernelErr {
			case unix.ENOENT:
				// ENOENT wins over what a lexical reading of the rest says.
				if err == nil && !loc.Exists || errors.Is(err, pathcheck.ErrDotDot) || errors.Is(err, fs.ErrNotExist) {
					continue
				}
			case unix.ELOOP, unix.ENOTDIR:
				if errors.Is(err, kernelErr) {
					continue
				}
			}
			t.Fatalf("seed %d, %q: got %+v, %v; the kernel says %v", seed, path, loc, err, kernelErr)
		}
	}
	t.Log(seen)
	for _, kind := range []string{"found", unix.ENOENT.Error(), unix.ELOOP.Error(), unix.ENOTDIR.Error()} {
		if seen[kind] < 10 {
			t.Errorf("%q was met %d times only", kind, seen[kind])
		}
	}
}

// grow makes directories, files and symlinks named a to d, four deep.
func grow(t *testing.T, rnd *rand.Rand, root string) {
	t.Helper()
	var fill func(dir string, depth int)
	fill = func(dir string, depth int) {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			path := filepath.Join(dir, name)
			var err error
			switch k := rnd.IntN(10); {
			case k < 4 && depth < 4:
				fill(path, depth+1)
			case k < 5:
				err = os.WriteFile(path, nil, 0o644)
			case k < 9:
				target := strings.TrimPrefix(randomPath(rnd), "/")
				if rnd.IntN(4) == 0 {
					target = root + "/" + target
				}
				err = os.Symlink(target, path)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(root, 0)
}

// randomPath stays where the test made something: ".." never outnumbers the
// names before it, though a link may lead further up.
func randomPath(rnd *rand.Rand) string {
	var b strings.Builder
	depth := 0
	for range 1 + rnd.IntN(5) {
		name := string(rune('a' + rnd.IntN(4)))
		switch k := rnd.IntN(12); {
		case k == 0:
			name = "./" + name // not at the end, see Resolve
		case k < 3 && depth > 0:
			name = ".."
			depth -= 2
		}
		depth++
		b.WriteString("/" + name)
	}
	return b.String()
}

// TestResolveUnsearchable asks as a user who may not search the directory.
func TestResolveUnsearchable(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "closed", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(dir, "closed")
	if loc, err := pathcheck.Resolve(pathcheck.OS{}, closed+"/x"); err != nil || !loc.Exists || loc.Denied {
		t.Fatalf("open directory: %+v, %v", loc, err)
	}
	if err := os.Chmod(closed, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(closed, 0o700); err != nil {
			t.Error(err)
		}
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := dropCapabilities(); err != nil {
			t.Error(err)
			return
		}
		loc, err := pathcheck.Resolve(pathcheck.OS{}, closed+"/x")
		if err != nil || loc.Exists || !loc.Denied {
			t.Errorf("closed directory: %+v, %v", loc, err)
		}
	}()
	<-done
}

// dropCapabilities makes root an owner like any other, on this thread.
func dropCapabilities() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capset(&hdr, &data[0])
}

// TestOSNodes: the node is the inode, whatever happens to the name.
func TestOSNodes(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "f"), filepath.Join(dir, "g")); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 4000)
	if err := os.Symlink(long, filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "p"), 0o600); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	n, err := pathcheck.Lookup(pathcheck.OS{}, real)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	names, err := n.List()
	if got := strings.Join(names, " "); err != nil || got != "f g l p" {
		t.Errorf("List is %q, %v", got, err)
	}
	info := func(name string) pathcheck.Info {
		t.Helper()
		c, err := n.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if name == "l" {
			if text, err := c.ReadLink(); err != nil || text != long {
				t.Errorf("ReadLink gave %d bytes, %v", len(text), err)
			}
		}
		return c.Info()
	}
	f := info("f")
	if f.Kind != pathcheck.Regular || f.Links != 2 || f.Mode != 0o640 || f.ID != info("g").ID {
		t.Errorf("f is %+v", f)
	}
	if k := info("l").Kind; k != pathcheck.Symlink {
		t.Errorf("l is %v", k)
	}
	if k := info("p").Kind; k != pathcheck.FIFO { // and the open did not block
		t.Errorf("p is %v", k)
	}
	null, err := pathcheck.Lookup(pathcheck.OS{}, "/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if i := null.Info(); i.Kind != pathcheck.CharDevice || i.Major != 1 || i.Minor != 3 {
		t.Errorf("/dev/null is %+v", i)
	}
	if _, err := n.Open("gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of nothing: %v", err)
	}
	if _, ok := pathcheck.FD(n); !ok {
		t.Error("a node of OS has no descriptor")
	}
}
