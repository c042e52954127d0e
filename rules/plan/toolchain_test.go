package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// TestToolchainDirs: which directories are listed, in which order, which are to
// be made, and what is said of the rest. "0755 /a" is one to be made.
func TestToolchainDirs(t *testing.T) {
	const full = "/home/u/.cache/ /home/u/go/pkg/ /home/u/.npm/ /home/u/.cargo/registry/ /home/u/.cargo/git/ /t/ /gc/ /gm/ /gp1/ /gp2/pkg/ /xdg/ /gotmp/"
	tests := []struct {
		name, tree, env string
		want, missing   string
		warning         string // part of the only one
	}{
		{name: "used home", tree: full, want: "/tmp /home/u/.cache /home/u/go/pkg /home/u/.npm /home/u/.cargo/registry /home/u/.cargo/git"},
		{name: "empty home", want: "/tmp", missing: "0755 /home/u/.cache 0755 /home/u/go/pkg"},
		{name: "no home", env: "HOME=", want: "/tmp"},
		{name: "blank home", env: "HOME=\t", want: "/tmp"},
		{name: "relative home", env: "HOME=u", want: "/tmp"},
		{name: "home with a slash", tree: full, env: "HOME=/home/u/", want: "/tmp /home/u/.cache /home/u/go/pkg /home/u/.npm /home/u/.cargo/registry /home/u/.cargo/git"},
		{
			name: "all set", tree: full, env: "TMPDIR=/t GOCACHE=/gc GOMODCACHE=/gm GOPATH=/gp1 XDG_CACHE_HOME=/xdg GOTMPDIR=/gotmp",
			want: "/t /xdg /home/u/.cache /gc /gm /home/u/.npm /home/u/.cargo/registry /home/u/.cargo/git /gotmp",
		},
		{
			name: "all set, nothing there", env: "TMPDIR=/t GOCACHE=/gc GOMODCACHE=/gm XDG_CACHE_HOME=/xdg GOTMPDIR=/gotmp",
			missing: "0755 /home/u/.cache 0755 /gm",
		},
		{name: "module cache is new", tree: "/home/u/.cache/", env: "GOMODCACHE=/new/deep", want: "/tmp /home/u/.cache", missing: "0755 /new/deep"},
		{name: "GOPATH is a list", tree: full, env: "GOPATH=/gp1:/gp2:/gp3", want: "/tmp /home/u/.cache /gp2/pkg /home/u/.npm /home/u/.cargo/registry /home/u/.cargo/git", missing: "0755 /gp1/pkg"},
		{name: "GOPATH with a relative part", tree: "/gp2/pkg/\n/home/u/.cache/", env: "GOPATH=gp1:/gp2", want: "/tmp /home/u/.cache /gp2/pkg", warning: "GOPATH holds a relative path"},
		{name: "GOPATH relative", tree: "/home/u/.cache/\n/home/u/go/pkg/", env: "GOPATH=gp", want: "/tmp /home/u/.cache", warning: "GOPATH holds a relative path"},
		{name: "GOPATH with empty parts", tree: "/gp2/pkg/\n/home/u/.cache/", env: "GOPATH=::/gp2:", want: "/tmp /home/u/.cache /gp2/pkg"},
		{name: "relative", tree: "/home/u/.cache/\n/home/u/go/pkg/", env: "TMPDIR=tmp", want: "/home/u/.cache /home/u/go/pkg", warning: "TMPDIR holds a relative path"},
		{name: "blank", tree: full, env: "TMPDIR= GOCACHE= GOMODCACHE= XDG_CACHE_HOME=", want: "/tmp /home/u/.cache /home/u/go/pkg /home/u/.npm /home/u/.cargo/registry /home/u/.cargo/git"},
		{name: "twice", tree: full, env: "GOCACHE=/t TMPDIR=/t/ XDG_CACHE_HOME=/home/u/.cache GOTMPDIR=/t/.", want: "/t /home/u/.cache /home/u/go/pkg /home/u/.npm /home/u/.cargo/registry /home/u/.cargo/git"},
		{name: "nested ones are not merged", tree: "/home/u/.cache/go-build/\n/home/u/go/pkg/", env: "GOCACHE=/home/u/.cache/go-build", want: "/tmp /home/u/.cache /home/u/.cache/go-build /home/u/go/pkg"},
		{name: "files", tree: "/home/u/.cache\n/home/u/go/pkg\n/home/u/.npm\n/gc\n/t", env: "TMPDIR=/t GOCACHE=/gc"},
		{name: "through a link", tree: "/l -> t\n/t/\n/home/u/.cache/\n/home/u/go/pkg/", env: "TMPDIR=/l", want: "/t /home/u/.cache /home/u/go/pkg"},
		{name: "cache is a link", tree: "/home/u/.cache -> /t\n/t/\n/home/u/go/pkg/", want: "/tmp /t /home/u/go/pkg"},
		{name: "a dangling link is not made", tree: "/home/u/.cache -> /t\n/home/u/go -> /gone\n", want: "/tmp"},
		{name: "made through a link above", tree: "/l -> t\n/t/\n/home/u/.cache/", env: "GOMODCACHE=/l/new", want: "/tmp /home/u/.cache", missing: "0755 /t/new"},
		{name: "made nowhere", tree: "/home/u/.cache/\n/file", env: "GOMODCACHE=/file/new", want: "/tmp /home/u/.cache"},
		{name: "made in what may not be searched", tree: "/home/u/.cache/\n/closed/ nosearch", env: "GOMODCACHE=/closed/new", want: "/tmp /home/u/.cache"},

		{name: "TMPDIR is the root", tree: "/home/u/.cache/\n/home/u/go/pkg/", env: "TMPDIR=/", want: "/home/u/.cache /home/u/go/pkg", warning: `TMPDIR "/" stays read-only: it is /`},
		{name: "TMPDIR is home", tree: "/home/u/.cache/\n/home/u/go/pkg/", env: "TMPDIR=/home/u", want: "/home/u/.cache /home/u/go/pkg", warning: `TMPDIR "/home/u" stays read-only: it is the home directory`},
		{name: "GOCACHE is above home", tree: "/home/u/.cache/\n/home/u/go/pkg/", env: "GOCACHE=/home", want: "/tmp /home/u/.cache /home/u/go/pkg", warning: `GOCACHE "/home" stays read-only: it is above the home directory`},
		{name: "module cache is home", tree: "/home/u/.cache/", env: "GOMODCACHE=/home/u/", want: "/tmp /home/u/.cache", warning: `GOMODCACHE "/home/u/" stays read-only`},
		{name: "the default is above the shim", tree: "/home/u/.cache/\n/home/u/go/pkg/\n/tmp/s/tool", env: "SHIM=/tmp/s/tool", want: "/home/u/.cache /home/u/go/pkg", warning: `the default "/tmp" stays read-only: it is above the shim`},
		{name: "cache is a link to home", tree: "/home/u/.cache -> .\n/home/u/go/pkg/", want: "/tmp /home/u/go/pkg", warning: `the default "/home/u/.cache" stays read-only: it is the home directory`},
		{name: "link in the workspace", tree: "/home/u/.cache/\n/home/u/go/pkg/\n/srv/work/l -> /etc", env: "GOCACHE=/srv/work/l", want: "/tmp /home/u/.cache /home/u/go/pkg", warning: `GOCACHE "/srv/work/l" stays read-only: it goes through the symlink`},
		{name: "a cache became a link", tree: "/home/u/.cache/go -> /home/u/.ssh\n/home/u/go/pkg/", env: "GOCACHE=/home/u/.cache/go", want: "/tmp /home/u/.cache /home/u/go/pkg", warning: `GOCACHE "/home/u/.cache/go" stays read-only: it goes through the symlink`},
		{name: "nothing is made through a link in the workspace", tree: "/home/u/.cache/\n/srv/work/l -> /etc", env: "GOMODCACHE=/srv/work/l/new", want: "/tmp /home/u/.cache"},
		{name: "hidden", tree: full, env: "HIDE=/home/u/.cache", want: "/tmp /home/u/go/pkg /home/u/.npm /home/u/.cargo/registry /home/u/.cargo/git"},
		{name: "nothing is made in what is hidden", env: "HIDE=/home/u", want: "/tmp"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := pathtest.New(base + strings.ReplaceAll(tt.tree, "/ /", "/\n/"))
			s := scoped(tree, "")
			s.p.Toolchain.Mode = rules.ToolchainUsual
			s.l.Env = []string{"HOME=/home/u"}
			for f := range strings.SplitSeq(tt.env, " ") {
				name, value, _ := strings.Cut(f, "=")
				switch name {
				case "HIDE":
					s.p.Hidden = []rules.Entry{{Path: value, Key: "hidden[0]"}}
				case "SHIM":
					s.l.Shims = []string{value}
				case "":
				default:
					s.l.Env = append([]string{f}, s.l.Env...)
				}
			}
			var missing []string
			for _, m := range plan.Missing(s.p, s.l, tree) {
				missing = append(missing, fmt.Sprintf("%#o %s", m.Mode, m.Path))
				if joined := strings.TrimSuffix(m.Above.Path, "/") + "/" + strings.Join(m.Names, "/"); joined != m.Path {
					t.Errorf("%q is to be made as %q", m.Path, joined)
				}
			}
			if got := strings.Join(missing, " "); got != tt.missing {
				t.Errorf("missing: got %q, want %q", got, tt.missing)
			}
			pl, err := plan.Make(s.p, s.l, tree)
			if err != nil {
				t.Fatal(err)
			}
			checkOpen(t, tree)
			want := strings.Fields("/srv/work " + tt.want)
			if diff := cmp.Diff(want, pl.WritableDirs()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			warning := strings.Join(pl.Warnings, "; ")
			if !strings.Contains(warning, tt.warning) || (tt.warning == "") != (warning == "") || len(pl.Warnings) > 1 {
				t.Errorf("warning: got %q, want %q", warning, tt.warning)
			}
		})
	}
}

// TestToolchainNone: without toolchain directories nothing is made or listed.
func TestToolchainNone(t *testing.T) {
	tree := pathtest.New(base)
	s := scoped(tree, "")
	if m := plan.Missing(s.p, s.l, tree); m != nil {
		t.Errorf("missing: %v", m)
	}
	pl, err := plan.Make(s.p, s.l, tree)
	if err != nil || roots(pl) != "/srv/work" {
		t.Errorf("%v, %v", err, roots(pl))
	}
	s.p.Scope = rules.ScopeLocal
	s.p.Toolchain.Mode = rules.ToolchainUsual
	if m := plan.Missing(s.p, s.l, tree); m != nil {
		t.Errorf("missing in scope local: %v", m)
	}
}

func TestToolchainOwned(t *testing.T) {
	tree := pathtest.New(base + devices)
	s := scoped(tree, "")
	s.p.Toolchain = rules.ToolchainDirs{Mode: rules.ToolchainOwned, Owned: "/c/own"}
	var missing []string
	for _, m := range plan.Missing(s.p, s.l, tree) {
		missing = append(missing, fmt.Sprintf("%#o %s", m.Mode, m.Path))
	}
	if diff := cmp.Diff([]string{"0700 /c/own", "0700 /c/own/tmp"}, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	if _, err := plan.Make(s.p, s.l, tree); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("without the root: %v", err)
	}
	tree.Add("/c/own/tmp/")
	pl, err := plan.Make(s.p, s.l, tree)
	if err != nil {
		t.Fatal(err)
	}
	const want = "/srv/work /c/own (/dev/null) (/dev/zero) (/dev/full) (/dev/tty) (/dev/ptmx) (/dev/pts) (/dev/shm)"
	if diff := cmp.Diff(want, roots(pl)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for owned, want := range map[string]string{"/home": "is above the home directory", "/srv/work/l": "goes through the symlink"} {
		tree := pathtest.New(base + "/srv/work/l -> /etc")
		s := scoped(tree, "")
		s.p.Toolchain = rules.ToolchainDirs{Mode: rules.ToolchainOwned, Owned: owned}
		if m := plan.Missing(s.p, s.l, tree); len(m) > 1 {
			t.Errorf("%s: missing: %v", owned, m)
		}
		if _, err := plan.Make(s.p, s.l, tree); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", owned, err)
		}
	}
}

// TestRelativeLeaves: PLAYWRIGHT_BROWSERS_PATH=0 is the tool's own way to say
// "in the project".
func TestRelativeLeaves(t *testing.T) {
	tree := pathtest.New(base + "/home/u/.cache/ms-playwright/")
	s := scoped(tree, "")
	s.p.Toolchain.Mode = rules.ToolchainLeaves
	s.l.Env = append(s.l.Env, "PLAYWRIGHT_BROWSERS_PATH=0")
	pl, err := plan.Make(s.p, s.l, tree)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/srv/work", "/tmp"}, pl.WritableDirs()); diff != "" || pl.Warnings != nil {
		t.Errorf("warnings %v (-want +got):\n%s", pl.Warnings, diff)
	}
}
