package workspace_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A place is a workspace with what stands around it, all the user's own: what
// is denied there is denied by the confinement and not by permissions.
type place struct {
	u   launch.User
	dir string // above all of them
	ws  string
	// home and tmp are HOME and TMPDIR of the launches. Toolchain directories
	// are made in home by launches of scope workspace.
	home, tmp string
	// outside is in no root; it holds the file "file", the directory "dir" with
	// a file "in", and the empty directory "empty".
	outside string
	reports string
	sh      string // a shim for /bin/sh
	probe   string // a shim for the probe
	// set and unset change the environment of the launches.
	set   map[string]string
	unset []string
}

func newPlace(t *testing.T, u launch.User) *place {
	t.Helper()
	launch.Need(t, launch.ABIAtLeast(3))
	dir := u.Dir(t)
	p := &place{u: u, dir: dir, set: map[string]string{}}
	p.ws = u.Mkdir(t, filepath.Join(dir, "ws"), 0o755)
	p.home = u.Mkdir(t, filepath.Join(dir, "home"), 0o755)
	p.tmp = u.Mkdir(t, filepath.Join(dir, "tmp"), 0o755)
	p.outside = u.Mkdir(t, filepath.Join(dir, "outside"), 0o755)
	p.fill(t, p.outside)
	p.reports = filepath.Join(u.Mkdir(t, filepath.Join(dir, "reports"), 0o755), "report")
	bin := u.Mkdir(t, filepath.Join(dir, "bin"), 0o755)
	p.sh = launch.Install(t, bin, "sh", launch.Record{Real: "/bin/sh"})
	p.probe = launch.Install(t, bin, probeName, launch.Record{Real: probeFile(t)})
	return p
}

// fill puts the files that the tables speak of into a directory.
func (p *place) fill(t *testing.T, dir string) {
	t.Helper()
	p.u.Write(t, filepath.Join(dir, "file"), "text", 0o644)
	p.u.Write(t, filepath.Join(dir, "other"), "text", 0o644)
	p.u.Write(t, filepath.Join(p.u.Mkdir(t, filepath.Join(dir, "dir"), 0o755), "in"), "text", 0o644)
	p.u.Mkdir(t, filepath.Join(dir, "empty"), 0o755)
}

// policy is scope workspace on p.ws, changed by the keys of change; a nil value
// takes a key out.
func (p *place) policy(change m) m {
	pol := m{"version": 1, "scope": "workspace", "workspace": p.ws, "report": p.reports}
	maps.Copy(pol, change)
	maps.DeleteFunc(pol, func(_ string, v any) bool { return v == nil })
	return pol
}

func (p *place) env() []string {
	vars := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": p.home, "TMPDIR": p.tmp, "LC_ALL": "C"}
	maps.Copy(vars, p.set)
	for _, name := range p.unset {
		delete(vars, name)
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, name+"="+vars[name])
	}
	return out
}

// shell runs a script with /bin/sh in the workspace.
func (p *place) shell(t *testing.T, policy m, script string) launch.Result {
	t.Helper()
	c := launch.Shell(p.sh, script)
	c.Env, c.Dir, c.User = p.env(), p.ws, p.u
	if policy != nil {
		c.Policy = policy
	}
	return c.Run(t)
}

// run is shell for a script that must succeed.
func (p *place) run(t *testing.T, policy m, script string) launch.Result {
	t.Helper()
	r := p.shell(t, policy, script)
	if r.Code != 0 {
		t.Fatalf("%s: %v", script, r)
	}
	return r
}

// report returns the last report.
func (p *place) report(t *testing.T) report.Report {
	t.Helper()
	rs := launch.Reports(t, p.reports)
	if len(rs) == 0 {
		t.Fatal("no report")
	}
	return rs[len(rs)-1]
}

// listed launches a program that does nothing, and returns what the report
// says is writable.
func (p *place) listed(t *testing.T, change m) []string {
	t.Helper()
	p.run(t, p.policy(change), ":")
	return p.report(t).WritableDirs
}

// tree lists what is in a directory, with all below it.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && path != dir {
			out = append(out, path[len(dir)+1:])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
