package plan_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// A confined program of an earlier launch exchanges directories of the workspace
// with links while the next launch is planned, at any two moments. What it
// aims at becomes no root.
func TestLinksExchangedMeanwhile(t *testing.T) {
	const text = `
		/ws/gp/pkg/mod/
		/ws/gp/out -> /home/u/.ssh
		/ws/top -> /
		/ws/in -> /ws/gp
		/home/u/.ssh/id
		/pkg/
		/dev/null char 1:3
	`
	exchanges := [][2]string{{"/ws/gp/pkg", "/ws/gp/out"}, {"/ws/gp", "/ws/top"}, {"/ws/gp", "/ws/in"}}
	for _, named := range []bool{false, true} {
		forEachTree(t, fmt.Sprintf("named=%v", named), func(t *testing.T, through through) {
			p := policy("")
			p.Scope, p.Workspace, p.Toolchain.Mode = rules.ScopeWorkspace, "/ws", rules.ToolchainUsual
			env := []string{"HOME=/home/u"}
			if named {
				p.Writable = []rules.Entry{{Path: "/ws/gp/pkg", Key: "writable[0]"}}
			} else {
				env = append(env, "GOMODCACHE=/ws/gp/pkg")
			}
			plans := 0
			for _, first := range exchanges {
				for _, second := range exchanges {
					if first[0] == "/ws/gp" && second[0] != first[0] {
						continue // that is not where it was
					}
					for from := 0; from < 24; from++ {
						for to := from; to < 24; to++ {
							x := pathtest.New(text)
							ssh := x.Info("/home/u/.ssh").ID
							calls := 0
							x.BeforeOpen = func(string) {
								if calls == from {
									x.Exchange(first[0], first[1])
								}
								if calls == to && to != from {
									x.Exchange(second[0], second[1])
								}
								calls++
							}
							tree, release := through(x)
							l := plan.Launch{EUID: 1000, Homes: []string{"/home/u"}, Env: env, Mounts: x.Mounts()}
							pl, err := plan.Make(p, l, tree)
							release()
							if err != nil {
								continue
							}
							plans++
							for _, r := range pl.Roots {
								if r.Info.ID == ssh || strings.HasPrefix(r.Path, "/home/u/.ssh") {
									t.Fatalf("%v at %d, %v at %d: %s is writable", first, from, second, to, r.Path)
								}
							}
						}
					}
				}
			}
			if plans < 100 {
				t.Errorf("only %d plans were made", plans)
			}
		})
	}
}

// What one mode of toolchainDirs leaves writable decides no root of the other.
func TestLinksOfOtherModes(t *testing.T) {
	for _, row := range []struct {
		mode rules.ToolchainMode
		tree string
		env  string
		root string // that must not be one
		free bool   // or may, for control
	}{
		{rules.ToolchainLeaves, "/home/u/.cache/go-build -> ../.ssh", "", "/home/u/.ssh", false},
		{rules.ToolchainLeaves, "/home/u/.npm -> .ssh", "", "/home/u/.ssh", true}, // a link in HOME, which is the user's
		{rules.ToolchainLeaves, "/home/u/.cache/go-build -> /data/build\n/data/build/", "", "/data/build", false},
		{rules.ToolchainUsual, "/home/u/.npm/\n/home/u/.npm/x -> ../.ssh", "GOCACHE=/home/u/.npm/x", "/home/u/.ssh", false},
		{rules.ToolchainUsual, "/home/u/.local/share/pnpm/store/x -> /home/u/.ssh", "GOCACHE=/home/u/.local/share/pnpm/store/x", "/home/u/.ssh", false},
		{rules.ToolchainUsual, "/home/u/link -> /data/build\n/data/build/", "GOCACHE=/home/u/link", "/data/build", true},
	} {
		x := pathtest.New("/ws/\n/home/u/.cache/\n/home/u/.ssh/id\n/dev/null char 1:3\n" + row.tree)
		p := policy("")
		p.Scope, p.Workspace, p.Toolchain.Mode = rules.ScopeWorkspace, "/ws", row.mode
		pl, err := plan.Make(p, plan.Launch{
			EUID: 1000, Homes: []string{"/home/u"}, Env: []string{"HOME=/home/u", row.env}, Mounts: x.Mounts(),
		}, x)
		if err != nil {
			t.Fatalf("%+v: %v", row, err)
		}
		is := slices.ContainsFunc(pl.Roots, func(r plan.Root) bool { return r.Path == row.root })
		if is != row.free {
			t.Errorf("%+v: %s is a root: %v", row, row.root, is)
		}
		if warned := strings.Contains(strings.Join(pl.Warnings, "\n"), "goes through the symlink"); warned == row.free {
			t.Errorf("%+v: warnings %q", row, pl.Warnings)
		}
	}
}

// A bind mount of a part of the workspace is the workspace: a link there is the
// program's, and so is a file.
func TestRootsByBindMounts(t *testing.T) {
	const text = "/ws/sub/tmp -> /home/u/.ssh\n/home/u/.ssh/id\n/alias bind /ws/sub\n/etc/policy/p.json\n/ws/pol bind /etc/policy\n/dev/null char 1:3"
	x := pathtest.New(text)
	p := policy("")
	p.Scope, p.Workspace, p.Toolchain.Mode = rules.ScopeWorkspace, "/ws", rules.ToolchainUsual
	l := plan.Launch{EUID: 1000, Homes: []string{"/home/u"}, Env: []string{"HOME=/home/u", "TMPDIR=/alias/tmp"}, Mounts: x.Mounts()}
	pl, err := plan.Make(p, l, x)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range pl.Roots {
		if strings.HasPrefix(r.Path, "/home/u/.ssh") {
			t.Errorf("%s is writable", r.Path)
		}
	}
	for path, want := range map[string]bool{"/etc/policy/p.json": true, "/ws/pol/p.json": true, "/alias": true, "/home/u/.ssh/id": false, "/etc": false} {
		loc, err := pathcheck.Resolve(x, path)
		if err != nil {
			t.Fatal(err)
		}
		if root, got := pl.WritableRoot(loc); got != want {
			t.Errorf("%s: writable %v (%q), want %v", path, got, root, want)
		}
	}
	if _, err := plan.Make(&rules.Policy{
		Version: 1, Scope: rules.ScopeWorkspace, Workspace: "/ws", Writable: []rules.Entry{{Path: "/alias/tmp", Key: "writable[0]"}},
		Toolchain: rules.ToolchainDirs{Mode: rules.ToolchainNone},
	}, l, x); err == nil || !errors.As(err, new(*rules.Error)) || !strings.Contains(err.Error(), "goes through the symlink") {
		t.Errorf("named: %v", err)
	}
}
