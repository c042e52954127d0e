package evalhide_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/evalhide"
)

// layout makes files under a new directory and returns it, symlinks resolved. A
// name that ends in "/" is a directory, a text that begins with "-> " a symlink.
func layout(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		p := filepath.Join(root, name)
		dir := filepath.Dir(p)
		if strings.HasSuffix(name, "/") {
			dir = p
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		text = strings.ReplaceAll(text, "$ROOT", root)
		target, link := strings.CutPrefix(text, "-> ")
		switch {
		case dir == p:
		case link:
			err = os.Symlink(target, p)
		default:
			err = os.WriteFile(p, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestGitStore(t *testing.T) {
	for _, row := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"plain", map[string]string{"repo/.git/HEAD": "ref"}, []string{"repo/.git"}},
		{"none", map[string]string{"repo/": ""}, []string{"repo/.git"}},
		{"objects are a link", map[string]string{"main/objects/": "", "repo/.git/objects": "-> ../../main/objects"}, []string{"repo/.git", "main/objects"}},
		{"objects are a link to nothing yet", map[string]string{"repo/.git/objects": "-> /nowhere/objects"}, []string{"repo/.git", "//nowhere/objects"}},
		{"packs are a link", map[string]string{"main/pack/": "", "repo/.git/objects/pack": "-> $ROOT/main/pack", "repo/.git/objects/ab/x": ""}, []string{"repo/.git", "main/pack"}},
		{
			"a link in what is borrowed from",
			map[string]string{"far/objects/": "", "near/objects": "-> ../far/objects", "repo/.git/objects/info/alternates": "$ROOT/near/objects\n"},
			[]string{"repo/.git", "near/objects", "far/objects"},
		},
		{
			"quoted alternates",
			map[string]string{"repo/.git/objects/info/alternates": `"$ROOT/a\042b\tc"` + "\n# no\n" + `"/with` + "\n" + `newline"` + "\n" + `"/broken` + "\n"},
			[]string{"repo/.git", "a\"b\tc", "//with\nnewline", "repo/.git/objects/\"/broken"},
		},
		{
			"linked",
			map[string]string{"repo/.git": "gitdir: $ROOT/main/.git/worktrees/w\n", "main/.git/worktrees/w/commondir": "../..\n"},
			[]string{"repo/.git", "main/.git/worktrees/w", "main/.git"},
		},
		{
			"linked, relative pointer",
			map[string]string{"repo/.git": "gitdir: ../main/.git/worktrees/w", "main/.git/worktrees/w/commondir": "$ROOT/main/.git"},
			[]string{"repo/.git", "main/.git/worktrees/w", "main/.git"},
		},
		{
			"linked, store is gone",
			map[string]string{"repo/.git": "gitdir: ../main/.git/worktrees/w\n"},
			[]string{"repo/.git", "main/.git/worktrees/w"},
		},
		{
			"submodule",
			map[string]string{"repo/.git": "gitdir: ../.git/modules/repo\r\n", ".git/modules/repo/HEAD": "ref"},
			[]string{"repo/.git", ".git/modules/repo"},
		},
		{"no space", map[string]string{"repo/.git": "gitdir:/store\n"}, []string{"repo/.git", "//store"}},
		{"name with spaces", map[string]string{"repo/.git": "gitdir: /a b /c \n"}, []string{"repo/.git", "//a b /c "}},
		{"no pointer", map[string]string{"repo/.git": "something else\n"}, []string{"repo/.git"}},
		{"blank pointer", map[string]string{"repo/.git": "gitdir: \n"}, []string{"repo/.git"}},
		{"empty", map[string]string{"repo/.git": ""}, []string{"repo/.git"}},
		{
			"pointer behind a symlink",
			map[string]string{"repo/.git": "gitdir: link/../store\n", "repo/link": "-> ../far/away", "far/away/": "", "far/store/": "", "repo/store/": ""},
			[]string{"repo/.git", "far/store"},
		},
		{
			"borrowed objects",
			map[string]string{
				"repo/.git/objects/info/alternates": "# comment\n$ROOT/a/objects\n../../../b/objects\n\n",
				"a/objects/info/alternates":         "../../c/objects\n$ROOT/a/objects\n",
				"c/objects/":                        "", "b/objects/": "",
			},
			[]string{"repo/.git", "a/objects", "b/objects", "c/objects"},
		},
		{
			"borrowed objects of a linked work tree",
			map[string]string{
				"repo/.git":                       "gitdir: $ROOT/main/.git/worktrees/w\n",
				"main/.git/worktrees/w/commondir": "../..\n", "main/.git/objects/info/alternates": "$ROOT/a\n",
			},
			[]string{"repo/.git", "main/.git/worktrees/w", "main/.git", "a"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			root := layout(t, row.files)
			got, err := evalhide.GitStore(root + "/repo")
			if err != nil {
				t.Fatal(err)
			}
			want := make([]string, len(row.want))
			for i, w := range row.want {
				want[i] = strings.TrimPrefix(w, "/")
				if !strings.HasPrefix(w, "/") {
					want[i] = filepath.Join(root, w)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// What is no small regular file is not read, and does not block.
func TestGitStoreOddFiles(t *testing.T) {
	root := layout(t, map[string]string{"repo/": "", "big/.git": "gitdir: /x\n" + strings.Repeat("#", 100<<10)})
	if err := syscall.Mkfifo(root+"/repo/.git", 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := evalhide.GitStore(root + "/repo")
	if want := []string{root + "/repo/.git"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if got, err := evalhide.GitStore(root + "/big"); err == nil {
		t.Errorf("a huge file was taken: %q", got)
	}
	if err := os.Symlink(".git", root+"/big/loop"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root+"/loop", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".git", root+"/loop/.git"); err != nil {
		t.Fatal(err)
	}
	if _, err := evalhide.GitStore(root + "/loop"); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop of symlinks: %v, want ELOOP", err)
	}
}

// TestGitStoreReal compares with what git itself says of the trees it made.
func TestGitStoreReal(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("git is not installed")
	}
	root := layout(t, map[string]string{"main/file": "text"})
	git := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{
			"-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "init.defaultBranch=main", "-c", "safe.directory=*",
		}, args...)...)
		cmd.Dir = root + "/" + dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+root, "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("main", "init", "-q")
	git("main", "add", ".")
	git("main", "commit", "-q", "-m", "one")
	git("main", "worktree", "add", "-q", "../linked")
	git("main", "worktree", "add", "-q", "../second")
	git("", "clone", "-q", "--shared", "main", "borrower")
	for _, dir := range []string{"main", "linked", "borrower"} {
		want := []string{
			root + "/" + dir + "/.git", git(dir, "rev-parse", "--absolute-git-dir"),
			git(dir, "rev-parse", "--path-format=absolute", "--git-common-dir"),
		}
		if dir == "borrower" {
			want = append(want, root+"/main/.git/objects")
		}
		got, err := evalhide.GitStore(root + "/" + dir)
		if want = slices.Compact(want); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", dir, got, err, want)
		}
	}
	for dir, want := range map[string][]string{
		"main": {root + "/linked", root + "/second"}, "linked": {root + "/main", root + "/second"}, "borrower": nil,
	} {
		got, err := evalhide.WorkTrees(root + "/" + dir)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("other work trees of %s: got %q, %v, want %q", dir, got, err, want)
		}
	}
}
