//go:build !unix

package pathcheck

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// openRegular opens a regular file for reading.
func openRegular(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, pe.Err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotRegular
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
