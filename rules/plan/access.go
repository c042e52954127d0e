package plan

import "strings"

// Access is a set of Landlock file-system access rights. The bits are those of
// LANDLOCK_ACCESS_FS_* in linux/landlock.h.
type Access uint64

const (
	Execute Access = 1 << iota
	WriteFile
	ReadFile
	ReadDir
	RemoveDir
	RemoveFile
	MakeChar
	MakeDir
	MakeReg
	MakeSock
	MakeFifo
	MakeBlock
	MakeSym
	Refer
	Truncate
	IoctlDev
	ResolveUnix

	allAccess = ResolveUnix<<1 - 1
)

const (
	// ReadOnly is what a place needs to be read and run.
	ReadOnly = Execute | ReadFile | ReadDir
	// fileAccess is what may be granted on something that is no directory;
	// the kernel answers EINVAL for more.
	fileAccess = Execute | WriteFile | ReadFile | Truncate | IoctlDev | ResolveUnix
	// makeDevice is never granted: a device node reaches the disk below
	// every rule.
	makeDevice = MakeChar | MakeBlock
	// Full is everything a program may do to ordinary files. ioctl on
	// devices is granted with the devices.
	Full = allAccess &^ makeDevice &^ IoctlDev
	// unwritable is what scope workspace leaves of everything outside its
	// roots. It does not confine reading, and so no connecting either.
	unwritable = ReadOnly | ResolveUnix
	// device is what a device node may be used for.
	device = ReadFile | WriteFile | IoctlDev
)

// handledSince says with which ABI a right came; all others are in ABI 1.
var handledSince = []struct {
	abi    int
	access Access
}{
	{2, Refer}, {3, Truncate}, {5, IoctlDev}, {9, ResolveUnix},
}

// Handled returns the rights that a kernel of the given Landlock ABI knows.
// abi is 0 where there is no Landlock.
func Handled(abi int) Access {
	if abi < 1 {
		return 0
	}
	a := allAccess
	for _, h := range handledSince {
		if abi < h.abi {
			a &^= h.access
		}
	}
	return a
}

var accessNames = []string{
	"execute", "write_file", "read_file", "read_dir", "remove_dir", "remove_file", "make_char", "make_dir", "make_reg",
	"make_sock", "make_fifo", "make_block", "make_sym", "refer", "truncate", "ioctl_dev", "resolve_unix",
}

// String lists the rights by the names of linux/landlock.h in lower case.
func (a Access) String() string {
	var names []string
	for i, name := range accessNames {
		if a&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}
