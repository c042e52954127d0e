package workspace_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// home returns paths in HOME.
func (p *place) in(names ...string) []string {
	var out []string
	for _, n := range names {
		out = append(out, filepath.Join(p.home, n))
	}
	return out
}

func TestCase56_CachesOfAnEmptyHomeAreMade(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		got := p.listed(t, nil)
		want := append([]string{p.ws, p.tmp}, p.in(".cache", "go/pkg")...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("listed (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff([]string{".cache", "go", "go/pkg"}, tree(t, p.home)); diff != "" {
			t.Errorf("made in HOME (-want +got)\n%s", diff)
		}
		for _, dir := range p.in(".cache", "go", "go/pkg") {
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("%s: %v, %v", dir, info, err)
			}
		}
		p.want(t, p.policy(nil), map[try]string{
			{Op: "create", Path: filepath.Join(p.home, ".cache/x")}: ok,
			{Op: "create", Path: filepath.Join(p.home, "go/pkg/x")}: ok,
			{Op: "create", Path: filepath.Join(p.home, "go/x")}:     "EACCES",
			{Op: "mkdir", Path: filepath.Join(p.home, ".npm")}:      "EACCES",
			{Op: "mkdir", Path: filepath.Join(p.home, ".cache")}:    "EEXIST",
		})
		p.run(t, p.policy(nil), "f=/dev/shm/shim-test-$$ && echo x > $f && rm $f")
		// With the directories there, the second launch lists the same.
		if diff := cmp.Diff(want, p.listed(t, nil)); diff != "" {
			t.Errorf("second launch (-want +got)\n%s", diff)
		}
	})
}

// Each row is a launch with an environment and a HOME of its own. In the
// values and in want, "~" stands for HOME, "T" for TMPDIR and "W" for the
// workspace.
func TestToolchainDirectoriesAreWritable(t *testing.T) {
	type row struct {
		name   string
		have   []string // directories that are there
		set    map[string]string
		unset  []string
		change m
		want   []string
		made   []string // in HOME, beyond have
	}
	caches := []string{".cache", "go", "go/pkg"}
	rows := []row{
		{
			name: "Case57 GOMODCACHE", set: map[string]string{"GOMODCACHE": "~/mods/new"},
			want: []string{"W", "T", "~/.cache", "~/mods/new"}, made: []string{".cache", "mods", "mods/new"},
		},
		{
			name: "Case58 GOCACHE there", have: []string{"build"}, set: map[string]string{"GOCACHE": "~/build"},
			want: []string{"W", "T", "~/.cache", "~/build", "~/go/pkg"}, made: caches,
		},
		{
			name: "Case58 GOCACHE missing", set: map[string]string{"GOCACHE": "~/build"},
			want: []string{"W", "T", "~/.cache", "~/go/pkg"}, made: caches,
		},
		{
			name: "Case60 GOCACHE is TMPDIR", set: map[string]string{"GOCACHE": "T"},
			want: []string{"W", "T", "~/.cache", "~/go/pkg"}, made: caches,
		},
		{
			name: "nothing is merged", have: []string{".cache/go-build"}, set: map[string]string{"GOCACHE": "~/.cache/go-build"},
			want: []string{"W", "T", "~/.cache", "~/.cache/go-build", "~/go/pkg"}, made: []string{"go", "go/pkg"},
		},
		{
			name: "all", have: []string{"xdg", ".npm", ".cargo/registry", ".cargo/git", ".cargo/bin", "gotmp", "build"},
			set:  map[string]string{"XDG_CACHE_HOME": "~/xdg", "GOCACHE": "~/build", "GOTMPDIR": "~/gotmp"},
			want: []string{"W", "T", "~/xdg", "~/.cache", "~/build", "~/go/pkg", "~/.npm", "~/.cargo/registry", "~/.cargo/git", "~/gotmp"},
			made: caches,
		},
		{
			name: "XDG_CACHE_HOME missing", set: map[string]string{"XDG_CACHE_HOME": "~/xdg"},
			want: []string{"W", "T", "~/.cache", "~/go/pkg"}, made: caches,
		},
		{
			name: "GOPATH list", have: []string{"b/pkg"}, set: map[string]string{"GOPATH": "~/a:~/b"},
			want: []string{"W", "T", "~/.cache", "~/a/pkg", "~/b/pkg"}, made: []string{".cache", "a", "a/pkg"},
		},
		{
			name: "relative", set: map[string]string{"GOMODCACHE": "mods", "GOCACHE": "build"},
			want: []string{"W", "T", "~/.cache"}, made: []string{".cache"},
		},
		{
			name: "blank", set: map[string]string{"GOMODCACHE": " ", "GOCACHE": "", "XDG_CACHE_HOME": ""},
			want: []string{"W", "T", "~/.cache", "~/go/pkg"}, made: caches,
		},
		{
			name: "no HOME", unset: []string{"HOME"}, want: []string{"W", "T"},
		},
		{
			name: "no HOME, GOPATH", unset: []string{"HOME"}, set: map[string]string{"GOPATH": "~/gp"},
			want: []string{"W", "T", "~/gp/pkg"}, made: []string{"gp", "gp/pkg"},
		},
		{
			name: "none", change: m{"toolchainDirs": false}, want: []string{"W"},
		},
		{
			name: "owned", change: m{"toolchainDirs": m{"owned": "~/mine"}},
			want: []string{"W", "~/mine"}, made: []string{"mine", "mine/tmp"},
		},
	}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				p := newPlace(t, u)
				full := func(s string) string {
					s = strings.ReplaceAll(s, "~", p.home)
					switch s {
					case "T":
						return p.tmp
					case "W":
						return p.ws
					}
					return s
				}
				var before []string
				for _, dir := range row.have {
					mkdirAll(t, u, p.home, dir)
				}
				before = tree(t, p.home)
				for name, value := range row.set {
					p.set[name] = full(value)
				}
				p.unset = row.unset
				if owned, ok := row.change["toolchainDirs"].(m); ok {
					row.change = m{"toolchainDirs": m{"owned": full(owned["owned"].(string))}}
				}
				var want []string
				for _, s := range row.want {
					want = append(want, full(s))
				}
				if diff := cmp.Diff(want, p.listed(t, row.change)); diff != "" {
					t.Errorf("listed (-want +got)\n%s", diff)
				}
				wantTree := append(before, row.made...)
				slices.Sort(wantTree)
				got := tree(t, p.home)
				slices.Sort(got)
				if diff := cmp.Diff(wantTree, got); diff != "" {
					t.Errorf("HOME (-want +got)\n%s", diff)
				}
				rows := map[try]string{{Op: "create", Path: filepath.Join(p.home, "x")}: "EACCES"}
				for _, dir := range want {
					rows[try{Op: "create", Path: filepath.Join(dir, "new")}] = ok
				}
				if slices.Contains(row.unset, "HOME") {
					delete(rows, try{Op: "create", Path: filepath.Join(p.home, ".cache", "new")})
				}
				p.want(t, p.policy(row.change), rows)
			})
		}
	})
}

func mkdirAll(t *testing.T, u launch.User, top, dir string) {
	t.Helper()
	path := top
	for _, name := range strings.Split(dir, "/") {
		path = filepath.Join(path, name)
		if _, err := os.Stat(path); err != nil {
			u.Mkdir(t, path, 0o755)
		}
	}
}

func TestCase59_TempBySymlinkIsWritable(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		link := filepath.Join(p.dir, "link")
		if err := os.Symlink(p.tmp, link); err != nil {
			t.Fatal(err)
		}
		p.set["TMPDIR"] = link
		got := p.listed(t, nil)
		if !slices.Contains(got, p.tmp) || slices.Contains(got, link) {
			t.Errorf("listed %q", got)
		}
		p.want(t, p.policy(nil), map[try]string{
			{Op: "create", Path: filepath.Join(link, "by-link")}:          ok,
			{Op: "create", Path: filepath.Join(p.tmp, "by-name")}:         ok,
			{Op: "create", Path: filepath.Join(p.dir, "beside-the-link")}: "EACCES",
		})
	})
}

func TestCase62_EnvironmentOfEachLaunchCounts(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		one := u.Mkdir(t, filepath.Join(p.dir, "one"), 0o755)
		two := u.Mkdir(t, filepath.Join(p.dir, "two"), 0o755)
		for _, now := range []struct{ in, out string }{{one, two}, {two, one}} {
			p.set["GOCACHE"] = now.in
			got := p.listed(t, nil)
			if !slices.Contains(got, now.in) || slices.Contains(got, now.out) {
				t.Errorf("GOCACHE=%s: %q", now.in, got)
			}
			p.want(t, p.policy(nil), map[try]string{
				{Op: "create-or", Path: filepath.Join(now.in, "x")}:  ok,
				{Op: "create-or", Path: filepath.Join(now.out, "y")}: "EACCES",
			})
		}
	})
}

func TestCase63_SymlinksLeadNoWriteOut(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		evil := u.Mkdir(t, p.ws+"-evil", 0o755)
		link := filepath.Join(p.dir, "link")
		symlink(t, p.ws, link)
		byLink := p.policy(m{"workspace": link})
		if got := p.listed(t, m{"workspace": link}); got[0] != p.ws {
			t.Errorf("listed %q", got)
		}
		symlink(t, "/etc", filepath.Join(p.ws, "etc"))
		symlink(t, p.outside, filepath.Join(p.ws, "out"))
		symlink(t, filepath.Join(p.outside, "file"), filepath.Join(p.ws, "file"))
		symlink(t, filepath.Join(p.outside, "new"), filepath.Join(p.ws, "new"))
		p.want(t, byLink, map[try]string{
			{Op: "create", Path: filepath.Join(link, "by-link")}:      ok,
			{Op: "create", Path: filepath.Join(p.ws, "by-name")}:      ok,
			{Op: "create", Path: filepath.Join(evil, "x")}:            "EACCES",
			{Op: "create", Path: filepath.Join(p.ws, "etc/shim-x")}:   "EACCES",
			{Op: "create", Path: filepath.Join(p.ws, "out/x")}:        "EACCES",
			{Op: "write", Path: filepath.Join(p.ws, "file")}:          "EACCES",
			{Op: "create-or", Path: filepath.Join(p.ws, "new")}:       "EACCES",
			{Op: "create", Path: filepath.Join(p.ws, "../ws-evil/x")}: "EACCES",
		})

		// A workspace by a symlink that a program could have made: in a
		// writable root, or in the temp directory.
		for _, at := range []string{filepath.Join(p.tmp, "ws"), filepath.Join(evil, "ws")} {
			symlink(t, p.outside, at)
			r := p.shell(t, p.policy(m{"workspace": at, "writable": []string{evil}}), "echo started")
			if r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, "goes through the symlink") {
				t.Errorf("%s: %v, want 125", at, r)
			}
		}
		// The same link is taken where nothing is writable around it.
		if r := p.shell(t, p.policy(m{"workspace": filepath.Join(evil, "ws")}), "echo started"); r.Code != 0 {
			t.Error(r)
		}
	})
}

func symlink(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}
