package hiding

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

const hideSecret = `{"version":1,"hidden":["$W/secret"]}`

func TestCase23_HiddenDirectoryIsDenied(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		r := table(t, u, hideSecret, nil, []row{
			{op: "read", path: "$W/secret/f", free: ok, held: denied},
			{op: "list", path: "$W/secret", free: ok, held: denied},
			{op: "list", path: "$W/secret/sub", free: ok, held: denied},
			{op: "execute", path: "$W/secret/p", free: ok, held: denied},
			{op: "write", path: "$W/secret/f", free: ok, held: denied},
			{op: "written", path: "$W/secret/f", free: ok, held: denied},
			{op: "create", path: "$W/secret/new", free: ok, held: denied},
			{op: "mkdir", path: "$W/secret/newdir", free: ok, held: denied},
			{op: "mkfifo", path: "$W/secret/fifo", free: ok, held: denied},
			{op: "symlink", path: "$W/secret/newlink", to: "f", free: ok, held: denied},
			{op: "listen", path: "$W/secret/socket", free: ok, held: denied},
			{op: "tmpfile", path: "$W/secret", free: ok, held: denied},
			{op: "link", path: "$W/work/f", to: "$W/secret/in", free: ok, held: denied},
			{op: "rename", path: "$W/work/sub", to: "$W/secret/moved-in", free: ok, held: denied},
			{op: "rename", path: "$W/secret/own", to: "$W/work/moved-out", free: ok, held: denied},
			{op: "exchange", path: "$W/secret/f", to: "$W/work/f", free: ok, held: denied},
			{op: "truncate", path: "$W/secret/f", free: ok, held: denied},
			{op: "unlink", path: "$W/secret/f", free: ok, held: denied},
			{op: "rmdir", path: "$W/secret/sub", free: ok, held: denied},
			{op: "rename", path: "$W/secret", to: "$W/work/secret", free: ok, held: denied},
		})
		if want := r.Hidden; len(want) != 1 || !strings.HasSuffix(want[0], "/secret") {
			t.Errorf("the report's hidden is %q", want)
		}
		wantEnforced(t, r.Enforced, "hidden")
	})
}

// What Landlock does not cover is listed in each report, and it is true.
func TestMetadataIsALimit(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		r := table(t, u, hideSecret, nil, []row{
			{op: "setxattr", path: "$W/secret/f", to: "note", free: ok, held: ok},
			{op: "getxattr", path: "$W/secret/f", free: ok, held: ok},
			{op: "stat", path: "$W/secret/f", free: ok, held: ok},
			{op: "access", path: "$W/secret/f", free: ok, held: ok},
			{op: "chmod", path: "$W/secret/f", free: ok, held: ok},
			{op: "utimes", path: "$W/secret/f", free: ok, held: ok},
			{op: "readlink", path: "$W/secret/link", free: ok, held: ok},
			{op: "inotify", path: "$W/secret", free: ok, held: ok},
			{op: "cwd", path: "$W/secret", free: ok, held: ok},
			// Next to it, what is covered.
			{op: "read", path: "$W/secret/f", free: ok, held: denied},
		})
		wantLimit(t, r, "metadata")
		for _, word := range []string{"existence", "stat", "mode", "owner", "times", "extended attributes", "symlink", "inotify"} {
			if text := strings.Join(limits(r, "metadata"), " "); !strings.Contains(text, word) {
				t.Errorf("the limit %q does not name %s", text, word)
			}
		}
	})
}

func TestCase24_OtherNamesOfTheHiddenAreDenied(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		table(t, u, hideSecret, func(t *testing.T, w *world) {
			w.symlink(t, "$W/secret", "$W/work/dirlink")
			w.symlink(t, "../secret/f", "$W/work/filelink")
			w.symlink(t, "dirlink/own/..", "$W/work/chain")
		}, []row{
			{op: "read", path: "$W/work/dirlink/f", free: ok, held: denied},
			{op: "list", path: "$W/work/dirlink/", free: ok, held: denied},
			{op: "read", path: "$W/work/filelink", free: ok, held: denied},
			{op: "read", path: "$W/work/chain/f", free: ok, held: denied},
			{op: "read", path: "$W/work/../secret/f", free: ok, held: denied},
			{op: "read", path: "$W/work/sub/../../secret/./sub/../f", free: ok, held: denied},
			{op: "read", path: "/../../$W//secret//f", free: ok, held: denied},
			{op: "from-inside", path: "$W/secret/f", free: ok, held: denied},
			{op: "from-inside", path: "$W/secret/own/f", free: ok, held: denied},
			{op: "list-from-inside", path: "$W/secret", free: ok, held: denied},
			{op: "by-proc-root", path: "$W/secret/f", free: ok, held: denied},
			{op: "by-proc-cwd", path: "$W/secret/f", free: ok, held: denied},
			{op: "path-descriptor", path: "$W/secret/f", free: ok, held: denied},
			{op: "below-descriptor", path: "$W/secret/f", free: ok, held: denied},
			// The loader exits with 127 when it may not open the file.
			{op: "execute-by-loader", path: "$W/secret/p", to: loader(), free: ok, held: "exit status 127"},
			{op: "link", path: "$W/secret/f", to: "$W/work/hard", free: ok, held: "EXDEV"},
			{op: "link-descriptor", path: "$W/secret/f", to: "$W/work/hard2", free: ok, held: "EXDEV"},
			{op: "link", path: "$W/work/dirlink/f", to: "$W/work/sub/hard3", free: ok, held: "EXDEV"},
			// The same ways to what is not hidden.
			{op: "by-proc-root", path: "$W/work/f", free: ok, held: ok},
			{op: "by-proc-cwd", path: "$W/work/f", free: ok, held: ok},
			{op: "path-descriptor", path: "$W/work/f", free: ok, held: ok},
			{op: "below-descriptor", path: "$W/work/f", free: ok, held: ok},
			{op: "from-inside", path: "$W/work/f", free: ok, held: ok},
			{op: "execute-by-loader", path: "$W/work/p", to: loader(), free: ok, held: ok},
			{op: "link", path: "$W/work/f", to: "$W/work/sub/hard4", free: ok, held: ok},
			{op: "link-descriptor", path: "$W/work/f", to: "$W/work/sub/hard5", free: ok, held: ok},
		})
	})
}

func TestCase25_WhereALinkLeadsIsHidden(t *testing.T) {
	launch.Need(t, launch.Landlock)
	for name, hidden := range map[string]string{
		"link":            "$W/work/dirlink",
		"chain of links":  "$W/work/chain",
		"relative link":   "$W/work/relative",
		"link in between": "$W/up/secret",
		"dotdot":          "$W/work/dirlink/../secret",
	} {
		t.Run(name, func(t *testing.T) {
			launch.EachUser(t, func(t *testing.T, u launch.User) {
				prepare := func(t *testing.T, w *world) {
					w.symlink(t, "$W/secret", "$W/work/dirlink")
					w.symlink(t, "dirlink", "$W/work/chain")
					w.symlink(t, "sub/../../secret/", "$W/work/relative")
					w.symlink(t, ".", "$W/up")
				}
				r := table(t, u, `{"version":1,"hidden":["`+hidden+`"]}`, prepare, []row{
					{op: "read", path: "$W/secret/f", free: ok, held: denied},
					{op: "read", path: "$W/work/dirlink/f", free: ok, held: denied},
					{op: "list", path: "$W/secret", free: ok, held: denied},
					{op: "read", path: "$W/work/f", free: ok, held: ok},
					{op: "list", path: "$W/work", free: ok, held: ok},
				})
				if len(r.Hidden) != 1 || !strings.HasSuffix(r.Hidden[0], "/secret") {
					t.Errorf("the report's hidden is %q, want the real place", r.Hidden)
				}
			})
		})
	}
}

// A link that leads nowhere hides where it will lead, and a link that is
// changed later changes nothing: the place that it named is hidden.
func TestWhereALinkWillLeadIsHidden(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		w.symlink(t, "$W/later", "$W/dangling")
		w.symlink(t, "$W/secret", "$W/swapped")
		c := w.command(t, w.policy(t, `{"version":1,"hidden":["$W/dangling","$W/swapped"]}`), []try{
			{"create", "$W/work/ready", ""},
			{"await", "$W/work/go", ""},
			{"read", "$W/later/f", ""},
			{"read", "$W/dangling/f", ""},
			{"read", "$W/secret/f", ""},
			{"read", "$W/swapped/f", ""},
			{"read", "$W/work/f", ""},
		})
		p := c.Start(t)
		awaitFile(t, w.at("$W/work/ready"))
		w.mkdir(t, "$W/later")
		w.write(t, "$W/later/f", secret)
		if err := os.Remove(w.at("$W/swapped")); err != nil {
			t.Fatal(err)
		}
		w.symlink(t, "$W/work", "$W/swapped")
		w.write(t, "$W/work/go", "")
		got := errnos(w.results(t, p.Wait(t), 7))
		want := []string{ok, ok, denied, denied, denied, ok, ok}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

func TestCase26_HiddenFileIsDenied(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		r := table(t, u, `{"version":1,"hidden":["$W/work/f"]}`, func(t *testing.T, w *world) {
			w.write(t, "$W/work/beside", "x")
		}, []row{
			{op: "read", path: "$W/work/f", free: ok, held: denied},
			{op: "write", path: "$W/work/f", free: ok, held: denied},
			{op: "truncate", path: "$W/work/f", free: ok, held: denied},
			{op: "unlink", path: "$W/work/f", free: ok, held: denied},
			{op: "read", path: "$W/work/beside", free: ok, held: ok},
			{op: "written", path: "$W/work/beside", free: ok, held: ok},
			{op: "list", path: "$W/work/sub", free: ok, held: ok},
			{op: "create", path: "$W/work/sub/new", free: ok, held: ok},
			{op: "execute", path: "$W/work/p", free: ok, held: ok},
		})
		if got := launch.NotEnforced(r, "hard-link"); slices.Contains(got, "failure") {
			t.Errorf("hard-link: %v", got)
		}
	})
}

func TestCase27_BesideTheHiddenAllWorks(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		table(t, u, hideSecret, nil, []row{
			{op: "read", path: "$W/work/f", free: ok, held: ok},
			{op: "written", path: "$W/work/f", free: ok, held: ok},
			{op: "create", path: "$W/work/new", free: ok, held: ok},
			{op: "unlink", path: "$W/work/new", free: ok, held: ok},
			{op: "mkdir", path: "$W/work/newdir", free: ok, held: ok},
			{op: "rename", path: "$W/work/f", to: "$W/work/newdir/f", free: ok, held: ok},
			{op: "rename", path: "$W/work/newdir/f", to: "$W/work/sub/f", free: ok, held: ok},
			{op: "link", path: "$W/work/sub/f", to: "$W/work/again", free: ok, held: ok},
			{op: "tmpfile", path: "$W/work", free: ok, held: ok},
			{op: "listen", path: "$W/work/socket", free: ok, held: ok},
			{op: "connect", path: "$W/work/socket", free: "ECONNREFUSED", held: "ECONNREFUSED"},
			{op: "read", path: "$W/file", free: ok, held: ok},
			{op: "written", path: "$W/file", free: ok, held: ok},
			{op: "mktemp", free: ok, held: ok},
			{op: "write", path: "/dev/null", free: ok, held: ok},
			{op: "read", path: "/dev/urandom", free: ok, held: ok},
			{op: "create", path: "/dev/shm/shim-test-" + u.Name, free: ok, held: ok},
			{op: "read", path: "/dev/shm/shim-test-" + u.Name, free: ok, held: ok},
			{op: "unlink", path: "/dev/shm/shim-test-" + u.Name, free: ok, held: ok},
			{op: "execute", path: "$W/work/p", free: ok, held: ok}, // with its libraries
		})
	})
}

func TestCase28_AncestorsAreFrozen(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		r := table(t, u, `{"version":1,"hidden":["$W/work/sub/deep"]}`, nil, []row{
			{op: "list", path: "/", free: ok, held: denied},
			{op: "list", path: "$W", free: ok, held: denied},
			{op: "create", path: "$W/new", free: ok, held: denied},
			{op: "mkdir", path: "$W/work/new", free: ok, held: denied},
			{op: "create", path: "$W/work/sub/new", free: ok, held: denied},
			{op: "rename", path: "$W/work/f", to: "$W/work/f2", free: ok, held: denied},
			{op: "rename", path: "$W/secret", to: "$W/secret2", free: ok, held: denied},
			{op: "unlink", path: "$W/file", free: ok, held: denied},
			{op: "rmdir", path: "$W/work/sub/deep", free: "ENOENT", held: "ENOENT"},
			// Lookup through them goes on, and what is not above is free.
			{op: "cwd", path: "$W/work/sub", free: ok, held: ok},
			{op: "create", path: "$W/secret2/new", free: ok, held: "ENOENT"},
			{op: "create", path: "$W/secret/new", free: "ENOENT", held: ok},
		})
		w := strings.TrimSuffix(r.Hidden[0], "/work/sub/deep")
		for _, dir := range []string{"/", "/var", "/var/tmp", w, w + "/work", w + "/work/sub"} {
			if !slices.Contains(r.Frozen, dir) {
				t.Errorf("the report's frozen %q lacks %q", r.Frozen, dir)
			}
		}
	})
}

func TestCase29_WhatAppearsLaterIsHidden(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		p := w.command(t, w.policy(t, `{"version":1,"hidden":["$W/later/deep","$W/work/newfile"]}`), []try{
			{"create", "$W/secret/ready", ""},
			{"await", "$W/secret/go", ""},
			{"read", "$W/later/deep/f", ""},
			{"list", "$W/later/deep", ""},
			{"list", "$W/later", ""},
			{"read", "$W/work/newfile", ""},
			{"read", "$W/work/f", ""},
		}).Start(t)
		awaitFile(t, w.at("$W/secret/ready"))
		w.mkdir(t, "$W/later")
		w.mkdir(t, "$W/later/deep")
		w.write(t, "$W/later/deep/f", secret)
		w.write(t, "$W/work/newfile", secret)
		w.write(t, "$W/secret/go", "")
		got := errnos(w.results(t, p.Wait(t), 7))
		if d := cmp.Diff([]string{ok, ok, denied, denied, denied, denied, ok}, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// Entries that come and go during the walk do not stop a launch.
func TestCase30_VanishingEntryStopsNothing(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		stop, done := make(chan struct{}), make(chan int)
		go func() {
			n := 0
			for {
				select {
				case <-stop:
					done <- n
					return
				default:
				}
				for i := range 40 {
					_ = os.WriteFile(w.at("$W/come-and-go-")+string(rune('A'+i)), nil, 0o644)
				}
				for i := range 40 {
					_ = os.Remove(w.at("$W/come-and-go-") + string(rune('A'+i)))
				}
				n++
			}
		}()
		for range 30 {
			got, _ := w.held(t, hideSecret, try{"read", "$W/secret/f", ""}, try{"read", "$W/work/f", ""})
			if d := cmp.Diff([]string{denied, ok}, errnos(got)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		}
		close(stop)
		if n := <-done; n < 2 {
			t.Errorf("the entries came and went only %d times", n)
		}
	})
}

func errnos(rs []result) []string {
	out := make([]string, len(rs))
	for i, r := range rs {
		out[i] = r.Errno
	}
	return out
}
