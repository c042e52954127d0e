package shim

import (
	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// selfProtection lists what the program could change so that the next launch
// is not confined, or its report is false: the shim, the directory it stands
// in, the real program, the policy file and the report.
func (l *launch) selfProtection(pl *rules.Plan) []rules.Gap {
	var gaps []rules.Gap
	check := func(what, path string) {
		loc, err := pathcheck.Resolve(pathcheck.OS{}, path)
		if err != nil || !loc.Exists || pl.Hides(loc.Path) {
			return
		}
		dir := loc.Info.Kind == pathcheck.Directory
		if dir && pl.Freezes(loc.Path) || !couldWrite(loc) {
			return
		}
		gaps = append(gaps, rules.Gap{What: "self-protection", Path: loc.Path, Why: "the program can write " + what, Limit: true})
	}
	if me := l.me.invoked; me != "" {
		me = absolute(cwd(), me)
		check("the shim", me)
		check("the directory of the shim", pathcheck.Parent(me))
	}
	check("the real program", l.target.path)
	if l.source.File != "" {
		check("the policy file", l.source.File)
	}
	if l.out != nil && l.out.to.Path != "" {
		check("the report", l.out.to.Path)
	}
	return gaps
}

// couldWrite reports whether this user may write the inode, or may give itself
// the permission as its owner.
func couldWrite(loc pathcheck.Location) bool {
	if int(loc.Info.UID) == unix.Geteuid() {
		return true
	}
	return unix.Faccessat(unix.AT_FDCWD, loc.Path, unix.W_OK, unix.AT_EACCESS) == nil
}

func cwd() string {
	dir, err := unix.Getwd()
	if err != nil {
		return ""
	}
	return dir
}
