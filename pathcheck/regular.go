package pathcheck

import (
	"errors"
	"fmt"
	"io"
)

// Errors of [ReadRegular]; use errors.Is.
var (
	// ErrNotRegular is a directory, a pipe, a socket or a device.
	ErrNotRegular = errors.New("not a regular file")
	// ErrTooLarge is a file that holds more than is read.
	ErrTooLarge = errors.New("too large")
)

// ReadRegular returns the text of a regular file, through symbolic links, of at most
// limit bytes. All that is read before a launch is confined is read by it, or by
// [ReadHead]: whoever may change the path meanwhile can neither make it wait nor fill
// the memory. Beside an errno the errors are [ErrNotRegular] and, with the first limit
// bytes, [ErrTooLarge]. The text is not nil, but for another error.
func ReadRegular(path string, limit int) ([]byte, error) {
	text, err := ReadHead(path, limit+1)
	if err == nil && len(text) > limit {
		return text[:limit], ErrTooLarge
	}
	return text, err
}

// ReadHead returns the first n bytes of a regular file, fewer if it has no more.
func ReadHead(path string, n int) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(n)))
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	return text, nil
}
