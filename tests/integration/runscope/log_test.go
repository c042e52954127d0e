package runscope

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// await waits for a file that the launch makes. The directory may be missing too.
func await(t *testing.T, dir, name string) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	defer f.Close()
	buf := make([]byte, 4096)
	for _, d := range []string{filepath.Dir(dir), dir} {
		if _, err := unix.InotifyAddWatch(fd, d, unix.IN_CREATE); err != nil {
			t.Fatal(err)
		}
		next := filepath.Join(d, name)
		if d != dir {
			next = dir
		}
		for {
			if _, err := os.Lstat(next); err == nil {
				break
			}
			if err := f.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Read(buf); err != nil {
				t.Fatalf("the launch did not make %s: %v", next, err)
			}
		}
	}
}
