package planner

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/target"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/child"
)

// What a plan knows of its launch: both homes, all names of the shim, absolute paths.
func TestFacts(t *testing.T) {
	here := Cwd()
	if here == "" || here[0] != '/' {
		t.Fatalf("%q", here)
	}
	in := Input{
		Policy:  &rules.Policy{Hidden: hide("/h"), Exposed: hide("/x"), Precreate: hide("/p")},
		Env:     []string{"HOME=/inner", "PATH=/one:two:", "TMPDIR=tmp"},
		Outer:   []string{"HOME=/outer", "TMPDIR=/outer"},
		Self:    target.Self{Path: "/shims/sh", Invoked: "bin/sh"},
		Program: target.At("prog", "prog"),
	}
	table := pathcheck.Mounts{{ID: 9}}
	l := in.facts(table)
	for _, row := range []struct {
		what      string
		got, want any
	}{
		{"cwd", l.Cwd, here},
		{"temp", l.TempDir, here + "/tmp"},
		{"homes", l.Homes, []string{"/outer", "/inner"}},
		{"shims", l.Shims, []string{"/shims/sh", here + "/bin/sh"}},
		{"needed", l.Needed, []plan.Need{{Role: "the program", Path: here + "/prog"}}},
		{"names", l.Names, []string{"/one", here + "/two", here + "/.", "/inner", here, here + "/tmp", "/h", "/x", "/p"}},
		{"mounts", l.Mounts, table},
		{"env", l.Env, in.Env},
	} {
		if diff := cmp.Diff(row.want, row.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.what, diff)
		}
	}
	in = Input{Policy: &rules.Policy{}, Env: []string{"HOME=relative", "TMPDIR="}, Outer: []string{"HOME=relative"}, Self: target.Self{Path: "/", Invoked: "/"}, Program: target.At("/p", "p")}
	if l := in.facts(nil); l.TempDir != "/tmp" || l.Homes != nil || l.Shims != nil {
		t.Errorf("%+v", l)
	}
}

// Who holds capabilities has the power of root, whatever its number.
func TestPower(t *testing.T) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	child.Thread(func() {
		if got := Power(); os.Geteuid() == 0 && got != 0 {
			t.Errorf("root: %d", got)
		}
		if os.Geteuid() == 0 {
			// Keeping the capabilities, another user; raw, for this thread alone.
			_, _, e1 := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_KEEPCAPS, 1, 0)
			_, _, e2 := unix.RawSyscall(unix.SYS_SETRESUID, child.Nobody, child.Nobody, child.Nobody)
			if got := Power(); e1 != 0 || e2 != 0 || got != 0 {
				t.Errorf("another user with capabilities: %d (%v, %v)", got, e1, e2)
			}
		}
		var none [2]unix.CapUserData
		if err := unix.Capset(&hdr, &none[0]); err != nil {
			t.Error(err)
		}
		want := os.Geteuid()
		if want == 0 {
			want = child.Nobody
		}
		if got := Power(); got != want {
			t.Errorf("without any: %d, want %d", got, want)
		}
	})
	errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_CAPGET}, unix.ENOMEM, func() {
		if got := Power(); got != 0 {
			t.Errorf("not known: %d", got)
		}
	})
}

// Whatever holds up the next launch may not be changed by this one: in scope
// workspace the launch is refused, elsewhere it is said.
func TestProtect(t *testing.T) {
	dir := stage(t)
	errnotest.Must(t, os.Symlink("../secret/f", dir+"/ws/link"))
	workspace := &rules.Policy{Version: 1, Scope: rules.ScopeWorkspace, Workspace: dir + "/ws", Toolchain: rules.ToolchainDirs{Mode: rules.ToolchainNone}}
	linked, profiled, hiding := *workspace, *workspace, *workspace
	linked.Hidden, profiled.ProfileFile, hiding.Hidden = hide(dir+"/ws/link"), dir+"/ws/f", hide(dir+"/beside/f")
	local := &rules.Policy{Version: 1, Hidden: hide(dir + "/secret")}
	in, out := dir+"/ws/f", dir+"/beside/f"
	safe := target.At("/bin/true", "true")
	for _, row := range []struct {
		name    string
		in      Input
		refused string // what the error names, "" for none
		gap     string // the path that a gap names, "" for none
	}{
		{"nothing", Input{Policy: workspace, Program: safe}, "", ""},
		{"the shim", Input{Policy: workspace, Program: safe, Self: target.Self{Path: in, Invoked: in}}, "the shim", ""},
		{"the shim, elsewhere", Input{Policy: workspace, Program: safe, Self: target.Self{Path: out, Invoked: out}}, "", ""},
		{"the program", Input{Policy: workspace, Program: target.At(in, "f")}, "the real program", ""},
		{"the policy", Input{Policy: workspace, Program: safe, Source: load.Source{File: in}}, "the policy file", ""},
		{"the policy, elsewhere", Input{Policy: workspace, Program: safe, Source: load.Source{File: out}}, "", ""},
		{"a policy that is not there", Input{Policy: workspace, Program: safe, Source: load.Source{File: in + "-gone"}}, "", ""},
		{"the profile", Input{Policy: &profiled, Program: safe}, "the profile", ""},
		{"the report", Input{Policy: workspace, Program: safe, Report: in}, "", in},
		{"the report, elsewhere", Input{Policy: workspace, Program: safe, Report: out}, "", ""},
		{"a link to what is hidden", Input{Policy: &linked, Program: safe}, "a symbolic link", ""},
		{"hidden, elsewhere", Input{Policy: &hiding, Program: safe, Source: load.Source{File: dir + "/ws/../beside/f"}}, "", ""},
		{"the policy, no scope", Input{Policy: local, Program: safe, Source: load.Source{File: in}}, "", in},
		{"the policy, hidden", Input{Policy: local, Program: safe, Source: load.Source{File: dir + "/secret/f"}}, "", ""},
	} {
		pl, err := plan.Make(row.in.Policy, plan.Launch{EUID: 1, Cwd: "/", TempDir: "/tmp"}, pathcheck.OS{})
		errnotest.Must(t, err)
		gaps, err := row.in.protect(pl, nil, pathcheck.OS{})
		var refused *rules.Error
		if errors.As(err, &refused) != (row.refused != "") || err != nil && !strings.HasPrefix(refused.Msg, row.refused+":") && !strings.HasPrefix(refused.Msg, row.refused+" on") {
			t.Errorf("%s: %v, want %q", row.name, err, row.refused)
		}
		gaps = slices.DeleteFunc(gaps, func(g rules.Gap) bool { // of attributes: package nextlaunch
			return strings.HasPrefix(g.Why, "the program can change the mode") || strings.HasPrefix(g.Why, "the program can take the search")
		})
		named := slices.ContainsFunc(gaps, func(g rules.Gap) bool { return g.What == "self-protection" && g.Limit && g.Path == row.gap })
		ours := slices.ContainsFunc(gaps, func(g rules.Gap) bool { return strings.HasPrefix(g.Path, dir) })
		if named != (row.gap != "") || ours != named {
			t.Errorf("%s: %+v, want %q", row.name, gaps, row.gap)
		}
	}
}

// A dry run makes nothing and says what it would have made; a launch makes it first
// and then plans with it.
func TestToolchainDirsAreMadeFirst(t *testing.T) {
	dir := stage(t)
	cache := dir + "/beside/deep/cache"
	p := &rules.Policy{
		Version: 1, Scope: rules.ScopeWorkspace, Workspace: dir + "/ws",
		Toolchain: rules.ToolchainDirs{Mode: rules.ToolchainOwned, Owned: cache}, Hidden: hide(dir + "/secret"),
	}
	in := inputOf(p)
	in.Dry = true
	var rec plan.Recorder
	make := func() *Plan {
		t.Helper()
		rec.Grants = nil
		pl, err := Make(in, func([]string) (plan.Sink, error) { return &rec, nil })
		errnotest.Must(t, err)
		t.Cleanup(pl.Close)
		return pl
	}
	foreseen := make()
	if _, err := os.Lstat(cache); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a dry run made %s: %v", cache, err)
	}
	if !slices.Contains(foreseen.Made, cache) || !slices.Contains(foreseen.Files.WritableDirs(), cache) {
		t.Errorf("made %q, writable %q", foreseen.Made, foreseen.Files.WritableDirs())
	}
	grants := rec.Grants
	in.Dry = false
	done := make()
	if info, err := os.Lstat(cache); err != nil || info.Mode().Perm() != 0o700 || done.Made != nil {
		t.Errorf("%v, %v, made %q", info, err, done.Made)
	}
	if diff := cmp.Diff(grants, rec.Grants); diff != "" {
		t.Errorf("foreseen and granted differ:\n%s", diff)
	}
}

// Templates are resolved from what the program gets, and for its own names.
func TestResolve(t *testing.T) {
	dir := stage(t)
	p := &rules.Policy{
		Version: 1, Targets: []string{"agent"}, Profile: "one", Root: dir,
		Hidden: []rules.Entry{{Key: "hidden[0]", Template: &rules.Template{Path: "${env:WHERE}/secret"}}},
	}
	in := inputOf(p)
	in.Env = append(in.Env, "WHERE="+dir)
	in.Outer = []string{"WHERE=/elsewhere"}
	in.Program.Name = "agent"
	got, dropped, gaps, err := Resolve(in, []string{"agent"})
	errnotest.Must(t, err)
	if len(got.Hidden) != 1 || got.Hidden[0].Path != dir+"/secret" || dropped != nil || gaps != nil || p.Hidden[0].Path != "" {
		t.Errorf("%+v, %+v, %+v", got.Hidden, dropped, gaps)
	}
	for _, name := range []string{"agent.shim-real", "agent", "other"} {
		in.Program = target.At("/opt/"+name, "other")
		_, _, gaps, err := Resolve(in, nil)
		if known := name != "other"; err != nil || (gaps == nil) != known || !known && (!gaps[0].Limit || gaps[0].What != "run-scope") {
			t.Errorf("%s: %+v, %v", name, gaps, err)
		}
	}
	// What cannot be looked at is not chosen.
	exposed := *p
	exposed.Exposed = []rules.Entry{{Key: "exposed[0]", Template: &rules.Template{Path: "${root}/secret/f", Beneath: "${root}"}}}
	in.Policy, in.Program.Name = &exposed, "agent"
	errnotest.Answering(t, errnotest.Openat, unix.EMFILE, func() {
		if _, _, _, err := Resolve(in, nil); !errors.Is(err, unix.EMFILE) {
			t.Errorf("no descriptors: %v", err)
		}
	})
}

// What the policy asks for is made, private, in its order; what is there stays.
func TestPrecreate(t *testing.T) {
	defer unix.Umask(unix.Umask(0))
	dir := stage(t)
	errnotest.Must(t, os.Symlink("beside", dir+"/link"))
	declared := func(kind rules.EntryKind) *rules.Derived {
		return &rules.Derived{Kind: kind, Beneath: dir + "/link", Base: dir + "/beside"}
	}
	p := &rules.Policy{
		Root:      dir + "/ws",
		Precreate: []rules.Entry{{Key: "precreate[0]", Path: dir + "/link/a/b"}, {Key: "precreate[1]", Path: dir + "/secret"}},
		Exposed: []rules.Entry{
			{Key: "exposed[0]", Path: dir + "/plain"},
			{Key: "exposed[1]", Path: dir + "/link/d", Derived: declared(rules.KindDir)},
			{Key: "exposed[2]", Path: dir + "/link/file", Derived: declared(rules.KindFile)},
			{Key: "exposed[3]", Path: dir + "/link/none", Derived: declared(rules.KindNone)},
			{Key: "exposed[4]", Path: dir + "/ws/run/x", Derived: &rules.Derived{Kind: rules.KindDir}},
			{Key: "exposed[5]", Path: dir + "/outside/x", Derived: &rules.Derived{Kind: rules.KindDir}},
		},
	}
	made, err := Precreate(p)
	if err != nil || !slices.Equal(made, []string{dir + "/link/a/b", dir + "/secret"}) {
		t.Fatalf("%q, %v", made, err)
	}
	for path, mode := range map[string]os.FileMode{
		"/beside/a": os.ModeDir | 0o700, "/beside/a/b": os.ModeDir | 0o700, "/secret": os.ModeDir | 0o755, "/beside/d": os.ModeDir | 0o700,
		"/beside/file": 0o600, "/ws/run/x": os.ModeDir | 0o700, "/outside/x": os.ModeDir | 0o700, "/plain": 0, "/beside/none": 0,
	} {
		info, err := os.Lstat(dir + path)
		if (err == nil) != (mode != 0) || err == nil && info.Mode() != mode {
			t.Errorf("%s: %v, %v, want %v", path, info, err, mode)
		}
	}
	// Below the root of templates no link is followed, above it one is.
	errnotest.Must(t, os.Symlink("../beside", dir+"/ws/way"))
	for path, want := range map[string]error{
		"/ws/way/x": errSymlink, "/beside/f": fs.ErrExist, "/beside/f/x": unix.ENOTDIR,
	} {
		e := rules.Entry{Key: "precreate[0]", Path: dir + path}
		if want == errSymlink {
			e.Derived = &rules.Derived{Kind: rules.KindDir}
		}
		_, err := Precreate(&rules.Policy{Root: dir + "/ws", Precreate: []rules.Entry{e}})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "precreate[0]: ") {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if _, err := os.Lstat(dir + "/beside/x"); err == nil {
		t.Error("made through a link below the root")
	}
}
