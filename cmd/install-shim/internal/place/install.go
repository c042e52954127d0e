// Package place puts shims where programs are looked for, takes them away
// again, and says how they stand.
package place

import (
	"errors"
	"os"
	"path"
	"regexp"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// InstallHelp is the help text of install.
const InstallHelp = `install-shim install --dir DIR [options] NAME...
install-shim install --in-place [options] PATH...

With --dir, DIR gets a shim under each NAME. It stands for the program that PATH
gives for NAME outside of DIR. Put DIR first on PATH. A caller that uses an
absolute path does not meet it.

With --in-place, the shim takes the name of the program itself, so that every
caller meets it. The program keeps its inode and its directory; it is then
called PATH.shim-real. The name leads to a working program at every moment.

All names are checked before the first is changed. What is there already is
left alone when it is the same, and replaced in one step when it is an older
shim or has other options. A file that is not a shim is never overwritten.

  --real PATH        with --dir: the real program, absolute, for all NAMEs
  --shim FILE        the shim to install (default: sandbox-exec-shim beside
                     install-shim)
  --policy-env NAME  the variable that carries the policy
                     (default: SANDBOX_EXEC_SHIM_POLICY)
  --argv0 keep|real  give the program the caller's argv[0] (default), or its
                     own path; for programs that find their parts by it
  --on-missing pass  what to do without a policy: run the program unconfined.
                     "refuse" is not supported by this version
  --report PATH      launch reports go here, unless the policy says otherwise
  --log PATH         diagnostics go here, unless the policy says otherwise
  --profile-dir DIR  where the profiles of policies are, NAME.json each; absolute

Examples:

  # Shadow bash and sh for whoever has /opt/shims first on PATH.
  install-shim install --dir /opt/shims bash sh

  # The program is not the one on PATH.
  install-shim install --dir /opt/shims --real /usr/lib/node-22/bin/node node

  # Every applet of one program that looks at its own name.
  install-shim install --dir /opt/shims --real /bin/busybox ls cat wget

  # Every caller meets the shim, also by absolute path.
  install-shim install --in-place /usr/bin/bash

  # The policy comes in a variable of the harness.
  install-shim install --dir /opt/shims --policy-env MY_HARNESS_POLICY bash
`

// Install puts shims into a directory, or in the place of programs.
func Install(v *voice.Caller, args []string) error {
	var to where
	var opts recordOptions
	var realPath, shimPath string
	f := voice.NewFlags("install")
	opts.register(f)
	f.Text(&realPath, "real")
	f.Text(&shimPath, "shim")
	operands, err := to.read(f, args)
	if err != nil {
		return err
	}
	if to.inPlace && realPath != "" {
		return f.Wrong("--real goes with --dir: in place, the program itself is the real one")
	}
	rec, err := opts.record(f)
	if err != nil {
		return err
	}
	src, err := shims.Load(shimPath)
	if err != nil {
		return err
	}
	if to.inPlace {
		return installInPlace(v, src, rec, operands)
	}
	return installInDir(v, src, rec, to.dir, realPath, operands)
}

// where says where the operands of install and uninstall are.
type where struct {
	dir     string
	inPlace bool
}

// read reads a command line with the options of where and those of f.
func (w *where) read(f voice.Flags, args []string) (operands []string, err error) {
	f.Text(&w.dir, "dir")
	f.Switch(&w.inPlace, "in-place")
	if operands, err = f.Read(args); err != nil {
		return nil, err
	}
	what := "NAME"
	if w.inPlace {
		what = "PATH"
	}
	switch {
	case w.dir != "" && w.inPlace:
		return nil, f.Wrong("--dir and --in-place exclude each other")
	case w.dir == "" && !w.inPlace:
		return nil, f.Wrong("give --dir DIR or --in-place")
	case len(operands) == 0:
		return nil, f.Wrong("no " + what + " given")
	}
	return operands, f.FirstOptions(operands, what)
}

// A change is one planned install: what will stand at the site's name.
type change struct {
	*site
	rec  record.Record
	data []byte
	mode fileMode
	// warnings are printed when it is done.
	warnings []string
}

func (c *change) warn(text string) { c.warnings = append(c.warnings, text) }

// installInDir puts shims into a directory, in front of programs elsewhere.
func installInDir(v *voice.Caller, src shims.File, rec record.Record, given, realPath string, names []string) error {
	dirPath, err := shims.Absolute(given)
	if err != nil {
		return voice.Refused(given, "%w", err)
	}
	dir, err := openDirectory(dirPath)
	missing := errors.Is(err, unix.ENOENT)
	if missing {
		// Only the last component is ever made: a longer path is more likely mistyped.
		_, err = os.Stat(pathcheck.Parent(dirPath))
		if err != nil {
			err = voice.Refused(dirPath, "there is no directory to create it in: %w", voice.Bare(err))
		}
	}
	if err != nil {
		return err
	}
	defer func() { dir.close() }()
	reals := make(map[string]string)
	for _, name := range names {
		if err := checkName(name); err != nil {
			return err
		}
		if reals[name], err = realFor(v, name, realPath, dir); err != nil {
			return err
		}
	}
	if missing {
		if err := os.Mkdir(dirPath, 0o755); err != nil {
			return voice.Refused(dirPath, "create directory: %w", voice.Bare(err))
		}
		if dir, err = openDirectory(dirPath); err != nil {
			return err
		}
	}
	if err := dir.prepare(); err != nil {
		return err
	}
	if err := dir.checkExecutable(); err != nil {
		return err
	}
	var changes []*change
	for _, name := range names {
		real, ok := reals[name]
		if !ok {
			continue // a name that was given twice
		}
		delete(reals, name)
		rec.Real = real
		c, err := planInDir(src, dir, name, rec)
		if err != nil {
			return err
		}
		changes = append(changes, c)
	}
	if err := carryOut(v, changes, commitInDir); err != nil {
		return err
	}
	for _, c := range changes {
		warnUnlessFirst(v, c.site)
	}
	return nil
}

// realFor returns the path of the program that a shim called name in dir, which
// may be nil, stands for.
func realFor(v *voice.Caller, name, realPath string, dir *directory) (p string, err error) {
	switch {
	case realPath == "":
		p, err = lookUp(v, name, dir)
	case !path.IsAbs(realPath):
		err = voice.Refused(realPath, "--real must be an absolute path")
	default:
		if p, err = shims.Absolute(realPath); err != nil {
			err = voice.Refused(realPath, "%w", err)
		}
	}
	if err == nil {
		_, err = checkProgram(p)
	}
	return p, err
}

// lookUp finds the program that a shim called name in dir is to stand for.
// Shims in other directories are passed over: a shim in front of a shim would
// confine twice.
func lookUp(v *voice.Caller, name string, dir *directory) (string, error) {
	for _, f := range shims.OnPath(v, name) {
		switch {
		case dir.holds(f.Path):
		case f.IsShim && f.Record.InPlace:
			return "", voice.Refused(name, "PATH has it at %s, which already is a shim in place", voice.Show(f.Path))
		case !f.IsShim:
			return f.Path, nil
		}
	}
	return "", voice.Hinted(voice.Refused(name, "%w", shims.ErrNotOnPath), "name the real program with --real")
}

func planInDir(src shims.File, dir *directory, name string, rec record.Record) (*change, error) {
	s, err := dir.inspect(name)
	if err != nil {
		return nil, err
	}
	switch {
	case s.at.kind == other:
		return nil, voice.Hinted(voice.Refused(s.path(), "exists and is not a shim; it stays as it is"), "to replace a program itself use --in-place")
	case s.inPlace():
		return nil, voice.Refused(s.path(), "is a shim that was installed in place")
	case s.is(src):
		return nil, voice.Refused(s.path(), "is the very shim that is to be installed")
	}
	c := &change{site: s, rec: rec, mode: fileMode{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid()), perm: 0o755}}
	if c.data, err = record.Patch(src.Data, rec); err != nil {
		return nil, voice.Refused(s.path(), "%w", err)
	}
	if compiler.MatchString(name) && rec.Argv0 != record.Real {
		c.warn("a compiler looks for its parts beside its own name on PATH and will not find them here: install it with --in-place, or with --argv0 real")
	}
	return c, nil
}

// compiler matches programs that look for their own parts next to where PATH
// has argv[0], and so next to a shim in another directory: gcc then says
// "cannot execute 'cc1'".
var compiler = regexp.MustCompile(`^([A-Za-z0-9_]+-)*(gcc|g\+\+|cc|c\+\+|cpp|gfortran|clang|clang\+\+)(-[0-9.]+)?$`)

// carryOut writes all new files first, so that most of what can go wrong goes
// wrong before the first name has changed.
func carryOut(v *voice.Caller, changes []*change, commit func(*change) (string, error)) error {
	unchanged := make(map[*change]bool)
	defer func() {
		for _, c := range changes {
			_ = c.dir.remove(shims.TempName(c.name))
		}
	}()
	for _, c := range changes {
		same, err := c.same(c.data, c.mode)
		if err == nil && !same {
			err = c.dir.writeTemp(c.name, c.data, c.mode)
		}
		if err != nil {
			return err
		}
		unchanged[c] = same
	}
	for _, c := range changes {
		what := "unchanged"
		if !unchanged[c] {
			var err error
			if what, err = commit(c); err != nil {
				return err
			}
		}
		did(v, what, c.path(), "-> "+voice.Show(c.rec.Real))
		for _, w := range c.warnings {
			v.Warn(c.path(), w)
		}
	}
	return nil
}

// did says that something was done to a path.
func did(v *voice.Caller, what, path, more string) {
	if more != "" {
		more = " " + more
	}
	v.Print("%s %s%s\n", what, voice.Show(path), more)
}

func commitInDir(c *change) (string, error) {
	what := "installed"
	if c.at.kind == aShim {
		what = "updated"
	}
	return what, c.dir.put(shims.TempName(c.name), c.name, c.at)
}

// warnUnlessFirst says when PATH does not lead to a shim that was just put
// into a directory.
func warnUnlessFirst(v *voice.Caller, s *site) {
	found := shims.OnPath(v, s.name)
	switch {
	case len(found) == 0:
		v.Warn(s.path(), voice.Show(s.dir.path)+" is not on PATH")
	case !s.dir.holds(found[0].Path):
		v.Warn(s.path(), "PATH has "+voice.Show(found[0].Path)+" first: put "+voice.Show(s.dir.path)+" before it")
	}
}
