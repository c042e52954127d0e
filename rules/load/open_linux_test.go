package load

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

func TestOpenRegular(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.json")
	if err := os.WriteFile(file, []byte(`{"version":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("policy.json", link); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.MemfdCreate("policy", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(`{"version":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	before := openDescriptors(t)
	for _, row := range []struct {
		name, path string
		want       error
	}{
		{"regular file", file, nil},
		{"through a link", link, nil},
		{"inherited memory file", "/proc/self/fd/" + strconv.Itoa(fd), nil},
		{"FIFO without a writer", fifo, pathcheck.ErrNotRegular},
		{"directory", dir, pathcheck.ErrNotRegular},
		{"device", "/dev/zero", pathcheck.ErrNotRegular},
		{"missing", filepath.Join(dir, "none"), syscall.ENOENT},
		{"below a file", filepath.Join(file, "x"), syscall.ENOTDIR},
		{"loop", filepath.Join(dir, "loop"), syscall.ELOOP},
		{"name too long", "/" + strings.Repeat("n", 256), syscall.ENAMETOOLONG},
		{"NUL", file + "\x00", syscall.EINVAL},
		{"a file that cannot be read", "/proc/self/mem", syscall.EIO},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, _, err := Policy("@"+row.path, Options{})
			if !errors.Is(err, row.want) {
				t.Fatalf("error %v, want %v", err, row.want)
			}
			if (p != nil) != (row.want == nil) {
				t.Errorf("policy %v with error %v", p, err)
			}
			if after := openDescriptors(t); after != before {
				t.Errorf("open descriptors: %d before, %d after", before, after)
			}
		})
	}
}

// TestOpenRegularDenied needs a user whom file modes hold.
func TestOpenRegularDenied(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(file, []byte(`{"version":1}`), 0o400); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Policy("@"+file, Options{}); err != nil {
		t.Fatalf("control: %v", err)
	}
	if os.Geteuid() == 0 {
		t.Skip("root reads files of mode 000")
	}
	if err := os.Chmod(file, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Policy("@"+file, Options{}); !errors.Is(err, syscall.EACCES) {
		t.Errorf("error %v, want EACCES", err)
	}
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
