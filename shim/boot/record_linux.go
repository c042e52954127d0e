//go:build amd64 || arm64

package boot

import "unsafe"

// block is where the installer writes the record. The initial value is the
// magic alone, which makes it data and not zeroed memory. No other copy of the
// magic may be in the binary: whoever looks for it builds it at run time.
var block = [RecordSize]byte{
	0x77, 0x3d, 0xe7, 0xb8, 0xe4, 0x8d, 0xf8, 0x38,
	0x1d, 0x87, 0x56, 0x49, 0xa0, 0x27, 0xf5, 0xbe,
	0xf9, 0x7c, 0x53, 0x97, 0xea, 0xcd, 0x85, 0xda,
	0x79, 0xeb, 0x07, 0xfd, 0x95, 0xac, 0xc8, 0xba,
}

// RecordBlock returns the record of the running binary, RecordSize bytes as
// package record decodes them. They must not be changed.
func RecordBlock() []byte { return block[:] }

// recordState says what the entry found.
type recordState uint8

const (
	recordNone recordState = iota
	recordValid
	recordBroken
)

// checkRecord reports whether the block holds a record that may be used. It is
// the check of record.Decode, without allocation.
//
//go:nosplit
func checkRecord(b *byte) recordState {
	version, length := le32(b, RecordOffVersion), uintptr(le32(b, RecordOffLength))
	if version == 0 && length == 0 && le32(b, RecordOffSum) == 0 {
		return recordNone
	}
	if version != RecordVersion || length < RecordOffStrings-RecordOffPayload || length > RecordSize-RecordOffPayload {
		return recordBroken
	}
	if recordSum(b, length) != le32(b, RecordOffSum) {
		return recordBroken
	}
	if at(b, RecordOffMissing) > RecordMissingRefuse || at(b, RecordOffArgv0) > RecordArgv0Real || at(b, RecordOffInPlace) > 1 {
		return recordBroken
	}
	for i := uintptr(0); i < RecordFields; i++ {
		off, n := field(b, i)
		if n == 0 {
			continue
		}
		if off < RecordOffStrings || off+n >= RecordOffPayload+length || at(b, off+n) != 0 {
			return recordBroken
		}
		for j := uintptr(0); j < n; j++ {
			if at(b, off+j) == 0 {
				return recordBroken
			}
		}
	}
	return recordValid
}

// RecordSum returns the checksum of a record that has length bytes behind it.
func RecordSum(b *[RecordSize]byte, length uintptr) uint32 { return recordSum(&b[0], length) }

//go:nosplit
func recordSum(b *byte, length uintptr) uint32 {
	sum := crc(^uint32(0), b, RecordOffVersion, 8)
	return ^crc(sum, b, RecordOffPayload, length)
}

// field returns where the string of a field stands, and its length.
//
//go:nosplit
func field(b *byte, i uintptr) (off, n uintptr) {
	v := le32(b, RecordOffFields+4*i)
	return uintptr(v & 0xffff), uintptr(v >> 16)
}

// crc is CRC-32 (IEEE) without a table and without the final inversion.
//
//go:nosplit
func crc(sum uint32, b *byte, off, n uintptr) uint32 {
	for ; n > 0; n-- {
		sum ^= uint32(at(b, off))
		off++
		for i := 0; i < 8; i++ {
			sum = sum>>1 ^ 0xedb88320&-(sum&1)
		}
	}
	return sum
}

//go:nosplit
func at(b *byte, off uintptr) byte { return *(*byte)(unsafe.Add(unsafe.Pointer(b), off)) }

//go:nosplit
func le32(b *byte, off uintptr) uint32 {
	return uint32(at(b, off)) | uint32(at(b, off+1))<<8 | uint32(at(b, off+2))<<16 | uint32(at(b, off+3))<<24
}
