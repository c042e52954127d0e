package record

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/boot"
)

// Decode reads the record of a block: boot.RecordBlock of the running shim. It
// reports false for a block that was never written, and [ErrBroken] for one
// that must not be used.
func Decode(block []byte) (Record, bool, error) {
	if len(block) < boot.RecordSize {
		return Record{}, false, fmt.Errorf("decode record: %d bytes: %w", len(block), ErrBroken)
	}
	block = block[:boot.RecordSize]
	u32 := func(off int) uint32 { return binary.LittleEndian.Uint32(block[off:]) }

	version, length, sum := u32(boot.RecordOffVersion), u32(boot.RecordOffLength), u32(boot.RecordOffSum)
	if version == 0 && length == 0 && sum == 0 {
		return Record{}, false, nil
	}
	broken := func(what string) (Record, bool, error) {
		return Record{}, false, fmt.Errorf("decode record: %s: %w", what, ErrBroken)
	}
	if version != boot.RecordVersion {
		return broken(fmt.Sprintf("version %d", version))
	}
	if length < boot.RecordOffStrings-boot.RecordOffPayload || length > boot.RecordSize-boot.RecordOffPayload {
		return broken(fmt.Sprintf("length %d", length))
	}
	end := boot.RecordOffPayload + int(length)
	if checksum(block, end) != sum {
		return broken("checksum")
	}
	missing, argv0, inPlace := block[boot.RecordOffMissing], block[boot.RecordOffArgv0], block[boot.RecordOffInPlace]
	if missing > boot.RecordMissingRefuse || argv0 > boot.RecordArgv0Real || inPlace > 1 {
		return broken("unknown choice")
	}

	var field [boot.RecordFields]string
	for i := range field {
		off := int(binary.LittleEndian.Uint16(block[boot.RecordOffFields+4*i:]))
		n := int(binary.LittleEndian.Uint16(block[boot.RecordOffFields+4*i+2:]))
		if n == 0 {
			continue
		}
		if off < boot.RecordOffStrings || off+n >= end || block[off+n] != 0 || bytes.IndexByte(block[off:off+n], 0) >= 0 {
			return broken(fmt.Sprintf("field %d", i))
		}
		field[i] = string(block[off : off+n])
	}
	r := Record{
		Real:       field[boot.RecordFieldReal],
		PolicyEnv:  field[boot.RecordFieldPolicyEnv],
		OnMissing:  OnMissing(missing),
		Argv0:      Argv0(argv0),
		Report:     field[boot.RecordFieldReport],
		Log:        field[boot.RecordFieldLog],
		ProfileDir: field[boot.RecordFieldProfileDir],
		InPlace:    inPlace == 1,
	}
	if r.PolicyEnv == "" {
		r.PolicyEnv = boot.DefaultPolicyEnv
	}
	return r, true, nil
}

// encode makes the block of a valid record.
func encode(r Record) ([]byte, error) {
	block := make([]byte, boot.RecordSize)
	copy(block, magic())
	put32 := func(off int, v int) { binary.LittleEndian.PutUint32(block[off:], uint32(v)) }

	block[boot.RecordOffMissing] = byte(r.OnMissing)
	block[boot.RecordOffArgv0] = byte(r.Argv0)
	if r.InPlace {
		block[boot.RecordOffInPlace] = 1
	}
	if r.PolicyEnv == "" {
		r.PolicyEnv = boot.DefaultPolicyEnv
	}
	end := boot.RecordOffStrings
	for i, s := range [boot.RecordFields]string{
		boot.RecordFieldReal:       r.Real,
		boot.RecordFieldPolicyEnv:  r.PolicyEnv,
		boot.RecordFieldReport:     r.Report,
		boot.RecordFieldLog:        r.Log,
		boot.RecordFieldProfileDir: r.ProfileDir,
	} {
		if s == "" {
			continue
		}
		if end+len(s)+1 > boot.RecordSize {
			return nil, ErrTooLong
		}
		binary.LittleEndian.PutUint16(block[boot.RecordOffFields+4*i:], uint16(end))
		binary.LittleEndian.PutUint16(block[boot.RecordOffFields+4*i+2:], uint16(len(s)))
		end += copy(block[end:], s) + 1
	}
	put32(boot.RecordOffVersion, boot.RecordVersion)
	put32(boot.RecordOffLength, end-boot.RecordOffPayload)
	put32(boot.RecordOffSum, int(checksum(block, end)))
	return block, nil
}

// checksum is the CRC-32 of a record that ends at end. The one of hash/crc32
// would build a table at the start of every launch.
func checksum(block []byte, end int) uint32 {
	return boot.RecordSum((*[boot.RecordSize]byte)(block), uintptr(end-boot.RecordOffPayload))
}
