//go:build !linux

package command

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// resolve takes ".." by the text, unlike its Linux sibling.
func resolve(path string) (string, error) {
	path = filepath.Clean(path)
	tail := ""
	for cur := path; ; {
		real, err := filepath.EvalSymlinks(cur)
		if err == nil {
			return filepath.Join(real, tail), nil
		}
		up := filepath.Dir(cur)
		if !errors.Is(err, fs.ErrNotExist) || up == cur {
			return path, err
		}
		tail = filepath.Join(filepath.Base(cur), tail)
		cur = up
	}
}
