package main

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// change is the "change" command: it changes an attribute of a file, as a first
// launch might for the sake of a second.
func change(what, path string) error {
	switch what {
	case "capability":
		return unix.Setxattr(path, "security.capability", []byte{1, 0, 0, 2, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0)
	case "note":
		return unix.Setxattr(path, "user.note", []byte("x"), 0)
	case "acl":
		// struct posix_acl_xattr_header and entries: the user, uid 0, uid 65534,
		// the group, the mask and others, none of whom may do anything.
		acl := []byte{2, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255, 2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 254, 255, 0, 0}
		for _, tag := range []byte{4, 16, 32} {
			acl = append(acl, tag, 0, 0, 0, 255, 255, 255, 255)
		}
		return unix.Setxattr(path, "system.posix_acl_access", acl, 0)
	case "owner":
		owner := 65534
		if os.Getuid() == owner {
			owner = 0
		}
		return os.Lchown(path, owner, owner)
	case "immutable":
		fd, err := open(path, unix.O_RDONLY)
		if err != nil {
			return err
		}
		return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, 0x10)
	}
	mode, err := strconv.ParseUint(what, 8, 32)
	if err != nil {
		return fmt.Errorf("no attribute %q", what)
	}
	return unix.Chmod(path, uint32(mode))
}
