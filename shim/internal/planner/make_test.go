package planner

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/child"
)

// stage is a directory with a secret and one beside it.
func stage(t *testing.T) string {
	t.Helper()
	dir := child.Dir(t)
	for _, d := range []string{"secret", "beside", "ws"} {
		errnotest.Must(t, os.Mkdir(dir+"/"+d, 0o755))
		errnotest.Touch(t, dir+"/"+d+"/f")
	}
	return dir
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	errnotest.Must(t, err)
	return len(entries)
}

// A plan is made again when the file system changes under it, a few times, and the
// grants of one that was given up go nowhere.
func TestPlansAgain(t *testing.T) {
	dir := stage(t)
	for _, row := range []struct {
		name   string
		errs   []error // of the walk's first grant, one plan after the other
		plans  int
		want   error
		before bool // from the sink itself
	}{
		{"nothing changes", nil, 1, nil, false},
		{"changes twice", []error{pathcheck.ErrChanged, pathcheck.ErrChanged}, 3, nil, false},
		{"changes for ever", slices.Repeat([]error{pathcheck.ErrChanged}, 99), 5, pathcheck.ErrChanged, false},
		{"fails", []error{unix.ENOSPC}, 1, unix.ENOSPC, false},
		{"no ruleset to be had", []error{unix.ENOMEM}, 1, unix.ENOMEM, true},
	} {
		plans, before := 0, openFiles(t)
		pl, err := Make(inputOf(&rules.Policy{Version: 1, Hidden: hide(dir + "/secret")}), func(needed []string) (plan.Sink, error) {
			if plans++; !slices.ContainsFunc(needed, func(s string) bool { return strings.HasSuffix(s, "/true") }) {
				t.Errorf("%s: needed: %q", row.name, needed)
			}
			var err error
			if plans <= len(row.errs) {
				err = row.errs[plans-1]
			}
			if row.before {
				return nil, err
			}
			return sink{func(plan.Grant) error { return err }}, nil
		})
		if plans != row.plans || !errors.Is(err, row.want) || (pl == nil) != (row.want != nil) {
			t.Errorf("%s: %d plans, %v, %v", row.name, plans, pl, err)
		}
		pl.Close()
		pl.Close()
		if after := openFiles(t); after != before {
			t.Errorf("%s: %d files are open, were %d", row.name, after, before)
		}
	}
}

// A plan holds what it hides, and its grants are those of the plan.
func TestMakeHoldsAndGrants(t *testing.T) {
	dir := stage(t)
	var rec plan.Recorder
	pl, err := Make(inputOf(&rules.Policy{Version: 1, Hidden: hide(dir + "/secret")}), func([]string) (plan.Sink, error) { return &rec, nil })
	errnotest.Must(t, err)
	defer pl.Close()
	loc, err := pathcheck.Resolve(pathcheck.OS{}, dir+"/secret")
	errnotest.Must(t, err)
	if len(pl.Held) == 0 || pl.Held[0].Info().ID != loc.Info.ID {
		t.Errorf("held: %v", pl.Held)
	}
	granted := func(path string) bool {
		return slices.ContainsFunc(rec.Grants, func(g plan.Grant) bool { return g.Path == path })
	}
	if pl.Rules != len(rec.Grants) || !granted(dir+"/beside") || granted(dir+"/secret") || granted(dir) {
		t.Errorf("%d rules, %+v", pl.Rules, rec.Grants)
	}
	if !slices.IsSorted(pl.Frozen) || !slices.Contains(pl.Frozen, dir) || !slices.Contains(pl.Frozen, "/") {
		t.Errorf("frozen: %q", pl.Frozen)
	}
	// Without a sink nothing is granted, and the plan says the same.
	dry, err := Make(inputOf(&rules.Policy{Version: 1, Hidden: hide(dir + "/secret")}), nil)
	errnotest.Must(t, err)
	defer dry.Close()
	if dry.Rules != 0 || len(dry.Files.Hidden) != len(pl.Files.Hidden) {
		t.Errorf("%+v", dry)
	}
}

// What is granted is looked up anew: a directory that was exchanged since the plan is
// noticed, not walked as it was.
func TestGrantsAreLookedUpAnew(t *testing.T) {
	dir := stage(t)
	plans := 0
	pl, err := Make(inputOf(&rules.Policy{Version: 1, Hidden: hide(dir + "/ws/f")}), func([]string) (plan.Sink, error) {
		if plans++; plans == 1 {
			if err := errors.Join(os.Rename(dir+"/ws", dir+"/moved"), os.Rename(dir+"/beside", dir+"/ws")); err != nil {
				return nil, err
			}
		}
		return &plan.Recorder{}, nil
	})
	errnotest.Must(t, err)
	defer pl.Close()
	if plans != 2 {
		t.Errorf("%d plans, want 2", plans)
	}
}

// What is hidden is held as it was planned, or the plan is for nothing.
func TestHold(t *testing.T) {
	dir := stage(t)
	plans := func(t *testing.T, paths ...string) *plan.Plan {
		t.Helper()
		pl, err := plan.Make(&rules.Policy{Hidden: hide(paths...)}, plan.Launch{EUID: 1, Cwd: "/", TempDir: "/tmp"}, pathcheck.OS{})
		errnotest.Must(t, err)
		return pl
	}
	pl := plans(t, dir+"/secret", dir+"/gone", dir+"/beside")
	held, err := hold(pl, pathcheck.OS{})
	if err != nil || len(held) != 2 {
		t.Fatalf("%v, %v", held, err)
	}
	for _, n := range held {
		n.Close()
	}
	before := openFiles(t)
	errnotest.Must(t, os.Rename(dir+"/beside", dir+"/moved"))
	if held, err := hold(pl, pathcheck.OS{}); !errors.Is(err, pathcheck.ErrChanged) || held != nil {
		t.Errorf("gone: %v, %v", held, err)
	}
	errnotest.Must(t, os.Mkdir(dir+"/beside", 0o755))
	if held, err := hold(pl, pathcheck.OS{}); !errors.Is(err, pathcheck.ErrChanged) || held != nil {
		t.Errorf("another: %v, %v", held, err)
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, were %d", after, before)
	}
	var many []string
	for i := range maxHeld + 3 {
		path := dir + "/ws/" + strings.Repeat("x", i+1)
		errnotest.Touch(t, path)
		many = append(many, path)
	}
	held, err = hold(plans(t, many...), pathcheck.OS{})
	if err != nil || len(held) != maxHeld {
		t.Errorf("%d are held, %v", len(held), err)
	}
	for _, n := range held {
		n.Close()
	}
}

// A pass over the file system that ran out of descriptors saw too little, also where
// it took that for a path that leads nowhere.
func TestScarcityIsNoAnswer(t *testing.T) {
	dir := stage(t)
	in := inputOf(&rules.Policy{Version: 1, Hidden: hide(dir + "/secret")})
	known := plan.Launch{EUID: 1, Cwd: "/", TempDir: "/tmp", Needed: []plan.Need{{Role: "the loader", Path: dir + "/beside/f"}}}
	for _, errno := range []unix.Errno{0, unix.EMFILE, unix.ENOMEM} {
		tree := pathcheck.Tree(pathcheck.OS{})
		if errno != 0 {
			tree = unreadable{tree, "beside", errno}
		}
		kept := pathcheck.Keep(tree)
		var p Plan
		err := in.look(&p, known, kept)
		switch {
		case errno == 0 && (err != nil || !slices.Equal(p.Needed, []string{dir + "/beside/f"})):
			t.Errorf("%q, %v", p.Needed, err)
		case errno != 0 && !errors.Is(err, errno):
			t.Errorf("look: %v, want %v", err, errno)
		}
		kept.Release()
	}
	// The walk, over a tree that has met it once.
	var p Plan
	kept := pathcheck.Keep(pathcheck.OS{})
	errnotest.Must(t, in.look(&p, known, kept))
	none := sink{func(plan.Grant) error { return nil }}
	if _, err := in.grant(&p, kept, none); err != nil {
		t.Errorf("walk: %v", err)
	}
	p.Close()
	kept.Release()
	// Not by what the walk opens itself.
	spent := pathcheck.Keep(unreadable{pathcheck.OS{}, "not-walked", unix.EMFILE})
	defer spent.Release()
	if _, err := pathcheck.Resolve(spent, dir+"/beside/not-walked"); !errors.Is(err, unix.EMFILE) {
		t.Fatal(err)
	}
	if _, err := in.grant(&p, spent, none); !errors.Is(err, unix.EMFILE) {
		t.Errorf("walk over a tree that met EMFILE: %v", err)
	}
	p.Close()
	for _, errno := range []unix.Errno{unix.EMFILE, unix.ENOMEM} {
		errnotest.Answering(t, errnotest.Openat, errno, func() {
			if _, err := Make(in, nil); !errors.Is(err, errno) {
				t.Errorf("make: %v, want %v", err, errno)
			}
		})
	}
}

// A mount that comes up meanwhile is noticed: during the walk it is planned again,
// and afterwards it ends the launch where it shows what is hidden.
func TestMountsMeanwhile(t *testing.T) {
	child.Root(t)
	dir := stage(t)
	for _, row := range []struct {
		name   string
		m      mounting
		plans  int
		hidden int
		later  string
	}{
		{"during the walk", mounting{From: dir + "/secret", Onto: dir + "/beside", During: true}, 2, 2, ""},
		{"after it", mounting{From: dir + "/secret", Onto: dir + "/beside"}, 1, 1, "shows"},
		{"after it, something else", mounting{From: dir + "/ws", Onto: dir + "/beside"}, 1, 1, ""},
	} {
		row.m.Hidden = dir + "/secret/f"
		var got mounted
		child.Run(t, 0, "mounts", row.m, &got)
		if got.Plans != row.plans || len(got.Hidden) != row.hidden || !strings.Contains(got.Later, row.later) || (got.Later == "") != (row.later == "") {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
}

// The table of mounts is read whole, each time from its start, and what cannot be
// read is not taken for empty.
func TestMountTable(t *testing.T) {
	w, absent, err := watchMounts()
	if err != nil || absent {
		t.Fatal(absent, err)
	}
	defer w.close()
	for range 2 {
		table, err := w.read()
		if err != nil || len(table) == 0 {
			t.Errorf("%d mounts, %v", len(table), err)
		}
	}
	var none *mountWatch
	if changed, err := none.changed(); changed || err != nil {
		t.Errorf("%v, %v", changed, err)
	}
	none.close()
	for nr, what := range map[uintptr]func() error{
		unix.SYS_READ:   func() error { _, err := MountTable(nil); return err },
		unix.SYS_LSEEK:  func() error { _, err := MountTable(nil); return err },
		unix.SYS_OPENAT: func() error { _, err := MountTable(nil); return err },
		unix.SYS_PPOLL:  func() error { _, err := w.changed(); return err },
	} {
		errnotest.Answering(t, errnotest.Call{Nr: nr}, unix.EIO, func() {
			if err := what(); !errors.Is(err, unix.EIO) {
				t.Errorf("system call %d: %v", nr, err)
			}
		})
	}
	errnotest.Answering(t, errnotest.Openat, unix.ENOENT, func() {
		if _, err := MountTable(nil); !errors.Is(err, errNoProc) {
			t.Errorf("without /proc: %v", err)
		}
		if w, absent, err := watchMounts(); w != nil || !absent || err != nil {
			t.Errorf("without /proc: %v, %v, %v", w, absent, err)
		}
	})
}

// What the walk could not do is said.
func TestDescribe(t *testing.T) {
	limit := rules.Gap{What: "overlay", Limit: true}
	guard := rules.Gap{What: "self-protection", Limit: true}
	what := func(p *Plan) (out []string) {
		for _, g := range p.Gaps {
			if !g.Limit {
				t.Errorf("%s is no limit", g.What)
			}
			out = append(out, g.What)
		}
		return out
	}
	p := &Plan{Files: &plan.Plan{Limits: []rules.Gap{limit}, Frozen: []string{"/b"}}, Gaps: []rules.Gap{guard}}
	p.describe(plan.Tally{Grants: 7, Unopened: 2, Unlisted: []string{"/d"}, Split: []string{"/a"}}, true)
	if got := what(p); !slices.Equal(got, []string{"overlay", "mount-alias", "unlisted", "unopened", "self-protection"}) {
		t.Errorf("%q", got)
	}
	if p.Rules != 7 || !slices.Equal(p.Frozen, []string{"/a", "/b"}) {
		t.Errorf("%d, %q", p.Rules, p.Frozen)
	}
	p = &Plan{Files: &plan.Plan{}}
	p.describe(plan.Tally{}, false)
	if p.Gaps != nil || p.Frozen != nil {
		t.Errorf("%+v", p)
	}
}
