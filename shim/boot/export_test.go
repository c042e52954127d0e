//go:build linux && (amd64 || arm64)

package boot

// RecordUsable is what the entry thinks of a block: none, valid or broken.
func RecordUsable(block *[RecordSize]byte) (none, valid bool) {
	s := checkRecord(&block[0])
	return s == recordNone, s == recordValid
}

// HeaderHasMarker is what the entry thinks of a file's first bytes.
func HeaderHasMarker(header []byte) bool {
	return len(header) >= 4 && le32(&header[0], 0) == elfMagic && hasMarker(&header[0], uintptr(len(header)))
}

// Privileged is for what no test can bring about here: AT_SECURE of a security
// module, with a file like any other.
var Privileged = privileged
