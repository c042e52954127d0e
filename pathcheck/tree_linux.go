package pathcheck

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// OS is the file system of the running process. Nodes are O_PATH descriptors,
// so opening one never blocks, never runs a driver's open and needs no
// permission on the inode itself (open(2)).
type OS struct{}

// Root opens "/".
func (OS) Root() (Node, error) {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/", Err: err}
	}
	return newOSNode(fd, "/")
}

type osNode struct {
	fd   int
	info Info
}

func newOSNode(fd int, name string) (Node, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, &os.PathError{Op: "fstat", Path: name, Err: err}
	}
	return &osNode{fd: fd, info: infoOf(&st)}, nil
}

func infoOf(st *unix.Stat_t) Info {
	info := Info{
		ID:    ID{Dev: uint64(st.Dev), Ino: st.Ino},
		Links: uint64(st.Nlink),
		Mode:  st.Mode & 0o7777,
		UID:   st.Uid,
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		info.Kind = Regular
	case unix.S_IFDIR:
		info.Kind = Directory
	case unix.S_IFLNK:
		info.Kind = Symlink
	case unix.S_IFCHR:
		info.Kind = CharDevice
	case unix.S_IFBLK:
		info.Kind = BlockDevice
	case unix.S_IFIFO:
		info.Kind = FIFO
	case unix.S_IFSOCK:
		info.Kind = Socket
	}
	if info.Kind == CharDevice || info.Kind == BlockDevice {
		info.Major, info.Minor = unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))
	}
	return info
}

func (n *osNode) Info() Info { return n.info }

func (n *osNode) Open(name string) (Node, error) {
	fd, err := unix.Openat(n.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return newOSNode(fd, name)
}

func (n *osNode) List() ([]string, error) {
	fd, err := unix.Openat(n.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: ".", Err: err}
	}
	defer unix.Close(fd)
	var names []string
	buf := make([]byte, 64<<10)
	for {
		m, err := unix.ReadDirent(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "getdents", Path: ".", Err: err}
		}
		if m == 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:m], -1, names)
	}
	slices.Sort(names)
	return names, nil
}

func (n *osNode) ReadLink() (string, error) {
	for size := 256; ; size *= 2 {
		buf := make([]byte, size)
		m, err := unix.Readlinkat(n.fd, "", buf)
		if err != nil {
			return "", &os.PathError{Op: "readlink", Path: "fd " + strconv.Itoa(n.fd), Err: err}
		}
		if m < size {
			return string(buf[:m]), nil
		}
		if size > unix.PathMax {
			return "", fmt.Errorf("readlink: %w", unix.ENAMETOOLONG)
		}
	}
}

func (n *osNode) Close() error { return unix.Close(n.fd) }

// FD returns the O_PATH descriptor of a node of [OS], or false for a node of
// another tree. The descriptor belongs to the node.
func FD(n Node) (int, bool) {
	if k, ok := n.(*keptNode); ok {
		n = k.Node
	}
	o, ok := n.(*osNode)
	if !ok {
		return -1, false
	}
	return o.fd, true
}
