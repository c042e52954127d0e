package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// Main runs the tests of a package and removes the binaries built for them.
func Main(m *testing.M) {
	if onStage() {
		stage() // does not return
	}
	Fresh()
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

var built struct {
	once            sync.Once
	dir             string
	shim, installer string
	err             error
}

// Binaries returns the paths of the static shim and of install-shim, built
// once per test process with the flags of the Makefile, in a directory that
// every user can read.
func Binaries(tb testing.TB) (shim, installer string) {
	tb.Helper()
	build()
	if built.err != nil {
		tb.Fatal(built.err)
	}
	return built.shim, built.installer
}

// Shim returns the path of the static shim, like [Binaries], also when
// install-shim could not be built.
func Shim(tb testing.TB) string {
	tb.Helper()
	build()
	if _, err := os.Stat(built.shim); built.shim == "" || err != nil {
		tb.Fatal(errors.Join(built.err, err))
	}
	return built.shim
}

func build() {
	built.once.Do(func() {
		root, err := moduleRoot()
		if err != nil {
			built.err = err
			return
		}
		if built.dir, err = os.MkdirTemp(scratch, "shim-bin-"); err != nil {
			built.err = err
			return
		}
		if err = os.Chmod(built.dir, 0o755); err != nil {
			built.err = err
			return
		}
		built.shim = filepath.Join(built.dir, "sandbox-exec-shim")
		built.installer = filepath.Join(built.dir, "install-shim")
		cmd := exec.Command("make", "--no-print-directory", "build", "BIN="+built.dir, "OVERLAY="+os.Getenv("TEST_OVERLAY"))
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("make build: %w\n%s", err, out)
		}
	})
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == "/" {
			return "", errors.New("no go.mod above the current directory")
		}
	}
}

// A Record is what the installer would write into a shim.
type Record = record.Record

// Install puts a shim that holds the record at dir/name, in place of what is
// there, and returns its path. dir must exist.
func Install(tb testing.TB, dir, name string, r Record) string {
	tb.Helper()
	data, err := os.ReadFile(Shim(tb))
	if err != nil {
		tb.Fatal(err)
	}
	if data, err = record.Patch(data, r); err != nil {
		tb.Fatal(err)
	}
	return WriteProgram(tb, filepath.Join(dir, name), data)
}

// Copy puts a shim without a record at dir/name, like [Install].
func Copy(tb testing.TB, dir, name string) string {
	tb.Helper()
	data, err := os.ReadFile(Shim(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return WriteProgram(tb, filepath.Join(dir, name), data)
}

// WriteProgram writes an executable file, mode 0755, and returns its path. No
// process is started meanwhile: a child would inherit the open descriptor, and
// execve of the file would fail with ETXTBSY as long as the child has it.
func WriteProgram(tb testing.TB, path string, data []byte) string {
	tb.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	tmp := path + ".new"
	if err := os.WriteFile(tmp, data, 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(tmp, path); err != nil {
		tb.Fatal(err)
	}
	return path
}
