package shim

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// aboutRoots adds what the compiler must know to choose the writable roots of
// scope workspace. Both the launcher's HOME and the program's are guarded: a
// policy that sets another one does not give up the first.
func (l *launch) aboutRoots(known *plan.Launch) {
	known.Env = l.env
	for _, env := range [][]string{l.start.Envp, l.env} {
		if home, ok := getenv(env, "HOME"); ok && len(home) > 0 && home[0] == '/' && !slices.Contains(known.Homes, home) {
			known.Homes = append(known.Homes, home)
		}
	}
	for _, path := range []string{l.me.path, l.me.invoked} {
		if path = absolute(known.Cwd, path); len(path) > 1 && !slices.Contains(known.Shims, path) {
			known.Shims = append(known.Shims, path)
		}
	}
}

// missingDirs finds the directories that tools expect to be able to write and
// that are not there.
func (l *launch) missingDirs(known plan.Launch, tree *pathcheck.Kept) ([]plan.MissingDir, error) {
	missing := plan.Missing(l.policy, known, tree)
	return missing, tree.Err()
}

// makeToolchainDirs makes the directories that tools expect to be able to
// write. One that cannot be made is left out: nothing depends on it but the
// tool, which says so itself.
func (l *launch) makeToolchainDirs(missing []plan.MissingDir) {
	l.step.is("making the toolchain directories")
	for _, dir := range missing {
		if err := makeBeneath(dir); err != nil {
			l.log.Debug("toolchain directory not made", "path", dir.Path, "error", err.Error())
		}
	}
	l.step.is("looking up the policy's paths")
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
