package place

import (
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// StatusHelp is the help text of status.
const StatusHelp = `install-shim status [--json] [--dir DIR]... [PATH...]

Says for each shim which program it stands for, whether PATH leads to it, and
whether the program is still there. Without DIR and PATH it looks through PATH.

  --json     one JSON object: {"version":1,"shims":[...]}
  --dir DIR  all shims in a directory; may be given more than once

States:

  ok          the shim leads to its program
  broken      it does not: the program is gone, not executable, or a shim
  unfinished  an install in place was interrupted; the program works unconfined
  replaced    something wrote over an in-place shim, most likely an upgrade
  missing     the name is gone, its program is left as PATH.shim-real
  no-record   a shim that was copied there, not installed
  not-a-shim

The exit code is 0 when all are ok, else 1. That PATH does not lead to a shim is
shown, and is no failure.

Examples:

  install-shim status
  install-shim status --dir /opt/shims
  install-shim status --json /usr/bin/bash
`

// A status is what is known about one name. The keys are stable.
type status struct {
	Path  string `json:"path"`
	Name  string `json:"name"`
	Place string `json:"place"` // "dir", "in-place", or "" for no install
	State string `json:"state"` // one of the states below
	OK    bool   `json:"ok"`
	// Problem says in words what is wrong, "" when nothing is.
	Problem string `json:"problem"`

	Real         string `json:"real"`
	RealResolved string `json:"real_resolved"`

	// PathFinds is what PATH gives for the name, OnPath whether that is this
	// shim, PathNext the first that is no shim.
	OnPath    bool   `json:"first_on_path"`
	PathFinds string `json:"path_finds"`
	PathNext  string `json:"path_next"`

	PolicyEnv  string `json:"policy_env"`
	OnMissing  string `json:"on_missing"`
	Argv0      string `json:"argv0"`
	Report     string `json:"report"`
	Log        string `json:"log"`
	ProfileDir string `json:"profile_dir"`
	Version    string `json:"shim_version"`
}

// States of a name.
const (
	stateOK         = "ok"
	stateBroken     = "broken"     // a shim that does not lead to its program
	stateUnfinished = "unfinished" // an interrupted install in place
	stateReplaced   = "replaced"   // the shim was overwritten
	stateMissing    = "missing"    // the name is gone, its program is left
	stateBare       = "no-record"  // a shim that was never installed
	stateNone       = "not-a-shim"
)

// Status says what stands where, and whether it works.
func Status(v *voice.Caller, args []string) error {
	var asJSON bool
	var dirs []string
	f := voice.NewFlags("status")
	f.Switch(&asJSON, "json")
	f.List(&dirs, "dir")
	paths, err := f.Read(args)
	if err == nil {
		err = f.FirstOptions(paths, "PATH")
	}
	if err != nil {
		return err
	}
	everything := len(paths) == 0 && len(dirs) == 0
	if everything {
		dirs = shims.PathDirs(v)
	}
	found := []status{}
	seen := make(map[pathcheck.ID]bool)
	for _, given := range dirs {
		p, err := shims.Absolute(given)
		if err != nil {
			return voice.Refused(given, "%w", err)
		}
		d, err := openDirectory(p)
		if err != nil && everything {
			continue // PATH often names what does not exist
		}
		if err != nil {
			return err
		}
		if !seen[d.id] {
			seen[d.id] = true
			var more []status
			more, err = statusOfAll(v, d, everything)
			found = append(found, more...)
		}
		d.close()
		if err != nil {
			return err
		}
	}
	for _, given := range paths {
		s, err := statusAt(v, f, given)
		if err != nil {
			return err
		}
		found = append(found, s)
	}
	if asJSON {
		err = v.PrintJSON(struct {
			Version int      `json:"version"`
			Shims   []status `json:"shims"`
		}{1, found})
	} else {
		err = printTable(v, found, everything)
	}
	if err == nil && slices.ContainsFunc(found, func(s status) bool { return !s.OK }) {
		err = voice.ErrSaid
	}
	return err
}

// statusOfAll looks at all names of a directory. When everything on PATH is
// looked at, a bare shim that lies there for the installer's use is none of the
// answer.
func statusOfAll(v *voice.Caller, d *directory, everything bool) (found []status, err error) {
	names, err := shims.Names(d.path)
	if err != nil && everything {
		return nil, nil
	}
	for _, name := range names {
		s, err := d.inspect(name)
		if err != nil {
			return nil, err
		}
		if st := statusOf(v, s); !everything || st.State != stateBare || name != shims.Name {
			found = append(found, st)
		}
	}
	return found, err
}

func statusAt(v *voice.Caller, f voice.Flags, given string) (status, error) {
	p, err := shims.Absolute(given)
	if err != nil {
		return status{}, voice.Refused(given, "%w", err)
	}
	if st, err := os.Stat(p); err == nil && st.IsDir() {
		return status{}, f.Wrong(voice.Show(given) + " is a directory: use --dir")
	}
	d, err := openDirectory(pathcheck.Parent(p))
	if err != nil {
		return status{}, err
	}
	defer d.close()
	s, err := d.inspect(path.Base(p))
	if err != nil {
		return status{}, err
	}
	if s.phase() == absent {
		return status{}, voice.Refused(p, "%w", unix.ENOENT)
	}
	return statusOf(v, s), nil
}

func statusOf(v *voice.Caller, s *site) status {
	r := status{Path: s.path(), Name: s.name, Version: s.version()}
	for _, f := range shims.OnPath(v, s.name) {
		if r.PathFinds == "" {
			r.PathFinds, r.OnPath = f.Path, s.dir.holds(f.Path)
		}
		if !f.IsShim && r.PathNext == "" {
			r.PathNext = f.Path
		}
	}
	r.State, r.Problem = s.diagnose()
	r.OK = r.State == stateOK
	switch {
	case s.at.Recorded && !s.at.Record.InPlace:
		r.Place = "dir"
	case s.at.Recorded || r.State != stateNone && r.State != stateBare && s.real.kind != nothing:
		r.Place = "in-place"
	}
	if s.at.Recorded {
		r.Real, r.PolicyEnv = s.at.Record.Real, s.at.Record.PolicyEnv
		r.OnMissing, r.Argv0 = s.at.Record.OnMissing.String(), s.at.Record.Argv0.String()
		r.Report, r.Log, r.ProfileDir = s.at.Record.Report, s.at.Record.Log, s.at.Record.ProfileDir
		r.RealResolved, _ = filepath.EvalSymlinks(s.at.Record.Real)
	}
	return r
}

// diagnose says in which state a site is and what is wrong with it.
func (s *site) diagnose() (state, problem string) {
	sibling := voice.Show(s.sibling())
	switch s.phase() {
	case absent, fresh:
		return stateNone, "is not a shim"
	case unfinished:
		return stateUnfinished, "the install was interrupted: the program works, nothing confines it; install or uninstall it again"
	case replaced:
		return stateReplaced, "the shim was replaced (an upgrade?) and nothing confines the program; " + sibling + " is the older program"
	case vanished:
		return stateMissing, "the name is gone, its program is still there as " + sibling
	case installed, orphaned:
	}
	switch {
	case s.at.RecordErr != nil:
		return stateBroken, s.at.RecordErr.Error()
	case !s.at.Recorded:
		return stateBare, "is a shim that was never installed: it looks for its program on PATH"
	case s.at.Record.InPlace && s.phase() == orphaned:
		return stateBroken, "there is no " + sibling + " beside it"
	case s.at.Record.InPlace && (path.Base(s.at.Record.Real) != s.sibling() || !s.dir.holds(s.at.Record.Real)):
		return stateBroken, "its record names " + voice.Show(s.at.Record.Real) + ", which is not the program beside it"
	}
	if _, err := checkProgram(s.at.Record.Real); err != nil {
		return stateBroken, "its program " + err.Error()
	}
	return stateOK, ""
}
