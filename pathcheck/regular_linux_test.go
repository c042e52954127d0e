package pathcheck

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The descriptor must not reach the program, should it ever stay open.
func TestOpenRegularCloseOnExec(t *testing.T) {
	f, err := openRegular("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flags, err := unix.FcntlInt(uintptr(f.(descriptor)), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("descriptor flags %#x, %v", flags, err)
	}
}

// TestReadRegularBounds: what is read of a file of five bytes.
func TestReadRegularBounds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		limit int
		want  string
		err   error
	}{{6, "12345", nil}, {5, "12345", nil}, {4, "1234", ErrTooLarge}, {0, "", ErrTooLarge}} {
		if got, err := ReadRegular(file, row.limit); string(got) != row.want || !errors.Is(err, row.err) {
			t.Errorf("limit %d: %q, %v; want %q, %v", row.limit, got, err, row.want, row.err)
		}
	}
	if got, err := ReadHead(file, 2); string(got) != "12" || err != nil {
		t.Errorf("head: %q, %v", got, err)
	}
}

// Nothing that stands in the place of a file is waited for: no pipe, no device, and
// no file on which another process holds a lease.
func TestReadRegularWaitsForNothing(t *testing.T) {
	dir := t.TempDir()
	fifo, leased := filepath.Join(dir, "fifo"), filepath.Join(dir, "leased")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(leased, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(leased)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for path, want := range map[string]error{fifo: ErrNotRegular, "/dev/zero": ErrNotRegular, dir: ErrNotRegular, leased: unix.EAGAIN} {
		if path == leased {
			if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
				t.Logf("no lease on this file system: %v", err)
				continue
			}
		}
		done := make(chan error, 1)
		go func() { _, err := ReadRegular(path, 10); done <- err }()
		select {
		case err := <-done:
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", path, err, want)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s: waits", path)
		}
	}
}
