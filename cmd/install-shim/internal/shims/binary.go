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
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// Name is what a shim that was not installed is called.
const Name = "sandbox-exec-shim"

// A File is what stands at a path, symbolic links followed.
type File struct {
	Path   string
	IsShim bool
	// Data is the content of a shim. [At] leaves it out.
	Data []byte
	// Record is the shim's, the zero value where Recorded is false: it was never
	// installed, or RecordErr says how the record is damaged.
	Record    record.Record
	Recorded  bool
	RecordErr error
}

// Look looks at the file of a name in a directory, and reads it if it is a shim.
// The flags are those of [Open]. Path is left out, also in errors.
func Look(dir int, name string, flags int) (at File, err error) {
	f, err := Open(dir, name, flags)
	if err != nil {
		return at, fmt.Errorf("open: %w", err)
	}
	defer f.Close()
	is, err := record.FileIsShim(f)
	if err != nil || !is {
		return at, voice.Bare(err)
	}
	at.IsShim = true
	const most = 64 << 20 // no shim is larger
	if at.Data, err = io.ReadAll(io.LimitReader(f, most)); err != nil {
		return at, fmt.Errorf("read: %w", voice.Bare(err))
	}
	at.Record, at.Recorded, at.RecordErr = record.Read(at.Data)
	return at, nil
}

// At looks at the file at a path. What cannot be read is no shim.
func At(path string) File {
	at, _ := Look(unix.AT_FDCWD, path, 0)
	at.Path, at.Data = path, nil
	return at
}

// Load reads the shim at a path, or the bare one beside this program for "", and
// makes sure that it could be installed.
func Load(path string) (at File, err error) {
	beside := path == ""
	if beside {
		path, err = neighbour()
	}
	if err == nil {
		path, err = Absolute(path)
	}
	if err != nil {
		return at, fmt.Errorf("find the shim: %w", err)
	}
	switch _, err := os.Stat(path); {
	case beside && errors.Is(err, os.ErrNotExist):
		return at, voice.Hinted(voice.Refused(path, "there is no shim beside install-shim"), "name the shim with --shim")
	case err != nil:
		return at, voice.Refused(path, "%w", voice.Bare(err))
	}
	at, err = Look(unix.AT_FDCWD, path, 0)
	at.Path = path
	switch {
	case errors.Is(err, unix.EISDIR) || err == nil && !at.IsShim:
		return at, voice.Refused(path, "is not a shim")
	case err != nil:
		return at, voice.Refused(path, "%w", err)
	case at.RecordErr != nil && !errors.Is(at.RecordErr, record.ErrBroken):
		return at, voice.Refused(path, "%w", at.RecordErr)
	}
	return at, at.checkMachine()
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
func (at File) checkMachine() error {
	file, err := elf.NewFile(bytes.NewReader(at.Data))
	if err != nil {
		return voice.Refused(at.Path, "%w", err)
	}
	want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	if file.Machine != want {
		return voice.Refused(at.Path, "is built for %v, not for this machine", file.Machine)
	}
	return nil
}
