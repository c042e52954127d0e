package place

import (
	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
)

// UninstallHelp is the help text of uninstall.
const UninstallHelp = `install-shim uninstall --dir DIR NAME...
install-shim uninstall --in-place PATH...

With --dir, the shims are removed. With --in-place, the programs get their names
back: the same files, not copies.

All names are checked before the first is changed. A name that has no shim is
no error. Where a package upgrade has overwritten an in-place shim, the newer
program stays and the older one beside it is removed.

Examples:

  install-shim uninstall --dir /opt/shims bash sh
  install-shim uninstall --in-place /usr/bin/bash
`

// Uninstall takes shims away, and gives programs their names back.
func Uninstall(v *voice.Caller, args []string) error {
	var from where
	operands, err := from.read(voice.NewFlags("uninstall"), args)
	if err != nil {
		return err
	}
	paths, plan := operands, planRestore
	if !from.inPlace {
		paths, plan = nil, planRemove
		for _, name := range operands {
			if err := checkName(name); err != nil {
				return err
			}
			paths = append(paths, from.dir+"/"+name)
		}
	}
	sites, closeAll, err := openSites(paths)
	defer closeAll()
	if err != nil {
		return err
	}
	var steps []step
	for _, s := range sites {
		step, err := plan(s)
		if err != nil {
			return err
		}
		steps = append(steps, step)
	}
	for i, step := range steps {
		if step.do != nil {
			if err := step.do(); err != nil {
				return err
			}
		}
		if err := sites[i].dir.remove(shims.TempName(sites[i].name)); err != nil {
			return err
		}
		did(v, step.what, sites[i].path(), step.more)
	}
	return nil
}

// A step is one planned change, and what is said of it.
type step struct {
	do         func() error // nil when there is nothing to do
	what, more string
}

// planRemove takes a shim out of a directory.
func planRemove(s *site) (step, error) {
	switch {
	case s.at.kind == nothing:
		return step{what: "not installed"}, nil
	case s.at.kind == other:
		return step{}, voice.Refused(s.path(), "is not a shim; it stays as it is")
	case s.inPlace():
		return step{}, voice.Hinted(voice.Refused(s.path(), "is a shim that was installed in place"), "use uninstall --in-place")
	case s.neverInstalled():
		return step{}, errBare(s)
	}
	return step{func() error { return s.dir.remove(s.name) }, "removed", ""}, nil
}

func errBare(s *site) error {
	return voice.Refused(s.path(), "is a shim that was never installed (it has no record); it stays as it is")
}

// planRestore gives a program its name back.
func planRestore(s *site) (step, error) {
	if s.inDir() {
		return step{}, voice.Hinted(voice.Refused(s.path(), "is a shim that was installed with --dir"), "use uninstall --dir")
	}
	removeSibling := func() error { return s.dir.remove(s.sibling()) }
	switch s.phase() {
	case absent:
		return step{}, voice.Refused(s.path(), "%w", unix.ENOENT)
	case fresh:
		return step{what: "not installed"}, nil
	case unfinished:
		return step{removeSibling, "restored", "(the install had not been finished)"}, nil
	case replaced:
		if !shims.Executable(s.path()) {
			return step{}, voice.Hinted(
				voice.Refused(s.path(), "is no program that can be executed, and %s is the one from before", voice.Show(s.sibling())),
				"take "+voice.Show(s.path())+" away, and uninstall gives the program its name back",
			)
		}
		return step{removeSibling, "kept", "as it is, it was replaced after the install; removed the older " + voice.Show(s.sibling())}, nil
	case orphaned:
		return step{}, voice.Refused(s.path(), "there is no %s beside it; without it the name would lead to nothing", voice.Show(s.sibling()))
	case installed:
		if s.neverInstalled() {
			return step{}, errBare(s)
		}
	case vanished:
	}
	return step{func() error { return s.dir.rename(s.sibling(), s.name) }, "restored", ""}, nil
}
