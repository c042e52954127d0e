package seccomp

// Ioctls are known by the low 16 bits of their number, the type and the running
// number of _IOC (asm-generic/ioctl.h). The upper bits hold size and direction of the
// argument: without them the list also has the numbers of 32-bit programs, whose
// structures have another size, and those of later versions.

// A span is a run of ioctl numbers of one type.
type span struct{ kind, first, last uint8 }

func (s span) low() uint32  { return uint32(s.kind)<<8 | uint32(s.first) }
func (s span) high() uint32 { return uint32(s.kind)<<8 | uint32(s.last) }

// fileIoctls are those by which a descriptor that was opened for reading makes,
// removes, changes or reads what is not its own file. Landlock asks for no right of
// a regular file or directory for an ioctl. Sorted.
var fileIoctls = []span{
	// xfs (fs/xfs/libxfs/xfs_fs.h), and what other file systems took from it.
	{'X', 63, 63},   // GETPARENTS_BY_HANDLE: names of any inode
	{'X', 101, 103}, // FSBULKSTAT, FSBULKSTAT_SINGLE, FSINUMBERS: all inodes
	{'X', 107, 108}, // OPEN_BY_HANDLE, READLINK_BY_HANDLE: any file, any link
	{'X', 110, 112}, // FSGROWFSDATA, FSGROWFSLOG, FSGROWFSRT: the file system's size
	{'X', 119, 120}, // FIFREEZE, FITHAW: everybody's writes
	{'X', 121, 123}, // FITRIM; FSSETDM_, ATTRLIST_ and ATTRMULTI_BY_HANDLE: attributes of any file
	{'X', 125, 125}, // GOINGDOWN, also ext4, f2fs, btrfs and others: the file system shut down
	{'X', 127, 128}, // BULKSTAT, INUMBERS: all inodes

	// OpenZFS by /dev/zfs (include/sys/fs/zfs.h): makes, destroys, sends and mounts
	// data sets for whom they are delegated to.
	{'Z', 0, 255},

	// ext4 (uapi/linux/ext4.h) and fscrypt (uapi/linux/fscrypt.h).
	{'f', 7, 8},   // GROUP_EXTEND, GROUP_ADD: the file system's size
	{'f', 16, 17}, // RESIZE_FS; SWAP_BOOT: the boot loader's inode
	{'f', 24, 25}, // REMOVE_ENCRYPTION_KEY, _ALL_USERS: locks directories of the user
	{'f', 46, 46}, // SET_TUNE_SB_PARAM: the super block

	// nilfs2 (uapi/linux/nilfs2_api.h).
	{'n', 0x80, 0x81}, // CHANGE_CPMODE, DELETE_CHECKPOINT: snapshots
	{'n', 0x88, 0x88}, // CLEAN_SEGMENTS
	{'n', 0x8b, 0x8d}, // RESIZE, SET_ALLOC_RANGE, SET_SUINFO: the file system's size

	// ocfs2 (fs/ocfs2/ocfs2_ioctl.h).
	{'o', 1, 4}, // GROUP_EXTEND, GROUP_ADD, GROUP_ADD64; REFLINK: a copy of one path at another

	// btrfs (uapi/linux/btrfs.h).
	{0x94, 1, 1},   // SNAP_CREATE: a tree, from a descriptor opened for reading
	{0x94, 3, 5},   // RESIZE, SCAN_DEV, FORGET_DEV: devices
	{0x94, 10, 12}, // ADD_DEV, RM_DEV, BALANCE: devices
	{0x94, 14, 15}, // SUBVOL_CREATE, SNAP_DESTROY: makes and removes trees
	{0x94, 17, 19}, // TREE_SEARCH, TREE_SEARCH_V2: all metadata; INO_LOOKUP: paths; DEFAULT_SUBVOL: what is mounted
	{0x94, 23, 24}, // SNAP_CREATE_V2, SUBVOL_CREATE_V2, and START_SYNC, which has the number of the second
	{0x94, 26, 26}, // SUBVOL_SETFLAGS: a tree read-only, or not
	{0x94, 32, 33}, // BALANCE_V2, BALANCE_CTL: devices
	{0x94, 35, 38}, // INO_PATHS, LOGICAL_INO: paths; SET_RECEIVED_SUBVOL; SEND: a whole tree's content
	{0x94, 40, 43}, // QUOTA_CTL, QGROUP_ASSIGN, QGROUP_CREATE, QGROUP_LIMIT: everybody's quota
	{0x94, 50, 50}, // FS_IOC_SETFSLABEL
	{0x94, 53, 53}, // DEV_REPLACE
	{0x94, 58, 59}, // RM_DEV_V2; LOGICAL_INO_V2: paths
	{0x94, 62, 63}, // INO_LOOKUP_USER: paths; SNAP_DESTROY_V2

	// bcachefs (fs/bcachefs/bcachefs_ioctl.h): all but those on a file, from 64 on.
	{0xbc, 1, 63}, // SUBVOLUME_CREATE, SUBVOLUME_DESTROY, devices, fsck

	// f2fs (uapi/linux/f2fs.h).
	{0xf5, 6, 7},   // GARBAGE_COLLECT, WRITE_CHECKPOINT: everybody's writes
	{0xf5, 10, 11}, // FLUSH_DEVICE, GARBAGE_COLLECT_RANGE
	{0xf5, 16, 16}, // RESIZE_FS
}

// networkIoctls are those by which a device sends without a socket. Sorted.
var networkIoctls = []span{
	{0x1b, 0, 255},    // RDMA verbs, MAD and hfi1 (uapi/rdma/rdma_user_ioctl_cmds.h)
	{';', 100, 255},   // VFIO and iommufd (uapi/linux/vfio.h): a whole device, as a network card
	{'T', 200, 239},   // TUNSETIFF and its kind, also of macvtap (uapi/linux/if_tun.h)
	{'t', 52, 90},     // PPPIOC* (uapi/linux/ppp-ioctl.h)
	{0x81, 0, 255},    // VDUSE: a virtual device's other end (uapi/linux/vduse.h)
	{0xaf, 0x00, 255}, // vhost-net, vhost-vsock, vhost-vdpa (uapi/linux/vhost.h)
}
