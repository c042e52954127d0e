package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// rawDevice reports whether a character device, or a directory of them, reaches
// memory or disks below the file system. Memory devices are known by their
// numbers (Documentation/admin-guide/devices.txt), since a node may stand
// anywhere; SCSI generic and NVMe ones by number or, where that is dynamic,
// by the name that the kernel gives them in /dev.
func rawDevice(path string, info pathcheck.Info) bool {
	if info.Kind == pathcheck.CharDevice {
		switch info.Major {
		case 1: // mem, kmem, port, oldmem
			if m := info.Minor; m == 1 || m == 2 || m == 4 || m == 12 {
				return true
			}
		case 21, 90, 162, 202: // SCSI generic, MTD, raw, MSRs of a CPU
			return true
		}
	}
	if !pathcheck.Beneath("/dev", path) {
		return false
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	if strings.Contains(path, "/bsg/") || name == "bsg" {
		return true
	}
	return info.Kind == pathcheck.CharDevice &&
		(strings.HasPrefix(name, "nvme") || strings.HasPrefix(name, "ng") || name == "mem" || name == "kmem" || name == "port")
}

// ReachesDisk reports whether an open device, called path, reaches memory or
// disks, and so what is hidden in a file system on them.
func ReachesDisk(path string, info pathcheck.Info) bool {
	return info.Kind == pathcheck.BlockDevice || info.Kind == pathcheck.CharDevice && rawDevice(path, info)
}

const (
	maxDeviceDepth   = 4 // a node is open for each level
	maxDeviceEntries = 4096
)

// expandDevices makes /dev one of the directories that are granted entry by
// entry.
func (pl *Plan) expandDevices(t pathcheck.Tree) error {
	loc, err := pathcheck.Resolve(t, "/dev")
	if err != nil {
		return fmt.Errorf("/dev: %w", err)
	}
	if !loc.Exists || loc.Path != "/dev" || loc.Info.Kind != pathcheck.Directory {
		return nil // no /dev, or a link to what is granted elsewhere
	}
	if _, ok := pl.covered("/dev"); !ok {
		pl.expand["/dev"] = loc.Info.ID
		pl.ungranted[loc.Info.ID] = "/dev" // or a bind mount of it would open all of it
	}
	return nil
}

// holdsRawDevice reports whether the directory n, or one beneath it, holds a
// device that must not be granted. What cannot be looked at counts as one. The
// error is an exhausted one.
func holdsRawDevice(path string, n pathcheck.Node, depth int) (bool, error) {
	names, err := n.List()
	if pathcheck.Exhausted(err) {
		return true, err
	}
	if err != nil || len(names) > maxDeviceEntries || depth == 0 {
		return true, nil
	}
	for _, name := range names {
		child, err := n.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // vanished
		}
		if pathcheck.Exhausted(err) {
			return true, err
		}
		if err != nil {
			return true, nil
		}
		info, at := child.Info(), pathcheck.Join(path, name)
		raw := info.Kind == pathcheck.BlockDevice || rawDevice(at, info)
		if !raw && info.Kind == pathcheck.Directory {
			raw, err = holdsRawDevice(at, child, depth-1)
		}
		child.Close()
		if raw || err != nil {
			return true, err
		}
	}
	return false, nil
}
