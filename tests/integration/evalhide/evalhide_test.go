package evalhide_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(m *testing.M) { launch.Main(m) }

// secret is what the hidden files hold, in every form.
const secret = "the answer is 42"

// A world is a repository with graders, and its linked work tree.
type world struct {
	u          launch.User
	dir        string
	env        []string
	repo, link string
	// blob and pack are the id of the grader's object and the file it is in.
	blob, pack string
}

// newWorld makes the repository with git itself, as the user.
func newWorld(t *testing.T, u launch.User) *world {
	t.Helper()
	launch.Need(t, launch.Landlock, launch.Program("git"))
	w := &world{u: u, dir: u.Dir(t)}
	w.repo, w.link = w.dir+"/repo", w.dir+"/link"
	w.env = []string{"PATH=/usr/bin:/bin", "HOME=" + w.dir, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_PAGER=cat"}
	u.Mkdir(t, w.dir+"/tmp", 0o755)
	u.Mkdir(t, w.repo, 0o755)
	u.Mkdir(t, w.repo+"/tests", 0o755)
	u.Write(t, w.repo+"/tests/x", secret+"\n", 0o644)
	u.Write(t, w.repo+"/code", "package code\n", 0o644)
	w.git(t, w.repo, "init", "-q", "-b", "main")
	w.git(t, w.repo, "config", "user.name", "n")
	w.git(t, w.repo, "config", "user.email", "e@example.com")
	w.git(t, w.repo, "add", ".")
	w.git(t, w.repo, "commit", "-q", "-m", "one")
	w.blob = w.git(t, w.repo, "rev-parse", "HEAD:tests/x")
	w.git(t, w.repo, "worktree", "add", "-q", w.link, "HEAD")
	w.git(t, w.repo, "repack", "-q", "-a", "-d")
	packs, err := filepath.Glob(w.repo + "/.git/objects/pack/*.pack")
	if err != nil || len(packs) != 1 {
		t.Fatalf("packs %q, %v", packs, err)
	}
	w.pack = packs[0]
	return w
}

// git runs git without the shim.
func (w *world) git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	r := launch.Cmd{Path: launch.Look(t, "git"), Args: append([]string{"git"}, args...), Env: w.env, Dir: dir, User: w.u}.Run(t)
	if r.Code != 0 {
		t.Fatalf("git %q: %v", args, r)
	}
	return strings.TrimSpace(r.Stdout)
}

// policy is what install-shim makes for a checkout.
func (w *world) policy(t *testing.T, repo string, more ...string) string {
	t.Helper()
	_, installer := launch.Binaries(t)
	args := append([]string{
		"install-shim", "policy", "eval-hide", "--required",
		"--repo", repo, "--temp", w.dir + "/attempts", "--private", w.dir + "/private",
	}, more...)
	r := launch.Cmd{Path: installer, Args: args, Env: w.env, User: w.u}.Run(t)
	if r.Code != 0 {
		t.Fatalf("install-shim: %v", r)
	}
	return strings.TrimSpace(r.Stdout)
}

// A way is a command that shows the secret where nothing is hidden.
type way struct{ name, command string }

func (w *world) ways() []way {
	return []way{
		{"the file", "cat tests/x"},
		{"git show HEAD", "git show HEAD:tests/x"},
		{"git show, by directory", "git show --stat -p HEAD -- tests"},
		{"git cat-file", "git cat-file blob " + w.blob},
		{"git cat-file --batch", "echo HEAD:tests/x | git cat-file --batch"},
		{"git log -p", "git log -p"},
		{"git archive", "git archive HEAD tests | tar -xO"},
		{"git grep", "git grep -h answer HEAD"},
		{"git checkout", "cd $(mktemp -d) && git --git-dir=$STORE --work-tree=. checkout -q HEAD -- tests && cat tests/x"},
		{"git clone", "d=$(mktemp -d) && git clone -q $REPO $d/c && cat $d/c/tests/x"},
		{"git clone, from the store", "d=$(mktemp -d) && git clone -q --no-local $STORE $d/c && cat $d/c/tests/x"},
		{"git worktree add", "d=$(mktemp -d) && git worktree add -q --detach $d/w && cat $d/w/tests/x; git worktree remove -f $d/w 2>/dev/null"},
		{"git worktree, with the store by hand", "d=$(mktemp -d) && git --git-dir=$STORE worktree add -q --detach $d/w && cat $d/w/tests/x; git --git-dir=$STORE worktree remove -f $d/w 2>/dev/null"},
		{"git bundle", "f=$(mktemp) && git bundle create -q $f HEAD && d=$(mktemp -d) && git clone -q $f $d/c && cat $d/c/tests/x"},
		{"GIT_DIR", "GIT_DIR=$STORE git show HEAD:tests/x"},
		{"GIT_OBJECT_DIRECTORY", "cd $(mktemp -d) && git init -q && GIT_OBJECT_DIRECTORY=$STORE/objects git cat-file blob " + w.blob},
		{"alternates", "cd $(mktemp -d) && git init -q && echo $STORE/objects >.git/objects/info/alternates && git cat-file blob " + w.blob},
		{"the pack", "cd $(mktemp -d) && git init -q && git unpack-objects -q <" + w.pack + " && git cat-file blob " + w.blob},
		{"the pack, copied", "cd $(mktemp -d) && git init -q && cp " + w.pack + " p && git index-pack --stdin <p >/dev/null && git cat-file blob " + w.blob},
		{"the index", "git ls-files -s tests | grep -q " + w.blob + " && echo '" + secret + "'"},
		{"a new link to the store", "cd $(mktemp -d) && ln -s $STORE .git && git show HEAD:tests/x"},
		{"a new pointer to the store", "cd $(mktemp -d) && echo gitdir: $STORE >.git && git show HEAD:tests/x"},
		{"the store by /proc", "git --git-dir=/proc/self/root$STORE show HEAD:tests/x"},
		{"the store by cwd", "cd $STORE && cat objects/pack/*.pack >/dev/null && echo '" + secret + "'"},
		{"the store by ..", "cd $REPO/.. && git --git-dir=repo/.git show HEAD:tests/x"},
	}
}

// try runs a command in dir through a shim in front of the shell.
func (w *world) try(t *testing.T, shell, dir, command string, policy any) launch.Result {
	t.Helper()
	c := launch.Shell(shell, command)
	c.Env = append(w.env[:len(w.env):len(w.env)], "REPO="+w.repo, "STORE="+w.repo+"/.git", "TMPDIR="+w.dir+"/tmp")
	c.Dir, c.User, c.Policy = dir, w.u, policy
	return c.Run(t)
}

// checkWays tries ways from dir, first with nothing of it hidden.
func (w *world) checkWays(t *testing.T, dir, policy string, ways []way) {
	t.Helper()
	shell := launch.Install(t, w.dir, "sh", launch.Record{Real: launch.Look(t, "sh")})
	elsewhere := fmt.Sprintf(`{"version":1,"hidden":[%q]}`, w.dir+"/elsewhere")
	for _, way := range ways {
		t.Run(strings.ReplaceAll(way.name, " ", "_"), func(t *testing.T) {
			// The same confinement of another place: what fails below fails
			// because of what is hidden.
			if r := w.try(t, shell, dir, way.command, elsewhere); !strings.Contains(r.Stdout, secret) {
				t.Fatalf("does not work where nothing of it is hidden: %v", r)
			}
			r := w.try(t, shell, dir, way.command, policy)
			if strings.Contains(r.Stdout+r.Stderr, secret) {
				t.Errorf("shows the secret: %v", r)
			}
			if r.Code == 125 {
				t.Errorf("was not started: %v", r)
			}
		})
	}
	r := w.try(t, shell, dir, "cat code", policy)
	if r.Code != 0 || r.Stdout != "package code\n" {
		t.Errorf("the rest of the checkout: %v", r)
	}
	other := w.u.Mkdir(t, w.dir+"/other", 0o755)
	r = w.try(t, shell, other, "git init -q && git -c user.name=n -c user.email=e commit -q --allow-empty -m one && git log --oneline && git worktree add -q ../w2 2>&1 || true; git status --short && echo fine", policy)
	if r.Code != 0 || !strings.HasSuffix(r.Stdout, "fine\n") || !strings.Contains(r.Stdout, " one\n") {
		t.Errorf("a repository that is not hidden: %v", r)
	}
}

func TestCase75_PlainCheckoutHidesItsGraders(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		// The linked work tree shows the same file.
		w.checkWays(t, w.repo, w.policy(t, w.repo, "--hide", w.link), w.ways())
	})
}

// TestCase48_LinkedWorkTreeHidesItsGraders and 75 for a work tree: its .git is a file, and the
// store is elsewhere.
func TestCase48_LinkedWorkTreeHidesItsGraders(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		for name, start := range map[string]string{"absolute": "gitdir: /", "relative": "gitdir: ../"} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, u)
				ways := w.ways()
				if name == "relative" {
					// Older versions of git cannot write it, all can read it.
					u.Write(t, w.link+"/.git", "gitdir: ../repo/.git/worktrees/link\n", 0o644)
					ways = ways[:5]
				}
				text, err := os.ReadFile(w.link + "/.git")
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(string(text), start) {
					t.Fatalf("the pointer is %q", text)
				}
				policy := w.policy(t, w.link, "--hide", w.repo+"/tests")
				for _, part := range []string{w.repo + "/.git/worktrees/link", w.repo + "/.git"} {
					if !strings.Contains(policy, `"`+part+`"`) {
						t.Errorf("%s is not hidden: %s", part, policy)
					}
				}
				w.checkWays(t, w.link, policy, ways)
			})
		}
	})
}

// A clone that borrows objects leads to where they are.
func TestBorrowedObjectsAreHidden(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		clone := w.dir + "/clone"
		w.git(t, w.dir, "clone", "-q", "--shared", w.repo, clone)
		policy := w.policy(t, clone, "--hide", w.repo+"/tests", "--hide", w.link)
		shell := launch.Install(t, w.dir, "sh", launch.Record{Real: launch.Look(t, "sh")})
		for _, command := range []string{
			"git show HEAD:tests/x",
			"cd $(mktemp -d) && git init -q && echo $STORE/objects >.git/objects/info/alternates && git cat-file blob " + w.blob,
			"cat " + w.pack + " >/dev/null && echo '" + secret + "'",
		} {
			if r := w.try(t, shell, clone, command, nil); !strings.Contains(r.Stdout, secret) {
				t.Errorf("without a policy: %v", r)
			}
			if r := w.try(t, shell, clone, command, policy); strings.Contains(r.Stdout, secret) || r.Code == 125 {
				t.Errorf("%s: %v", command, r)
			}
		}
	})
}

func TestCase76_OwnGradersStay(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		u.Mkdir(t, w.repo+"/spec", 0o755)
		u.Write(t, w.repo+"/spec/y", secret, 0o644)
		shell := launch.Install(t, w.dir, "sh", launch.Record{Real: launch.Look(t, "sh")})
		for _, row := range []struct {
			policy string
			want   string
		}{
			{w.policy(t, w.repo), secret},
			{w.policy(t, w.repo, "--hide", w.repo+"/spec"), ""},
		} {
			if r := w.try(t, shell, w.repo, "cat spec/y", row.policy); r.Stdout != row.want || (r.Code == 0) != (row.want != "") {
				t.Errorf("%s: %v", row.policy, r)
			}
		}
	})
}
