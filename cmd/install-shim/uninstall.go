package main

import (
	"golang.org/x/sys/unix"
)

func (a *admin) uninstall(args []string) error {
	var where place
	f := newFlags("uninstall")
	where.register(f)
	operands, err := parse(f, args)
	if err != nil {
		return err
	}
	if err := where.check("uninstall"); err != nil {
		return err
	}
	if err := checkOperands("uninstall", operands, where.operand()); err != nil {
		return err
	}
	paths := operands
	plan := planRestore
	if !where.inPlace {
		paths, plan = nil, planRemove
		for _, name := range operands {
			if err := checkName(name); err != nil {
				return err
			}
			paths = append(paths, where.dir+"/"+name)
		}
	}
	sites, closeAll, err := openSites(paths)
	defer closeAll()
	if err != nil {
		return err
	}
	var steps []func() (what, more string, err error)
	for _, s := range sites {
		step, err := plan(s)
		if err != nil {
			return err
		}
		steps = append(steps, step)
	}
	for i, step := range steps {
		what, more, err := step()
		if err != nil {
			return err
		}
		if err := sites[i].dir.remove(tempName(sites[i].name)); err != nil {
			return err
		}
		a.did(what, sites[i].path(), more)
	}
	return nil
}

type step = func() (what, more string, err error)

func still(what, more string) step {
	return func() (string, string, error) { return what, more, nil }
}

// planRemove takes a shim out of a directory.
func planRemove(s *site) (step, error) {
	switch {
	case s.at.kind == nothing:
		return still("not installed", ""), nil
	case s.at.kind == other:
		return nil, refused(s.path(), "is not a shim; it stays as it is")
	case s.inPlace():
		return nil, &hinted{refused(s.path(), "is a shim that was installed in place"), "use uninstall --in-place"}
	case !s.recorded && s.recErr == nil:
		return nil, refused(s.path(), "is a shim that was never installed (it has no record); it stays as it is")
	}
	return func() (string, string, error) { return "removed", "", s.dir.remove(s.name) }, nil
}

// planRestore gives a program its name back.
func planRestore(s *site) (step, error) {
	back := func() (string, string, error) {
		return "restored", "", s.dir.rename(s.sibling(), s.name)
	}
	clean := func(what, more string) step {
		return func() (string, string, error) { return what, more, s.dir.remove(s.sibling()) }
	}
	switch s.stage() {
	case absent:
		return nil, refused(s.path(), "%w", unix.ENOENT)
	case fresh:
		return still("not installed", ""), nil
	case unfinished:
		return clean("restored", "(the install had not been finished)"), nil
	case replaced:
		if !executable(s.path()) {
			return nil, &hinted{
				refused(s.path(), "is no program that can be executed, and %s is the one from before", show(s.sibling())),
				"take " + show(s.path()) + " away, and uninstall gives the program its name back",
			}
		}
		return clean("kept", "as it is, it was replaced after the install; removed the older "+show(s.sibling())), nil
	case vanished:
		return back, nil
	case orphaned:
		if s.inDir() {
			return nil, &hinted{refused(s.path(), "is a shim that was installed with --dir"), "use uninstall --dir"}
		}
		return nil, refused(s.path(), "there is no %s beside it; without it the name would lead to nothing", show(s.sibling()))
	case installed:
		if s.inDir() {
			return nil, &hinted{refused(s.path(), "is a shim that was installed with --dir"), "use uninstall --dir"}
		}
		if !s.recorded && s.recErr == nil {
			return nil, refused(s.path(), "is a shim that was never installed (it has no record); it stays as it is")
		}
	}
	return back, nil
}
