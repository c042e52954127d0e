package pathcheck

// A Tree is a file system as the resolver and the compiler see it. The real
// one is [OS]; package pathtest has one in memory.
type Tree interface {
	// Root opens "/".
	Root() (Node, error)
}

// A Node is one open place in a [Tree]. It stands for an inode, not for a
// name: what happens to the name after the open does not change the node.
// Errors satisfy errors.Is with fs.ErrNotExist and fs.ErrPermission.
type Node interface {
	// Info is what was learned when the node was opened.
	Info() Info
	// Open opens one name in a directory without following a symlink.
	// name is a single component, neither "." nor "..".
	Open(name string) (Node, error)
	// List returns the names in a directory, sorted.
	List() ([]string, error)
	// ReadLink returns the text of a symlink.
	ReadLink() (string, error)
	// Close releases the node. The nodes opened from it stay open.
	Close() error
}

// An ID tells one inode from another (st_dev and st_ino of stat(2)).
type ID struct{ Dev, Ino uint64 }

// Info is the part of an inode's state that decisions rest on.
type Info struct {
	ID
	Kind Kind
	// Links is st_nlink.
	Links uint64
	// Major and Minor are the device numbers of a device node.
	Major, Minor uint32
	// Mode holds the permission bits and set-id bits of st_mode (07777).
	Mode uint32
	// UID is the owner.
	UID uint32
}

// A Kind is the type of an inode.
type Kind uint8

const (
	Other Kind = iota
	Regular
	Directory
	Symlink
	CharDevice
	BlockDevice
	FIFO
	Socket
)
