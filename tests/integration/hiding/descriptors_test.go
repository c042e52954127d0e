package hiding

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// An inherited descriptor of a hidden place is closed also when nothing tells
// where it stands.
func TestDescriptorsWithoutANameAreClosed(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	for name, open := range map[string]func(*testing.T, *world) (hidden, free *os.File){
		"no proc": func(t *testing.T, w *world) (hidden, free *os.File) {
			w.mount(t, "tmpfs", "$W/free", "tmpfs", 0, "")
			w.write(t, "$W/free/f", "free\n")
			hidden, free = openFile(t, w.at("$W/secret/f")), openFile(t, w.at("$W/free/f"))
			w.mount(t, "tmpfs", "/proc", "tmpfs", 0, "")
			return hidden, free
		},
		"longer than a path": func(t *testing.T, w *world) (hidden, free *os.File) {
			dir := openFile(t, w.at("$W/secret"))
			for range 20 {
				const name = 250
				dir = inDirectory(t, dir, strings.Repeat("d", name))
			}
			fd, err := unix.Openat(int(dir.Fd()), "f", unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
			if err != nil {
				t.Fatal(err)
			}
			return os.NewFile(uintptr(fd), "f"), openFile(t, w.at("$W/file"))
		},
		"a file in a mount elsewhere": func(t *testing.T, w *world) (hidden, free *os.File) {
			return openFile(t, fmt.Sprintf("/proc/self/fd/%d/f", w.detached(t).Fd())), openFile(t, w.at("$W/file"))
		},
		"a directory in a mount elsewhere": func(t *testing.T, w *world) (hidden, free *os.File) {
			return openFile(t, fmt.Sprintf("/proc/self/fd/%d/.", w.detached(t).Fd())), openFile(t, w.at("$W/file"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			launch.EachUser(t, func(t *testing.T, u launch.User) {
				privateMounts(t)
				w := newWorld(t, u)
				w.shim = launch.Install(t, launch.Dir(t), "sh", launch.Record{Real: launch.Look(t, "sh")})
				hidden, free := open(t, w)
				defer hidden.Close()
				defer free.Close()
				c := w.command(t, w.policy(t, hideSecret), nil)
				c.Args = []string{"sh", "-c", `if (: <&3) 2>&-; then echo open; fi; if (: <&4) 2>&-; then echo free; fi`}
				c.Extra = []*os.File{hidden, free}
				r := c.Run(t)
				if r.Code != 0 || r.Stdout != "free\n" {
					t.Errorf("want only the other descriptor to be open, have %v", r)
				}
				if d := w.report(t).Descriptors; len(d) != 1 || d[0].FD != 3 || !d[0].Closed {
					t.Errorf("reported: %+v", d)
				}
			})
		})
	}
}

// An inherited block device would show what is hidden on the disk.
func TestDescriptorOfADiskIsClosed(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts, launch.Program("losetup"), launch.Program("mkfs.ext4"))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		privateMounts(t)
		w := newWorld(t, u)
		d := newDisk(t, w)
		w.shim = launch.Install(t, launch.Dir(t), "sh", launch.Record{Real: launch.Look(t, "sh")})
		node, null := openFile(t, d.node), openFile(t, os.DevNull)
		defer node.Close()
		defer null.Close()
		start := func(policy any) launch.Result {
			c := w.command(t, policy, nil)
			c.Args = []string{"sh", "-c", "if (: <&4) 2>&-; then echo null; fi; grep -aq '" + secret + "' <&3 2>&- && echo secret"}
			c.Extra = []*os.File{node, null}
			return c.Run(t)
		}
		if r := start(nil); r.Stdout != "null\nsecret\n" {
			t.Errorf("without a policy: %v", r)
		}
		if _, err := node.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
		if r := start(w.policy(t, `{"version":1,"hidden":["$W/disk/secret"]}`)); r.Stdout != "null\n" {
			t.Errorf("want only the null device to be open: %v", r)
		}
		if ds := w.report(t).Descriptors; len(ds) != 1 || ds[0].FD != 3 || !ds[0].Closed {
			t.Errorf("reported: %+v", ds)
		}
	})
}

func openFile(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// inDirectory makes a directory in another one and opens it.
func inDirectory(t *testing.T, dir *os.File, name string) *os.File {
	t.Helper()
	defer dir.Close()
	if err := unix.Mkdirat(int(dir.Fd()), name, 0o755); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), name)
}

// detached opens the directory own beneath what is hidden by a mount that is
// in no mount namespace.
func (w *world) detached(t *testing.T) *os.File {
	t.Helper()
	fd, err := unix.OpenTree(unix.AT_FDCWD, w.at("$W/secret/own"), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	tree := os.NewFile(uintptr(fd), "tree")
	t.Cleanup(func() { tree.Close() })
	return tree
}
