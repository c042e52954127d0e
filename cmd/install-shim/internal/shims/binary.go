package shims

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// Name is what a shim that was not installed is called.
const Name = "sandbox-exec-shim"

// A Binary is the content of a shim's file.
type Binary struct {
	Path string
	ID   pathcheck.ID
	Data []byte
	// Recorded is set when it is an installed shim and not the bare one.
	Recorded bool
}

// Read returns what an open file holds, up to a size that no shim has.
func Read(f *os.File) ([]byte, error) { return io.ReadAll(io.LimitReader(f, 64<<20)) }

// Load reads the shim at a path, or the bare one beside this program for "".
func Load(path string) (*Binary, error) {
	var err error
	beside := path == ""
	if beside {
		path, err = neighbour()
	}
	if err == nil {
		path, err = Absolute(path)
	}
	if err != nil {
		return nil, fmt.Errorf("find the shim: %w", err)
	}
	switch _, err := os.Stat(path); {
	case beside && errors.Is(err, os.ErrNotExist):
		return nil, voice.Hinted(voice.Refused(path, "there is no shim beside install-shim"), "name the shim with --shim")
	case err != nil:
		return nil, voice.Refused(path, "%w", voice.Bare(err))
	}
	f, err := Open(unix.AT_FDCWD, path, 0)
	if err != nil {
		return nil, voice.Refused(path, "open: %w", err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, voice.Refused(path, "%w", err)
	}
	if is, err := record.FileIsShim(f); err != nil || !is {
		return nil, voice.Refused(path, "is not a shim")
	}
	b := &Binary{Path: path, ID: ID(&st)}
	if b.Data, err = Read(f); err != nil {
		return nil, voice.Refused(path, "read: %w", voice.Bare(err))
	}
	_, b.Recorded, err = record.Read(b.Data)
	if err != nil && !errors.Is(err, record.ErrBroken) {
		return nil, voice.Refused(path, "%w", err)
	}
	return b, b.checkMachine()
}

func neighbour() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	self, err = filepath.EvalSymlinks(self)
	return filepath.Join(filepath.Dir(self), Name), err
}

// checkMachine refuses a shim for another kind of machine: in the place of a
// program it would leave nothing that starts.
func (b *Binary) checkMachine() error {
	file, err := elf.NewFile(bytes.NewReader(b.Data))
	if err != nil {
		return voice.Refused(b.Path, "%w", err)
	}
	want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	if file.Machine != want {
		return voice.Refused(b.Path, "is built for %v, not for this machine", file.Machine)
	}
	return nil
}
