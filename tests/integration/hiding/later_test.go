package hiding

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// What a mount shows of a place that does not exist yet.
func TestMountOfWhatAppearsLaterIsDenied(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		privateMounts(t)
		w := newWorld(t, u)
		w.bind(t, "$W/secret", "$W/work/m")
		p := w.command(t, w.policy(t, `{"version":1,"hidden":["$W/secret/later/deep"]}`), []try{
			{"create", "$W/work/sub/ready", ""},
			{"await", "$W/work/sub/go", ""},
			{"read", "$W/secret/later/deep/f", ""},
			{"read", "$W/work/m/later/deep/f", ""},
			{"read", "$W/work/m/f", ""},
		}).Start(t)
		awaitFile(t, w.at("$W/work/sub/ready"))
		w.mkdir(t, "$W/secret/later")
		w.mkdir(t, "$W/secret/later/deep")
		w.write(t, "$W/secret/later/deep/f", secret)
		w.write(t, "$W/work/sub/go", "")
		got := errnos(w.results(t, p.Wait(t), 5))
		if d := cmp.Diff([]string{ok, ok, denied, denied, ok}, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// A mount made by an outsider after the launch is a limit, and listed.
func TestMountAfterTheLaunchIsALimit(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		privateMounts(t)
		w := newWorld(t, u)
		w.mkdir(t, "$W/work/m")
		p := w.command(t, w.policy(t, hideSecret), []try{
			{"create", "$W/work/ready", ""},
			{"await", "$W/work/go", ""},
			{"read", "$W/secret/f", ""},
			{"read", "$W/work/m/f", ""},
		}).Start(t)
		awaitFile(t, w.at("$W/work/ready"))
		w.bind(t, "$W/secret", "$W/work/m")
		w.write(t, "$W/work/go", "")
		got := errnos(w.results(t, p.Wait(t), 4))
		shown := ok
		if u == launch.Root {
			shown = "ENOENT" // it has a mount namespace of its own, and this mount is not propagated
		}
		if d := cmp.Diff([]string{ok, ok, denied, shown}, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		wantLimit(t, w.report(t), "later")
	})
}

func TestMovedContentIsALimit(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		p := w.command(t, w.policy(t, hideSecret), []try{
			{"create", "$W/work/ready", ""},
			{"await", "$W/work/go", ""},
			{"read", "$W/work/moved", ""},       // moved out into what is granted
			{"read", "$W/renamed/own/f", ""},    // the hidden directory renamed where it stands
			{"read", "$W/work/moved-dir/g", ""}, // a directory moved out
		}).Start(t)
		awaitFile(t, w.at("$W/work/ready"))
		w.write(t, "$W/secret/sub/g", secret)
		rename(t, w.at("$W/secret/f"), w.at("$W/work/moved"))
		rename(t, w.at("$W/secret/sub"), w.at("$W/work/moved-dir"))
		rename(t, w.at("$W/secret"), w.at("$W/renamed"))
		w.write(t, "$W/work/go", "")
		got := errnos(w.results(t, p.Wait(t), 5))
		if d := cmp.Diff([]string{ok, ok, ok, denied, ok}, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		wantLimit(t, w.report(t), "later")
	})
}

func TestHardLinksAreALimit(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		link := func(t *testing.T, w *world) {
			for _, to := range []string{"$W/work/hard", "$W/hard"} {
				if err := os.Link(w.at("$W/secret/f"), w.at(to)); err != nil {
					t.Fatal(err)
				}
			}
		}
		// A hidden file: the name beside it is left out, the one in a granted
		// directory leads to it, and the report says so.
		r := table(t, u, `{"version":1,"hidden":["$W/secret/f"]}`, link, []row{
			{op: "read", path: "$W/secret/f", free: ok, held: denied},
			{op: "read", path: "$W/hard", free: ok, held: denied},
			{op: "read", path: "$W/work/hard", free: ok, held: ok},
			{op: "read", path: "$W/work/f", free: ok, held: ok},
		})
		wantLimit(t, r, "hard-link")
		if text := strings.Join(limits(r, "hard-link"), "; "); !strings.Contains(text, "3 names") {
			t.Errorf("hard-link: %q does not count the names", text)
		}
		// A file in a hidden directory.
		r = table(t, u, hideSecret, func(t *testing.T, w *world) {
			link(t, w)
			w.write(t, "$W/secret/g", secret)
			if err := os.Link(w.at("$W/secret/g"), w.at("$W/work/g")); err != nil {
				t.Fatal(err)
			}
		}, []row{
			{op: "read", path: "$W/secret/f", free: ok, held: ok}, // the rule on $W/hard is on the inode
			{op: "read", path: "$W/secret/g", free: ok, held: denied},
			{op: "read", path: "$W/work/g", free: ok, held: ok},
			{op: "read", path: "$W/work/hard", free: ok, held: ok},
			{op: "list", path: "$W/secret", free: ok, held: denied},
		})
		wantLimit(t, r, "hard-link")
	})
}
