package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/boot"
)

// Patch returns a copy of a shim's binary that holds the record. A record that
// is there already is replaced. The same binary and record give the same bytes.
//
// It returns [ErrNoShim] or [ErrManyBlocks] when it is not clear where the
// record belongs, [ErrTooLong], or what [Record.Validate] says. A running
// program's file cannot be written to: write the result to a new file and
// rename it.
func Patch(shim []byte, r Record) ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("patch record: %w", err)
	}
	off, err := find(shim)
	if err != nil {
		return nil, fmt.Errorf("patch record: %w", err)
	}
	block, err := encode(r)
	if err != nil {
		return nil, fmt.Errorf("patch record: %w", err)
	}
	patched := bytes.Clone(shim)
	copy(patched[off:], block)
	return patched, nil
}

// Read returns the record in a shim's binary, like [Decode], or [ErrNoShim] or
// [ErrManyBlocks].
func Read(shim []byte) (Record, bool, error) {
	off, err := find(shim)
	if err != nil {
		return Record{}, false, fmt.Errorf("read record: %w", err)
	}
	return Decode(shim[off:])
}

// find returns where the block is.
func find(shim []byte) (int, error) {
	needle := magic()
	off := bytes.Index(shim, needle)
	if off < 0 || len(shim)-off < boot.RecordSize {
		return 0, ErrNoShim
	}
	if bytes.Contains(shim[off+1:], needle) {
		return 0, ErrManyBlocks
	}
	return off, nil
}

// inverted is the magic with every bit inverted, so that a program that looks
// for the magic does not hold it.
var inverted = [boot.RecordMagicLen]byte{
	0x88, 0xc2, 0x18, 0x47, 0x1b, 0x72, 0x07, 0xc7,
	0xe2, 0x78, 0xa9, 0xb6, 0x5f, 0xd8, 0x0a, 0x41,
	0x06, 0x83, 0xac, 0x68, 0x15, 0x32, 0x7a, 0x25,
	0x86, 0x14, 0xf8, 0x02, 0x6a, 0x53, 0x37, 0x45,
}

func magic() []byte {
	m := make([]byte, len(inverted))
	for i, b := range inverted {
		m[i] = ^b
	}
	return m
}

// IsShim reports whether a file is a shim, of any version, from its first
// boot.HeaderSize bytes, or all of them if there are fewer. The marker is no
// secret: it keeps shims from starting each other in a loop, and proves nothing.
func IsShim(header []byte) bool {
	header = header[:min(len(header), boot.HeaderSize)]
	if !bytes.HasPrefix(header, []byte("\x7fELF")) {
		return false
	}
	for i := 0; i+16 <= len(header); i += 4 {
		if binary.LittleEndian.Uint64(header[i:]) == boot.MarkerLow && binary.LittleEndian.Uint64(header[i+8:]) == boot.MarkerHigh {
			return true
		}
	}
	return false
}

// FileIsShim is [IsShim] for an open file. It reads at offset 0.
func FileIsShim(file io.ReaderAt) (bool, error) {
	header := make([]byte, boot.HeaderSize)
	n, err := file.ReadAt(header, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read file header: %w", err)
	}
	return IsShim(header[:n]), nil
}
