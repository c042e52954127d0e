package planner

import (
	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// makeToolchainDirs makes the directories that tools expect to be able to
// write. One that cannot be made is left out: nothing depends on it but the
// tool, which says so itself. A dry run makes none, and returns their paths.
func (in *Input) makeToolchainDirs(missing []plan.MissingDir) (imagined []string) {
	for _, dir := range missing {
		if in.Dry {
			imagined = append(imagined, dir.Path)
		} else if err := makeBeneath(dir); err != nil {
			in.Debug("toolchain directory not made", "path", dir.Path, "error", err.Error())
		}
	}
	return imagined
}

// makeBeneath makes one directory in the other, from one that is known by its
// identity, and follows no symlink that has come up since.
func makeBeneath(dir plan.MissingDir) error {
	node, err := pathcheck.Lookup(pathcheck.OS{}, dir.Above.Path)
	if err != nil {
		return err
	}
	defer func() { node.Close() }()
	if node.Info().ID != dir.Above.ID {
		return pathcheck.ErrChanged
	}
	for _, name := range dir.Names {
		fd, _ := pathcheck.FD(node)
		if err := unix.Mkdirat(fd, name, dir.Mode); err != nil && err != unix.EEXIST {
			return err
		}
		next, err := node.Open(name)
		if err != nil {
			return err
		}
		node.Close()
		node = next
		if node.Info().Kind != pathcheck.Directory {
			return unix.ENOTDIR
		}
	}
	return nil
}
