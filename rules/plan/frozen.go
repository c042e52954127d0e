package plan

import (
	"slices"
	"strconv"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// checkFrozen decides about the directories in which the launch must be able
// to make files.
func (pl *Plan) checkFrozen(p *rules.Policy, t pathcheck.Tree) error {
	if p.Frozen == rules.FrozenAllow {
		return nil
	}
	if err := pl.checkFrozenRoots(); err != nil {
		return err
	}
	if pl.launch.TempDir == "" {
		return nil
	}
	loc, err := pathcheck.Resolve(t, pl.launch.TempDir)
	if err != nil || !loc.Exists {
		return nil // then nothing can be made there anyway
	}
	const instead = `; hide it elsewhere, set TMPDIR, or set "frozen":"allow"`
	if h, ok := pl.covered(loc.Path); ok {
		return &rules.Error{Key: h.Key, Path: h.Path, Msg: "hides the temp directory " + strconv.Quote(loc.Path) + instead}
	}
	if h, ok := pl.hiddenBeneath(loc.Path); ok {
		return &rules.Error{Key: h.Key, Path: h.Path, Msg: "would freeze the temp directory " + strconv.Quote(loc.Path) + instead}
	}
	return nil
}

// CwdFrozen returns a sentence about a current directory that this plan hides
// or freezes, or "". That "/" is frozen is true of every plan and not said.
func (pl *Plan) CwdFrozen() string {
	cwd := pl.launch.Cwd
	if h, ok := pl.covered(cwd); ok && cwd != "" {
		return "the current directory " + strconv.Quote(cwd) + " is hidden by " + strconv.Quote(h.Path)
	}
	if _, ok := pl.expand[cwd]; ok && cwd != "/" {
		return "the current directory " + strconv.Quote(cwd) + " is frozen: it cannot be listed and takes no new entries"
	}
	return ""
}

// checkFrozenRoots refuses a workspace or a writable root that would take no
// new entries. Toolchain directories may be frozen: their subdirectories stay
// writable, and the report lists them.
func (pl *Plan) checkFrozenRoots() error {
	for _, r := range pl.Roots {
		if !r.named {
			continue
		}
		what := "the workspace"
		if r.Key != "workspace" {
			what = "the writable root"
		}
		h, ok := pl.hiddenBeneath(r.Path)
		switch {
		case !ok:
		case h.Key == kernelKey:
			return &rules.Error{Key: r.Key, Path: r.Path, Msg: "holds " + strconv.Quote(h.Path) + `, which root must not reach and which would freeze it; unmount that, or set "frozen":"allow"`}
		default:
			return &rules.Error{Key: h.Key, Path: h.Path, Msg: "would freeze " + what + " " + strconv.Quote(r.Path) + `; hide it elsewhere, or set "frozen":"allow"`}
		}
	}
	return nil
}

// hiddenBeneath returns the first hidden location beneath dir.
func (pl *Plan) hiddenBeneath(dir string) (Hidden, bool) {
	if !pl.aboveHidden[dir] {
		return Hidden{}, false
	}
	all := slices.Concat(pl.Hidden, pl.kernelMounts)
	i := slices.IndexFunc(all, func(h Hidden) bool { return pathcheck.Beneath(dir, h.Path) })
	return all[i], true
}
