package hiding

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// privateMounts gives the goroutine of the test, and so what it starts, a mount
// namespace of its own. The test must not start subtests after it.
func privateMounts(t *testing.T) {
	t.Helper()
	launch.Need(t, launch.IsRoot, launch.Mounts)
	witness(t)
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Fatalf("unshare: %v", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatalf("make / private: %v", err)
	}
}

// mount calls mount(2) and undoes it at the end of the test. point is made if
// it does not exist.
func (w *world) mount(t *testing.T, source, point, fstype string, flags uintptr, data string) {
	t.Helper()
	source, point, data = w.at(source), w.at(point), w.at(data)
	if err := os.Mkdir(point, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	if err := unix.Mount(source, point, fstype, flags, data); err != nil {
		t.Fatalf("mount %s at %s: %v", source, point, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil {
			// The next clean-up removes the directory with all beneath it, which
			// must not be what is mounted there.
			fmt.Fprintf(os.Stderr, "unmount %s: %v\n", point, err)
			os.Exit(3)
		}
	})
}

func (w *world) bind(t *testing.T, source, point string) {
	t.Helper()
	w.mount(t, source, point, "", unix.MS_BIND, "")
}

// overlay mounts a read-only overlay of a directory and an empty one, which must
// not be a part of the other.
func (w *world) overlay(t *testing.T, lower, point string) {
	t.Helper()
	if _, err := os.Stat(w.at("$W/none")); err != nil {
		w.mount(t, "tmpfs", "$W/none", "tmpfs", 0, "mode=755")
	}
	w.mount(t, "overlay", point, "overlay", 0, "lowerdir="+lower+":$W/none")
}

// bindReadOnly is bind for what no test may write, such as the whole system.
func (w *world) bindReadOnly(t *testing.T, source, point string) {
	t.Helper()
	w.bind(t, source, point)
	if err := unix.Mount("", w.at(point), "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		fmt.Fprintf(os.Stderr, "make %s read-only: %v\n", point, err)
		os.Exit(3)
	}
}
