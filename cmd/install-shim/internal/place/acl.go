package place

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
)

// accessACL is the extended attribute that holds a file's access control list
// (acl(5)). Without it the shim would be closed to users for whom only the
// program's list opens it.
const accessACL = "system.posix_acl_access"

// readACL returns the list of the file at path, symlinks followed, or nil for a
// file that has none beside its mode.
func readACL(path string) ([]byte, error) {
	buf := make([]byte, 64<<10) // XATTR_SIZE_MAX
	n, err := unix.Getxattr(path, accessACL, buf)
	switch {
	case errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EOPNOTSUPP):
		return nil, nil
	case err != nil:
		return nil, voice.Refused(path, "read its access control list: %w", err)
	}
	return buf[:n], nil
}

// readableACL is [readableIfExecutable] for a list: a header of 4 bytes, then 8
// for each entry, of which the third and fourth are its permissions
// (struct posix_acl_xattr_entry).
func readableACL(acl []byte) []byte {
	const header, entry, permissions = 4, 8, 2
	out := append([]byte(nil), acl...)
	for at := header; at+entry <= len(out); at += entry {
		p := binary.LittleEndian.Uint16(out[at+permissions:])
		binary.LittleEndian.PutUint16(out[at+permissions:], p|p&1<<2)
	}
	return out
}
