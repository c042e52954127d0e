package layout

import (
	"bytes"
	"testing"
)

// maxLines is how long a Go file may be: a longer one holds two concepts.
const maxLines = 350

func TestFilesAreShort(t *testing.T) {
	files := goFiles(t, ".")
	if len(files) < 100 {
		t.Fatalf("only %d files found", len(files))
	}
	for _, file := range files {
		if n := bytes.Count(read(t, file), []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, want at most %d", file, n, maxLines)
		}
	}
}
