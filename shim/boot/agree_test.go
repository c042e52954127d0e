//go:build linux && (amd64 || arm64)

package boot_test

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/boot"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// The record is checked twice, before the runtime and in it. Both must say the
// same of every block, also of one whose checksum is right.
func FuzzRecordChecksAgree(f *testing.F) {
	f.Add(uint32(1), uint32(40), []byte("\x00\x00\x00\x00D\x00\x07\x00"), true)
	f.Add(uint32(0), uint32(0), []byte{}, false)
	for _, path := range []string{"/bin/sh", "/usr/bin/python3"} {
		block, err := record.Patch(blockFile(), record.Record{Real: path, Report: "/r"})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint32(1), binary.LittleEndian.Uint32(block[boot.RecordOffLength:]), block[boot.RecordOffPayload:], true)
	}
	f.Fuzz(func(t *testing.T, version, length uint32, payload []byte, sum bool) {
		var block [boot.RecordSize]byte
		binary.LittleEndian.PutUint32(block[boot.RecordOffVersion:], version)
		binary.LittleEndian.PutUint32(block[boot.RecordOffLength:], length)
		copy(block[boot.RecordOffPayload:], payload)
		if end := uint64(boot.RecordOffPayload) + uint64(length); sum && end <= boot.RecordSize {
			c := crc32.ChecksumIEEE(block[boot.RecordOffVersion:boot.RecordOffSum])
			c = crc32.Update(c, crc32.IEEETable, block[boot.RecordOffPayload:end])
			binary.LittleEndian.PutUint32(block[boot.RecordOffSum:], c)
		}
		_, ok, err := record.Decode(block[:])
		none, valid := boot.RecordUsable(&block)
		if valid != ok || none != (!ok && err == nil) {
			t.Errorf("Decode says %v, %v, the entry says none %v, valid %v", ok, err, none, valid)
		}
	})
}

func blockFile() []byte {
	b := make([]byte, boot.RecordSize)
	copy(b, boot.RecordBlock()[:boot.RecordMagicLen])
	return b
}

func FuzzMarkerChecksAgree(f *testing.F) {
	f.Add([]byte("\x7fELF"), []byte("\x11\xa9\x00\xb8\x27\xef\xd2\xcb\xcf\x7e\x61\x5a\x3d\xa8\xee\xf6"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		header := append(append(before[:len(before):len(before)], "\x11\xa9\x00\xb8\x27\xef\xd2\xcb\xcf\x7e\x61\x5a\x3d\xa8\xee\xf6"...), after...)
		for _, h := range [][]byte{before, after, header} {
			h = h[:min(len(h), boot.HeaderSize)]
			if got, want := boot.HeaderHasMarker(h), record.IsShim(h); got != want {
				t.Errorf("%q: the entry says %v, IsShim %v", h, got, want)
			}
		}
	})
}
