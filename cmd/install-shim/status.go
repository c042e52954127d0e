package main

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A shadowed is what status knows about one name. The keys are stable.
type shadowed struct {
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

func (a *admin) status(args []string) error {
	var asJSON bool
	var dirs []string
	f := newFlags("status")
	f.BoolVar(&asJSON, "json", false, "")
	f.Func("dir", "", func(s string) error { dirs = append(dirs, s); return nil })
	paths, err := parse(f, args)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if strings.HasPrefix(p, "-") {
			return &usageError{"status", show(p) + ": options go before the first PATH"}
		}
	}
	everything := len(paths) == 0 && len(dirs) == 0
	if everything {
		dirs = a.pathDirs()
	}
	reports := []shadowed{}
	seen := make(map[fileID]bool)
	for _, given := range dirs {
		p, err := absolute(given)
		if err != nil {
			return refused(given, "%w", bare(err))
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
			err = a.reportDirectory(d, everything, &reports)
		}
		d.close()
		if err != nil {
			return err
		}
	}
	for _, given := range paths {
		r, err := a.reportPath(given)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	if asJSON {
		err = a.printJSON(reports)
	} else {
		err = a.printTable(reports, everything)
	}
	if err != nil {
		return err
	}
	for _, r := range reports {
		if !r.OK {
			return errSaid
		}
	}
	return nil
}

// reportDirectory reports on all names of a directory. When everything on PATH
// is looked at, a bare shim that lies there for the installer's use is none of
// the answer.
func (a *admin) reportDirectory(d *directory, everything bool, reports *[]shadowed) error {
	names, err := d.ours()
	if err != nil {
		if everything {
			return nil
		}
		return err
	}
	for _, name := range names {
		s, err := d.inspect(name)
		if err != nil {
			return err
		}
		r := a.reportSite(s)
		if everything && r.State == stateBare && name == shimName {
			continue
		}
		*reports = append(*reports, r)
	}
	return nil
}

func (a *admin) reportPath(given string) (shadowed, error) {
	p, err := absolute(given)
	if err != nil {
		return shadowed{}, refused(given, "%w", bare(err))
	}
	if st, err := os.Stat(p); err == nil && st.IsDir() {
		return shadowed{}, &usageError{"status", show(given) + " is a directory: use --dir"}
	}
	d, err := openDirectory(parent(p))
	if err != nil {
		return shadowed{}, err
	}
	defer d.close()
	s, err := d.inspect(path.Base(p))
	if err != nil {
		return shadowed{}, err
	}
	if s.stage() == absent {
		return shadowed{}, refused(p, "%w", unix.ENOENT)
	}
	return a.reportSite(s), nil
}

func (a *admin) reportSite(s *site) shadowed {
	r := shadowed{Path: s.path(), Name: s.name, State: stateOK}
	for _, f := range a.findings(s.name) {
		if r.PathFinds == "" {
			r.PathFinds = f.path
			r.OnPath = sameName(f.path, s)
		}
		if !f.shim && r.PathNext == "" {
			r.PathNext = f.path
		}
	}
	if s.at.kind == aShim {
		r.Version = s.shimVersion()
	}
	if s.recorded {
		r.Place = "dir"
		if s.rec.InPlace {
			r.Place = "in-place"
		}
		r.Real, r.PolicyEnv = s.rec.Real, s.rec.PolicyEnv
		r.OnMissing, r.Argv0 = s.rec.OnMissing.String(), s.rec.Argv0.String()
		r.Report, r.Log, r.ProfileDir = s.rec.Report, s.rec.Log, s.rec.ProfileDir
		if resolved, err := filepath.EvalSymlinks(s.rec.Real); err == nil {
			r.RealResolved = resolved
		}
	}
	r.State, r.Problem = s.diagnose()
	if r.Place == "" && r.State != stateNone && r.State != stateBare && s.real.kind != nothing {
		r.Place = "in-place"
	}
	r.OK = r.State == stateOK
	return r
}

// sameName reports whether a path is the site's name in the site's directory.
func sameName(p string, s *site) bool {
	var st unix.Stat_t
	return path.Base(p) == s.name && unix.Stat(parent(p), &st) == nil && idOf(&st) == s.dir.id
}

// diagnose says in which state a site is and what is wrong with it.
func (s *site) diagnose() (state, problem string) {
	sibling := show(s.sibling())
	switch s.stage() {
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
	case s.recErr != nil:
		return stateBroken, s.recErr.Error()
	case !s.recorded:
		return stateBare, "is a shim that was never installed: it looks for its program on PATH"
	case s.rec.InPlace && s.stage() == orphaned:
		return stateBroken, "there is no " + sibling + " beside it"
	case s.rec.InPlace && !sameName(s.rec.Real, &site{dir: s.dir, name: s.sibling()}):
		return stateBroken, "its record names " + show(s.rec.Real) + ", which is not the program beside it"
	}
	if _, err := checkProgram(s.rec.Real); err != nil {
		return stateBroken, "its program " + err.Error()
	}
	return stateOK, ""
}
