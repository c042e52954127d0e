package main

import (
	"errors"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of file systems that make, remove or change what is elsewhere, with
// no more than a descriptor for reading (linux/btrfs.h).
const (
	subvolumeCreate   = 0x5000940e
	subvolumeCreateV2 = 0x50009418
	snapshotCreate    = 0x50009401
	snapshotCreateV2  = 0x50009417
	snapshotDestroy   = 0x5000940f
	snapshotDestroyV2 = 0x5000943f
	subvolumeSetFlags = 0x4008941a
	setReceived       = 0xc0c89425
	treeSearch        = 0xd0009411
	inodeLookup       = 0xd0009412
	freeze, thaw      = 0xc0045877, 0xc0045878
	setLabel          = 0x41009432
)

// volArgs is struct btrfs_ioctl_vol_args, volArgsV2 the second version of it.
type volArgs struct {
	FD   int64
	Name [4088]byte
}

type volArgsV2 struct {
	FD, Transaction int64
	Flags           uint64
	_               [4]uint64
	Name            [4040]byte
}

func init() {
	const needs = "btrfs"
	on := func(f func(w *w, dir int) error) func(*w) error {
		return func(w *w) error {
			if w.Btrfs == "" {
				return missing(needs)
			}
			dir, err := open(w.Btrfs+"/outside", unix.O_RDONLY|unix.O_DIRECTORY)
			if err != nil {
				return setup(err)
			}
			return f(w, dir)
		}
	}
	work := func(w *w) (int, error) { return open(w.Btrfs+"/work", unix.O_RDONLY|unix.O_DIRECTORY) }
	add(writes,
		attempt{Name: "btrfs-subvolume", Needs: needs, do: on(func(_ *w, dir int) error { return volume(dir, subvolumeCreate, 0, "new") })},
		attempt{Name: "btrfs-subvolume-2", Needs: needs, do: on(func(_ *w, dir int) error { return volumeV2(dir, subvolumeCreateV2, 0, "new-2") })},
		attempt{Name: "btrfs-subvolume-32-bit", Needs: "the entry for 32-bit programs", do: on(func(_ *w, dir int) error {
			args := new(volArgs)
			copy(args.Name[:], "new-32")
			return low32(dir, subvolumeCreate, unsafe.Slice((*byte)(unsafe.Pointer(args)), unsafe.Sizeof(*args)))
		})},
		attempt{Name: "btrfs-snapshot-to-outside", Needs: needs, do: on(func(w *w, dir int) error {
			fd, err := open(w.Btrfs+"/work/volume", unix.O_RDONLY)
			if err != nil {
				return setup(err)
			}
			return volume(dir, snapshotCreate, fd, "snapshot")
		})},
		attempt{Name: "btrfs-snapshot-to-outside-2", Needs: needs, do: on(func(w *w, dir int) error {
			fd, err := open(w.Btrfs+"/work/volume", unix.O_RDONLY)
			if err != nil {
				return setup(err)
			}
			return volumeV2(dir, snapshotCreateV2, fd, "snapshot-2")
		})},
		attempt{Name: "btrfs-destroy", Needs: needs, do: on(func(_ *w, dir int) error { return volume(dir, snapshotDestroy, 0, "volume") })},
		attempt{Name: "btrfs-destroy-2", Needs: needs, do: on(func(_ *w, dir int) error { return volumeV2(dir, snapshotDestroyV2, 0, "volume-2") })},
		attempt{Name: "btrfs-read-only", Needs: needs, do: on(func(w *w, _ int) error {
			fd, err := open(w.Btrfs+"/outside/volume-3", unix.O_RDONLY)
			if err != nil {
				return setup(err)
			}
			flags := uint64(2) // BTRFS_SUBVOL_RDONLY
			return did(unix.SYS_IOCTL, uintptr(fd), subvolumeSetFlags, ptr(&flags))
		})},
		attempt{Name: "btrfs-received", Needs: needs, do: on(func(w *w, _ int) error {
			fd, err := open(w.Btrfs+"/outside/volume-4", unix.O_RDONLY)
			if err != nil {
				return setup(err)
			}
			args := [25]uint64{}
			return did(unix.SYS_IOCTL, uintptr(fd), setReceived, ptr(&args))
		})},
		attempt{Name: "freeze", Needs: needs, Root: true, do: on(func(_ *w, dir int) error {
			if err := did(unix.SYS_IOCTL, uintptr(dir), freeze, 0); err != nil {
				return err
			}
			return setup(did(unix.SYS_IOCTL, uintptr(dir), thaw, 0))
		})},
		attempt{Name: "label", Needs: needs, Root: true, do: on(func(_ *w, dir int) error {
			return did(unix.SYS_IOCTL, uintptr(dir), setLabel, ptr(new([256]byte)))
		})},
		attempt{Name: "core-dump-outside", Rare: "core dumps by name", do: dump},
	)
	add(hidden,
		attempt{Name: "btrfs-destroy-hidden", Needs: needs, do: on(func(w *w, _ int) error {
			dir, err := open(w.Btrfs, unix.O_RDONLY|unix.O_DIRECTORY)
			if err != nil {
				return err
			}
			return volume(dir, snapshotDestroy, 0, "hidden-2")
		})},
		attempt{Name: "btrfs-destroy-hidden-by-number", Needs: needs, do: on(func(w *w, _ int) error {
			dir, err := work(w)
			if err != nil {
				return setup(err)
			}
			args := &volArgsV2{}
			args.Flags = 1 << 4 // BTRFS_SUBVOL_SPEC_BY_ID
			*(*uint64)(unsafe.Pointer(&args.Name)) = w.Volume
			return did(unix.SYS_IOCTL, uintptr(dir), snapshotDestroyV2, ptr(args))
		})},
		attempt{Name: "btrfs-snapshot-of-hidden", Needs: needs, do: on(func(w *w, _ int) error {
			fd, err := open(w.Btrfs+"/hidden", unix.O_RDONLY|unix.O_DIRECTORY)
			if err != nil {
				return err
			}
			dir, err := work(w)
			if err != nil {
				return setup(err)
			}
			if err := volume(dir, snapshotCreate, fd, "copy"); err != nil {
				return err
			}
			return w.read(w.Btrfs + "/work/copy/key")
		})},
		attempt{Name: "btrfs-snapshot-by-a-file", Rare: "a btrfs that takes a snapshot of what holds a file", do: on(func(w *w, dir int) error {
			to, err := work(w)
			if err != nil {
				return setup(err)
			}
			err = volume(to, snapshotCreate, dir, "all")
			if errors.Is(err, unix.EINVAL) {
				return missing("such a btrfs")
			}
			if err != nil {
				return err
			}
			return w.read(w.Btrfs + "/work/all/plain/key")
		})},
		attempt{Name: "btrfs-search", Needs: needs, Root: true, do: on(func(w *w, dir int) error {
			// struct btrfs_ioctl_search_args: a key of 104 bytes, then the items. A
			// small file's content stands among them.
			args := new([4096]byte)
			key := (*[13]uint64)(unsafe.Pointer(args))
			key[0], key[2], key[4], key[6] = 0, ^uint64(0), ^uint64(0), ^uint64(0)
			*(*uint32)(unsafe.Pointer(&args[60])) = ^uint32(0) // max_type
			*(*uint32)(unsafe.Pointer(&args[64])) = ^uint32(0) // nr_items
			return did(unix.SYS_IOCTL, uintptr(dir), treeSearch, ptr(args))
		})},
	)
}

func volume(dir int, request uintptr, fd int, name string) error {
	args := &volArgs{FD: int64(fd)}
	copy(args.Name[:], name)
	return did(unix.SYS_IOCTL, uintptr(dir), request, ptr(args))
}

func volumeV2(dir int, request uintptr, fd int, name string) error {
	args := &volArgsV2{FD: int64(fd)}
	copy(args.Name[:], name)
	return did(unix.SYS_IOCTL, uintptr(dir), request, ptr(args))
}

// low32 makes a request by the 32-bit entry, with the argument where it can be
// named there.
func low32(fd int, request uintptr, data []byte) error {
	const map32 = 0x40 // MAP_32BIT
	at, err := unix.Mmap(-1, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|map32)
	if err != nil {
		return setup(err)
	}
	copy(at, data)
	return ioctl32(fd, request, uintptr(unsafe.Pointer(&at[0])))
}

// input32 is TIOCSTI by that entry.
func input32(fd int) error { return low32(fd, unix.TIOCSTI, []byte("x")) }

// dump lets a process die in a directory outside.
func dump(w *w) error {
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil || strings.ContainsAny(string(pattern[:1]), "|/@") {
		return missing("core dumps by name")
	}
	_ = run("/bin/sh", "-c", `cd "$0" && ulimit -c unlimited && kill -SEGV $$`, w.at("outside/dir"))
	entries, err := os.ReadDir(w.at("outside/dir"))
	if err != nil {
		return setup(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "core") {
			return nil
		}
	}
	return errSilent
}
