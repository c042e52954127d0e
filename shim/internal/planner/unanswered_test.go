package planner

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/load"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/target"
)

// workspaceOf is a plan and policy of scope workspace.
func workspaceOf(t *testing.T, dir string) (*rules.Policy, *plan.Plan) {
	t.Helper()
	p := &rules.Policy{Version: 1, Scope: rules.ScopeWorkspace, Workspace: dir, Toolchain: rules.ToolchainDirs{Mode: rules.ToolchainNone}}
	pl, err := plan.Make(p, plan.Launch{EUID: 1, Cwd: "/"}, pathcheck.OS{})
	errnotest.Must(t, err)
	return p, pl
}

// unreadable is a tree in which a name cannot be opened, for a reason.
type unreadable struct {
	pathcheck.Tree
	name string
	err  error
}

type unreadableNode struct {
	pathcheck.Node
	tree unreadable
}

func (u unreadable) Root() (pathcheck.Node, error) {
	n, err := u.Tree.Root()
	return unreadableNode{n, u}, err
}

func (n unreadableNode) Open(name string) (pathcheck.Node, error) {
	if name == n.tree.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: n.tree.err}
	}
	next, err := n.Node.Open(name)
	return unreadableNode{next, n.tree}, err
}

// What of the next launch is at stake is not known where it cannot be looked up.
func TestStakesUnanswered(t *testing.T) {
	dir := errnotest.RealDir(t)
	errnotest.Must(t, os.Mkdir(dir+"/ws", 0o755))
	errnotest.Must(t, os.WriteFile(dir+"/ws/policy", nil, 0o644))
	p, pl := workspaceOf(t, dir+"/ws")
	in := &Input{Policy: p, Source: load.Source{File: dir + "/ws/policy"}, Program: target.Program{Path: "/"}}
	look := func(tree pathcheck.Tree) error {
		_, err := in.protect(pl, nil, tree)
		return err
	}
	var refused *rules.Error
	for _, errno := range append(errnotest.Silent, unix.ELOOP) {
		if err := look(unreadable{pathcheck.OS{}, "policy", errno}); errors.As(err, &refused) || !errors.Is(err, errno) {
			t.Errorf("%v: %v", errno, err)
		}
	}
	if err := look(unreadable{pathcheck.OS{}, "policy", unix.ENOENT}); err != nil {
		t.Errorf("absent: %v", err)
	}
	// It is there, and in the workspace.
	if err := look(pathcheck.OS{}); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
}

func TestCouldWriteUnanswered(t *testing.T) {
	path := errnotest.RealDir(t) + "/f"
	errnotest.Must(t, os.WriteFile(path, nil, 0o644))
	loc := &pathcheck.Location{Path: path, Info: pathcheck.Info{UID: uint32(os.Geteuid() + 1)}}
	ask := func() (bool, error) {
		var g guard
		return g.couldWrite(loc), g.err
	}
	if ok, err := ask(); !ok || err != nil {
		t.Errorf("writable: %v, %v", ok, err)
	}
	for _, errno := range []unix.Errno{unix.EACCES, unix.EROFS} {
		errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_FACCESSAT2}, errno, func() {
			if ok, err := ask(); ok || err != nil {
				t.Errorf("%v: %v, %v", errno, ok, err)
			}
		})
	}
	for _, errno := range errnotest.Silent {
		errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_FACCESSAT2}, errno, func() {
			if _, err := ask(); !errors.Is(err, errno) {
				t.Errorf("%v: %v", errno, err)
			}
		})
	}
	// What was there a moment ago is no place that cannot be written.
	loc.Path += "-gone"
	if _, err := ask(); !errors.Is(err, pathcheck.ErrChanged) {
		t.Errorf("gone: %v", err)
	}
	// Nor is one whose path is too long to ask about.
	loc.Path = "/" + strings.Repeat("d/", unix.PathMax/2)
	if _, err := ask(); !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("too long: %v", err)
	}
}

func TestReplaceableUnanswered(t *testing.T) {
	dir := errnotest.RealDir(t)
	errnotest.Must(t, os.Mkdir(dir+"/ws", 0o755))
	errnotest.Must(t, os.WriteFile(dir+"/ws/f", nil, 0o644))
	p, pl := workspaceOf(t, dir+"/ws")
	ask := func(path string) (string, error) {
		g := guard{Input: &Input{Policy: p}, pl: pl, tree: pathcheck.OS{}}
		return g.replaceable(path), g.err
	}
	if root, err := ask(dir + "/ws/f"); root == "" || err != nil {
		t.Errorf("%q, %v", root, err)
	}
	if root, err := ask(dir + "/else"); root != "" || !errors.Is(err, pathcheck.ErrChanged) {
		t.Errorf("gone: %q, %v", root, err)
	}
	for _, errno := range errnotest.Silent {
		errnotest.Answering(t, errnotest.Fstatat, errno, func() {
			if root, err := ask(dir + "/ws/f"); root != "" || !errors.Is(err, errno) {
				t.Errorf("%v: %q, %v", errno, root, err)
			}
		})
	}
}
