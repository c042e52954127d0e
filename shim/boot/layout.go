package boot

// The flags in ldflags.mk repeat these; a test holds them together.
const (
	// EntrySymbol is the name of the entry point, for the linker's -E.
	EntrySymbol = "_sandbox_exec_shim_entry"

	// MarkerFormat stands behind the marker, as a big-endian 32-bit number.
	MarkerFormat = 1
)

// The marker by which a shim of any version knows another is 16 bytes in the
// first page of the file. It is set as the GNU build id (the linker's -B),
// because notes stand between the ELF header and the text, survive strip, and
// need no step after the link. These are its halves as little-endian numbers.
const (
	MarkerLow  uint64 = 0xcbd2ef27b800a911
	MarkerHigh uint64 = 0xf6eea83d5a617ecf
)

// HeaderSize is how much of a file's beginning is searched for the marker.
const HeaderSize = 4096

// The record is a block of RecordSize bytes in the data of the binary:
//
//	0   magic, 32 bytes, which occur once in a shim
//	32  version, 0 in a block without a record
//	36  length of what follows the checksum
//	40  CRC-32 (IEEE) of bytes 32 to 39 and of what follows the checksum
//	44  on missing, argv0, in place, zero: one byte each
//	48  five fields: offset from the start of the block, and length, 16 bits each
//	68  the strings, each ended by NUL
//
// Numbers are little-endian. A field of length 0 is empty.
const (
	RecordSize     = 4096
	RecordMagicLen = 32
	RecordVersion  = 1

	RecordOffVersion = 32
	RecordOffLength  = 36
	RecordOffSum     = 40
	RecordOffPayload = 44
	RecordOffMissing = 44
	RecordOffArgv0   = 45
	RecordOffInPlace = 46
	RecordOffFields  = 48
	RecordOffStrings = 68

	RecordFieldReal       = 0
	RecordFieldPolicyEnv  = 1
	RecordFieldReport     = 2
	RecordFieldLog        = 3
	RecordFieldProfileDir = 4
	RecordFields          = 5

	RecordMissingPass   = 0
	RecordMissingRefuse = 1
	RecordArgv0Keep     = 0
	RecordArgv0Real     = 1
)

// DefaultPolicyEnv is the policy variable of a shim whose record names none.
const DefaultPolicyEnv = "SANDBOX_EXEC_SHIM_POLICY"
