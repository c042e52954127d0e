package place

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// installInPlace gives the names of programs to shims.
func installInPlace(v *voice.Caller, src shims.File, rec record.Record, paths []string) error {
	sites, closeAll, err := openSites(paths)
	defer closeAll()
	if err != nil {
		return err
	}
	var changes []*change
	for _, s := range sites {
		c, err := planInPlace(src, s, rec)
		if err != nil {
			return err
		}
		changes = append(changes, c)
	}
	if err := checkDependents(v, changes); err != nil {
		return err
	}
	return carryOut(v, changes, commitInPlace)
}

// openSites opens and locks the directories of paths, each once, and looks at
// the names in them. The caller calls closeAll also after an error.
func openSites(paths []string) (sites []*site, closeAll func(), err error) {
	dirs := make(map[pathcheck.ID]*directory)
	closeAll = func() {
		for _, d := range dirs {
			d.close()
		}
	}
	for _, given := range paths {
		p, err := shims.Absolute(given)
		if err == nil && p == "/" {
			err = errors.New("is a directory")
		}
		if err != nil {
			return nil, closeAll, voice.Refused(given, "%w", err)
		}
		name := path.Base(p)
		if err := checkName(name); err != nil {
			return nil, closeAll, err
		}
		dir, err := openDirectory(pathcheck.Parent(p))
		if err != nil {
			return nil, closeAll, err
		}
		if had := dirs[dir.id]; had != nil {
			dir.close()
			dir = had
		} else {
			dirs[dir.id] = dir
			err = dir.prepare()
		}
		var s *site
		if err == nil {
			s, err = dir.inspect(name)
		}
		if err != nil {
			return nil, closeAll, err
		}
		if !slices.ContainsFunc(sites, func(o *site) bool { return o.dir == dir && o.name == name }) {
			sites = append(sites, s)
		}
	}
	return sites, closeAll, nil
}

func planInPlace(src shims.File, s *site, rec record.Record) (*change, error) {
	program := s.path()
	switch s.phase() {
	case absent:
		return nil, voice.Refused(s.path(), "%w", unix.ENOENT)
	case vanished:
		return nil, voice.Hinted(
			voice.Refused(s.path(), "is gone, but the program behind an earlier shim is still there as %s", voice.Show(s.sibling())),
			"uninstall --in-place gives it its name back",
		)
	case replaced:
		return nil, voice.Hinted(
			voice.Refused(s.path(), "was replaced after an earlier install (an upgrade?); %s is the program from before", voice.Show(s.sibling())),
			"uninstall --in-place removes the older program and keeps the newer one; then install again",
		)
	case orphaned:
		switch {
		case s.is(src):
			return nil, voice.Refused(s.path(), "is the shim itself")
		case s.inDir():
			return nil, voice.Refused(s.path(), "is a shim that was installed with --dir")
		}
		return nil, voice.Refused(s.path(), "is a shim without its program: there is no %s beside it", voice.Show(s.sibling()))
	case installed:
		if s.inDir() {
			return nil, voice.Refused(s.path(), "is a shim that was installed with --dir")
		}
		program = s.dir.join(s.sibling())
	case fresh, unfinished:
	}
	st, err := checkProgram(program)
	if err != nil {
		return nil, err
	}
	if err := s.checkMovable(); err != nil {
		return nil, err
	}
	if err := s.dir.checkExecutable(); err != nil {
		return nil, err
	}
	rec.InPlace = true
	rec.Real = s.dir.join(s.sibling())
	acl, err := readACL(program)
	if err != nil {
		return nil, err
	}
	c := &change{site: s, rec: rec, mode: fileMode{st.Uid, st.Gid, readableIfExecutable(st.Mode & 0o777), readableACL(acl)}}
	if c.data, err = record.Patch(src.Data, rec); err != nil {
		return nil, voice.Refused(s.path(), "%w", err)
	}
	if s.phase() == fresh && s.at.st.Nlink > 1 && s.at.st.Mode&unix.S_IFMT == unix.S_IFREG {
		c.warn(fmt.Sprintf("the program has %d names (hard links): only this one leads to the shim", s.at.st.Nlink))
	}
	if rec.Argv0 == record.Real {
		c.warn("with --argv0 real the program's argv[0] is " + voice.Show(rec.Real) + ": Python then finds no virtual environment")
	}
	return c, nil
}

// readableIfExecutable: a shim that its user cannot read could not read its
// own record.
func readableIfExecutable(perm uint32) uint32 { return perm | perm&0o111<<2 }

// checkMovable refuses what rename(2) would refuse halfway.
func (s *site) checkMovable() error {
	var stx unix.Statx_t
	err := unix.Statx(s.dir.fd, s.name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &stx)
	if err == nil && stx.Attributes&(unix.STATX_ATTR_IMMUTABLE|unix.STATX_ATTR_APPEND) != 0 {
		return voice.Refused(s.path(), "is immutable or append-only (chattr)")
	}
	if err == nil && stx.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 && stx.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return voice.Refused(s.path(), "is a mount point of its own")
	}
	return nil
}

// checkDependents refuses to replace a program to which another shim leads,
// whether it stands already or is planned now: that shim would find a shim.
func checkDependents(v *voice.Caller, changes []*change) error {
	dirs := shims.PathDirs(v)
	for _, c := range changes {
		dirs = append(dirs, c.dir.path)
	}
	standing := shims.All(dirs)
	for _, c := range changes {
		if c.phase() != fresh && c.phase() != unfinished {
			continue
		}
		for _, o := range changes {
			if o != c && leadsTo(o.path(), &c.at) {
				return voice.Refused(c.path(), "%s leads to it: replace only one of the two", voice.Show(o.path()))
			}
		}
		for _, s := range standing {
			if leadsTo(s.Record.Real, &c.at) {
				return voice.Refused(c.path(), "the shim %s stands in front of it already", voice.Show(s.Path))
			}
		}
	}
	return nil
}

// leadsTo reports whether a path leads to an entry, which may be one of the
// symbolic links on its way.
func leadsTo(p string, e *entry) bool {
	id := shims.ID(&e.st)
	to, err := pathcheck.Resolve(pathcheck.OS{}, p)
	return err == nil && (to.Exists && to.Info.ID == id || slices.ContainsFunc(to.Links, func(link string) bool {
		var st unix.Stat_t
		return unix.Lstat(link, &st) == nil && shims.ID(&st) == id
	}))
}

// commitInPlace makes the name lead to the shim while the program keeps its
// inode under the sibling's name. After each step the name leads to the
// program or to a shim that finds it.
//
// The first way exchanges two names in one step. Where the file system cannot,
// the program gets its second name as a hard link before the shim takes the
// first. A copy would be another file, so there is no third way.
func commitInPlace(c *change) (string, error) {
	temp := shims.TempName(c.name)
	switch {
	case c.phase() == installed:
		return "updated", c.dir.put(temp, c.name, c.at)
	case c.phase() == unfinished && c.real.kind == other: // the program has its second name
		return "installed", c.dir.put(temp, c.name, c.at)
	}
	if err := c.dir.put(temp, c.sibling(), c.real); err != nil {
		return "", err
	}
	err := unix.Renameat2(c.dir.fd, c.sibling(), c.dir.fd, c.name, unix.RENAME_EXCHANGE)
	if err == nil {
		return "installed", c.dir.sync()
	}
	if !cannotExchange(err) {
		return "", errors.Join(voice.Refused(c.path(), "exchange with %s: %w", voice.Show(c.sibling()), err), c.dir.remove(c.sibling()))
	}
	if err := c.dir.rename(c.sibling(), temp); err != nil {
		return "", err
	}
	if err := unix.Linkat(c.dir.fd, c.name, c.dir.fd, c.sibling(), 0); err != nil {
		return "", voice.Hinted(
			voice.Refused(c.path(), "its file system can neither exchange names nor make this hard link: %w", err),
			"shadow the program from a directory with --dir",
		)
	}
	if err := c.dir.sync(); err != nil {
		return "", err
	}
	return "installed", c.dir.put(temp, c.name, c.at)
}
