package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// A source is the binary that is copied for each install.
type source struct {
	path string
	id   fileID
	data []byte
	// recorded is set when it is an installed shim and not the bare one.
	recorded bool
}

const shimName = "sandbox-exec-shim"

// neighbour is the shim in the directory of this very program.
func neighbour() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(self), shimName), nil
}

// loadShim reads the shim at a path, or the neighbour for "".
func loadShim(path string) (*source, error) {
	if path == "" {
		p, err := neighbour()
		if err != nil {
			return nil, fmt.Errorf("find the shim: %w", err)
		}
		if _, err := os.Stat(p); errors.Is(err, os.ErrNotExist) {
			return nil, &hinted{refused(p, "there is no shim beside install-shim"), "name the shim with --shim"}
		}
		path = p
	}
	path, err := absolute(path)
	if err != nil {
		return nil, fmt.Errorf("find the shim: %w", err)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, refused(path, "%w", bare(err))
	}
	d, err := openDirectory(filepath.Dir(resolved))
	if err != nil {
		return nil, err
	}
	defer d.close()
	name := filepath.Base(resolved)
	e, err := d.look(name)
	if err != nil {
		return nil, err
	}
	if e.kind != aShim {
		return nil, refused(path, "is not a shim")
	}
	s := &source{path: path, id: idOf(&e.st)}
	if s.data, err = d.read(name); err != nil {
		return nil, err
	}
	_, s.recorded, err = record.Read(s.data)
	if err != nil && !errors.Is(err, record.ErrBroken) {
		return nil, refused(path, "%w", err)
	}
	return s, s.checkMachine()
}

// checkMachine refuses a shim for another kind of machine: in the place of a
// program it would leave nothing that starts.
func (s *source) checkMachine() error {
	f, err := os.Open(s.path)
	if err != nil {
		return refused(s.path, "%w", bare(err))
	}
	defer f.Close()
	file, err := elf.NewFile(f)
	if err != nil {
		return refused(s.path, "%w", err)
	}
	want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	if file.Machine != want {
		return refused(s.path, "is built for %v, not for this machine", file.Machine)
	}
	return nil
}
