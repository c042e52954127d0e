package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// precreate makes the directories of the policy and their parents, with mode
// 0700 less the umask. What exists keeps its mode. It returns the paths that
// the policy names.
func precreate(p *rules.Policy) ([]string, error) {
	var out []string
	for _, e := range p.Precreate {
		if err := makeDirs(e.Path); err != nil {
			return out, fmt.Errorf("%s: %q: %w", e.Key, e.Path, shorn(err))
		}
		out = append(out, e.Path)
	}
	return out, nil
}

func makeDirs(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fs.ErrExist
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if parent := parentOf(path); parent != path {
		if err := makeDirs(parent); err != nil {
			return err
		}
	}
	err = os.Mkdir(path, 0o700)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	// Another launch was faster, or the name is a symlink to nothing.
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return fs.ErrExist
	}
	return nil
}

// parentOf returns the directory above an absolute path without empty or "."
// components; a ".." is left to the kernel.
func parentOf(path string) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '/' {
			return path[:i]
		}
	}
	return "/"
}
