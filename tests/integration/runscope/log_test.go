package runscope

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A launchLine is the line of the log about one launch.
type launchLine struct {
	PID        int      `json:"pid"`
	RunHidden  []string `json:"run_hidden"`
	RunExposed []string `json:"run_exposed"`
}

func launchLines(t *testing.T, log []byte) []launchLine {
	t.Helper()
	var out []launchLine
	for line := range bytes.Lines(log) {
		var l struct {
			Message string `json:"@message"`
			launchLine
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("log line %s: %v", line, err)
		}
		if l.Message == "launch" {
			out = append(out, l.launchLine)
		}
	}
	return out
}

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
