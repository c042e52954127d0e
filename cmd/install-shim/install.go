package main

import (
	"errors"
	"flag"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// A place says where the operands of install and uninstall are.
type place struct {
	dir     string
	inPlace bool
}

func (p *place) register(f *flag.FlagSet) {
	f.StringVar(&p.dir, "dir", "", "")
	f.BoolVar(&p.inPlace, "in-place", false, "")
}

func (p *place) check(command string) error {
	switch {
	case p.dir != "" && p.inPlace:
		return &usageError{command, "--dir and --in-place exclude each other"}
	case p.dir == "" && !p.inPlace:
		return &usageError{command, "give --dir DIR or --in-place"}
	}
	return nil
}

func (a *admin) install(args []string) error {
	var where place
	var opts recordOptions
	var realPath, shimPath string
	f := newFlags("install")
	where.register(f)
	opts.register(f)
	f.StringVar(&realPath, "real", "", "")
	f.StringVar(&shimPath, "shim", "", "")
	operands, err := parse(f, args)
	if err != nil {
		return err
	}
	if err := where.check("install"); err != nil {
		return err
	}
	if err := checkOperands("install", operands, where.operand()); err != nil {
		return err
	}
	if where.inPlace && realPath != "" {
		return &usageError{"install", "--real goes with --dir: in place, the program itself is the real one"}
	}
	rec, err := opts.record()
	if err != nil {
		return err
	}
	src, err := loadShim(shimPath)
	if err != nil {
		return err
	}
	if where.inPlace {
		return a.installInPlace(src, rec, operands)
	}
	return a.installInDir(src, rec, where.dir, realPath, operands)
}

func (p *place) operand() string {
	if p.inPlace {
		return "PATH"
	}
	return "NAME"
}

// A change is one planned install: what will stand at the site's name.
type change struct {
	*site
	data []byte
	mode fileMode
	// warnings are printed when it is done.
	warnings []string
}

func (c *change) warn(text string) { c.warnings = append(c.warnings, text) }

// installInDir puts shims into a directory, in front of programs elsewhere.
func (a *admin) installInDir(src *source, rec record.Record, dirPath, realPath string, names []string) error {
	dirPath, err := absolute(dirPath)
	if err != nil {
		return refused(dirPath, "%w", bare(err))
	}
	dir, made, err := a.openOrMake(dirPath)
	if err != nil {
		return err
	}
	if dir != nil {
		defer dir.close()
	}
	reals := make(map[string]string)
	for _, name := range names {
		if err := checkName(name); err != nil {
			return err
		}
		if reals[name], err = a.realFor(name, realPath, dir); err != nil {
			return err
		}
	}
	if made {
		if err := os.Mkdir(dirPath, 0o755); err != nil {
			return refused(dirPath, "create directory: %w", bare(err))
		}
		if dir, err = openDirectory(dirPath); err != nil {
			return err
		}
		defer dir.close()
	}
	if err := prepareDirectory(dir); err != nil {
		return err
	}
	if err := dir.checkExecutable(); err != nil {
		return err
	}
	var changes []*change
	done := make(map[string]bool)
	for _, name := range names {
		if done[name] {
			continue
		}
		done[name] = true
		rec := rec
		rec.Real = reals[name]
		c, err := planInDir(src, dir, name, rec)
		if err != nil {
			return err
		}
		changes = append(changes, c)
	}
	if err := a.carryOut(changes, commitInDir); err != nil {
		return err
	}
	for _, c := range changes {
		a.warnUnlessFirst(c.site)
	}
	return nil
}

// openOrMake opens the directory, or reports that it is to be made. Only the
// last component is ever made: a longer path is more likely mistyped.
func (a *admin) openOrMake(path string) (dir *directory, missing bool, err error) {
	dir, err = openDirectory(path)
	if errors.Is(err, unix.ENOENT) {
		if _, err := os.Stat(parent(path)); err != nil {
			return nil, false, refused(path, "there is no directory to create it in: %w", bare(err))
		}
		return nil, true, nil
	}
	return dir, false, err
}

func prepareDirectory(dir *directory) error {
	if err := dir.checkChangeable(); err != nil {
		return err
	}
	return dir.lock()
}

// realFor returns the path of the program that a shim called name stands for.
func (a *admin) realFor(name, realPath string, dir *directory) (string, error) {
	if realPath == "" {
		p, err := a.lookUp(name, dir)
		if err != nil {
			return "", err
		}
		_, err = checkProgram(p)
		return p, err
	}
	if !path.IsAbs(realPath) {
		return "", refused(realPath, "--real must be an absolute path")
	}
	p, err := absolute(realPath)
	if err != nil {
		return "", refused(realPath, "%w", bare(err))
	}
	_, err = checkProgram(p)
	return p, err
}

func planInDir(src *source, dir *directory, name string, rec record.Record) (*change, error) {
	s, err := dir.inspect(name)
	if err != nil {
		return nil, err
	}
	switch {
	case s.at.kind == other:
		return nil, &hinted{refused(s.path(), "exists and is not a shim; it stays as it is"), "to replace a program itself use --in-place"}
	case s.inPlace():
		return nil, refused(s.path(), "is a shim that was installed in place")
	case s.at.kind == aShim && idOf(&s.at.st) == src.id:
		return nil, refused(s.path(), "is the very shim that is to be installed")
	}
	c := &change{site: s, mode: fileMode{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid()), perm: 0o755}}
	if c.data, err = record.Patch(src.data, rec); err != nil {
		return nil, refused(s.path(), "%w", err)
	}
	if findsPartsByName(name) && rec.Argv0 != record.Real {
		c.warn("a compiler looks for its parts beside its own name on PATH and will not find them here: install it with --in-place, or with --argv0 real")
	}
	c.rec = rec
	return c, nil
}

// carryOut writes all new files first, so that most of what can go wrong goes
// wrong before the first name has changed.
func (a *admin) carryOut(changes []*change, commit func(*change) (string, error)) error {
	var todo []*change
	defer func() {
		for _, c := range todo {
			_ = c.dir.remove(tempName(c.name))
		}
	}()
	unchanged := make(map[*change]bool)
	for _, c := range changes {
		same, err := c.dir.same(c.name, c.data, c.mode)
		if err != nil {
			return err
		}
		if same {
			unchanged[c] = true
			continue
		}
		todo = append(todo, c)
		if err := c.dir.writeTemp(c.name, c.data, c.mode); err != nil {
			return err
		}
	}
	for _, c := range changes {
		what := "unchanged"
		if !unchanged[c] {
			var err error
			if what, err = commit(c); err != nil {
				return err
			}
		} else if err := c.dir.remove(tempName(c.name)); err != nil {
			return err
		}
		a.did(what, c.path(), "-> "+show(c.rec.Real))
		for _, w := range c.warnings {
			a.warn(c.path(), w)
		}
	}
	return nil
}

func commitInDir(c *change) (string, error) {
	what := "installed"
	if c.at.kind == aShim {
		what = "updated"
	}
	return what, c.dir.put(tempName(c.name), c.name, c.at)
}

// warnUnlessFirst says when PATH does not lead to a shim that was just put
// into a directory.
func (a *admin) warnUnlessFirst(s *site) {
	found := a.findings(s.name)
	if len(found) > 0 {
		var st unix.Stat_t
		if unix.Stat(parent(found[0].path), &st) == nil && idOf(&st) == s.dir.id {
			return
		}
		a.warn(s.path(), "PATH has "+show(found[0].path)+" first: put "+show(s.dir.path)+" before it")
		return
	}
	a.warn(s.path(), show(s.dir.path)+" is not on PATH")
}

func parent(p string) string { return path.Dir(p) }
