package planner

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/target"
)

// facts gathers what must be known of this process to plan.
func (in *Input) facts(mounts pathcheck.Mounts) plan.Launch {
	cwd := Cwd()
	l := plan.Launch{Cwd: cwd, Env: in.Env, EUID: Power(), Mounts: mounts, TempDir: "/tmp"}
	if dir, ok := target.Getenv(in.Env, "TMPDIR"); ok && dir != "" {
		l.TempDir = pathcheck.Absolute(cwd, dir)
	}
	// PATH and #! lines may have relative ones.
	for _, n := range in.Program.Needs() {
		if n.Path = pathcheck.Absolute(cwd, n.Path); n.Path != "" {
			l.Needed = append(l.Needed, n)
		}
	}
	// Both the launcher's HOME and the program's are guarded: a policy that sets
	// another one does not give up the first.
	for _, env := range [][]string{in.Outer, in.Env} {
		if home, ok := target.Getenv(env, "HOME"); ok && len(home) > 0 && home[0] == '/' && !slices.Contains(l.Homes, home) {
			l.Homes = append(l.Homes, home)
		}
	}
	for _, path := range []string{in.Self.Path, in.Self.Invoked} {
		if path = pathcheck.Absolute(cwd, path); len(path) > 1 && !slices.Contains(l.Shims, path) {
			l.Shims = append(l.Shims, path)
		}
	}
	// What stands in for directories that cannot be listed.
	names := target.PathDirs(in.Env)
	if home, ok := target.Getenv(in.Env, "HOME"); ok && home != "" {
		names = append(names, home)
	}
	names = append(names, cwd, l.TempDir)
	for _, list := range [][]rules.Entry{in.Policy.Hidden, in.Policy.Exposed, in.Policy.Precreate} {
		for _, e := range list {
			names = append(names, e.Path)
		}
	}
	for _, name := range names {
		if name != "" {
			name = pathcheck.Absolute(cwd, name)
		}
		if name != "" {
			l.Names = append(l.Names, name)
		}
	}
	return l
}

// Power returns the effective user id, or 0 when the process holds
// capabilities: with SETUID it can become root, and with DAC_OVERRIDE it need
// not, to write what only root may.
func Power() int {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil || data[0].Permitted|data[1].Permitted != 0 {
		return 0
	}
	return unix.Geteuid()
}

// Cwd is the current directory, "" where it has no path.
func Cwd() string {
	dir, err := unix.Getwd()
	if err != nil || len(dir) == 0 || dir[0] != '/' {
		return ""
	}
	return dir
}
