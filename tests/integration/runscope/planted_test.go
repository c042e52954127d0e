package runscope

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A plant is something that a session may have left at a name.
type plant struct {
	name string
	put  func(w *world, path string) error
}

func linkTo(target string) func(*world, string) error {
	return func(w *world, path string) error { return os.Symlink(w.at(target), path) }
}

func mode(make func(string) error, mode os.FileMode) func(*world, string) error {
	return func(_ *world, path string) error {
		if err := make(path); err != nil {
			return err
		}
		return os.Chmod(path, mode)
	}
}

func directory(path string) error { return os.Mkdir(path, 0o700) }
func file(path string) error      { return os.WriteFile(path, []byte("planted"), 0o600) }

var (
	linkToOther   = plant{"link to another session", linkTo("$R/durable-sessions/other")}
	linkToSecrets = plant{"link to the secrets", linkTo("$I/secrets")}
	linkToFile    = plant{"link to a secret", linkTo("$I/secrets/f")}
	linkToNew     = plant{"link to nothing in another session", linkTo("$R/durable-sessions/other/new")}
	linkToMoved   = plant{"link to where it was moved", linkTo("$W/moved")}
	loop          = plant{"loop", func(_ *world, path string) error { return os.Symlink(path, path) }}
	hardLink      = plant{"hard link of a secret", func(w *world, path string) error { return os.Link(w.at("$I/secrets/f"), path) }}
	fifo          = plant{"FIFO", func(_ *world, path string) error { return unix.Mkfifo(path, 0o600) }}
	socket        = plant{"socket", func(_ *world, path string) error {
		return unix.Mknod(path, unix.S_IFSOCK|0o600, 0)
	}}
	plainFile = plant{"file", func(_ *world, path string) error { return file(path) }}
	plainDir  = plant{"directory", func(_ *world, path string) error { return directory(path) }}
	shutDir   = plant{"directory without permission", mode(directory, 0)}
	shutFile  = plant{"file without permission", mode(file, 0)}
)

// Outcomes of a launch over a plant.
const (
	runs     = "runs"
	refuses  = "125"
	rootRuns = "runs as root" // who may read what has no permission
)

// TestPlantedEntriesOpenNothing: at every name that the templates touch, a session leaves what it
// can. The next launch either runs or says why not; it does not wait, and what is
// of others is neither read nor changed.
func TestPlantedEntriesOpenNothing(t *testing.T) {
	for _, at := range []struct {
		path string
		want map[*plant]string
	}{
		{"$R/durable-sessions/own-scope", map[*plant]string{
			&linkToOther: refuses, &linkToSecrets: refuses, &linkToFile: refuses, &linkToNew: refuses, &loop: refuses, &hardLink: refuses,
			&fifo: refuses, &socket: refuses, &plainFile: refuses, &shutFile: refuses, &plainDir: runs, &shutDir: rootRuns,
		}},
		{"$R/opencode/own-session", map[*plant]string{
			&linkToOther: refuses, &linkToFile: refuses, &linkToNew: refuses, &loop: refuses, &hardLink: refuses, &fifo: refuses,
			&socket: refuses, &plainFile: refuses, &plainDir: runs, &shutDir: rootRuns,
		}},
		{"$W/oc/own-session", map[*plant]string{
			&linkToOther: refuses, &linkToSecrets: refuses, &linkToNew: refuses, &loop: refuses, &hardLink: refuses, &fifo: refuses,
			&socket: refuses, &plainFile: refuses, &plainDir: runs, &shutDir: rootRuns,
		}},
		// Where it leads, others hide already: the entries are dropped.
		{"$W/oc", map[*plant]string{
			&linkToOther: runs, &linkToSecrets: runs, &linkToFile: refuses, &linkToNew: runs, &loop: refuses, &fifo: refuses, &socket: refuses,
			&plainFile: refuses, &plainDir: runs, &shutDir: rootRuns,
		}},
		{"$I/data/provider-traces/own", map[*plant]string{
			&linkToOther: refuses, &linkToFile: refuses, &linkToNew: refuses, &loop: refuses, &hardLink: refuses, &fifo: refuses,
			&socket: refuses, &plainFile: runs, &shutFile: rootRuns, &plainDir: refuses, &shutDir: refuses,
		}},
		// What is precreated may be there in any way that is a directory.
		{"$R/acpx", map[*plant]string{
			&linkToOther: runs, &linkToSecrets: runs, &linkToFile: refuses, &linkToNew: refuses, &loop: refuses, &hardLink: refuses,
			&fifo: refuses, &socket: refuses, &plainFile: refuses, &plainDir: runs, &shutDir: runs,
		}},
		{"$I/companies", map[*plant]string{
			&linkToOther: runs, &linkToNew: refuses, &loop: refuses, &fifo: refuses, &socket: refuses, &plainFile: refuses, &shutDir: runs,
		}},
		// The directories above are the harness's own.
		{"$R/runner", map[*plant]string{
			&linkToOther: runs, &linkToFile: runs, &loop: refuses, &fifo: runs, &socket: runs, &plainFile: runs, &shutDir: runs,
		}},
		{"$I/data/provider-traces", map[*plant]string{
			&linkToMoved: runs, &linkToFile: refuses, &fifo: refuses, &socket: refuses, &plainFile: refuses, &shutDir: rootRuns,
		}},
	} {
		for p, want := range at.want {
			t.Run(strings.NewReplacer("$", "", "/", "-").Replace(at.path)+"/"+p.name, func(t *testing.T) {
				launch.EachUser(t, func(t *testing.T, u launch.User) {
					overPlant(t, u, at.path, p, want)
				})
			})
		}
	}
}

func overPlant(t *testing.T, u launch.User, path string, p *plant, want string) {
	t.Helper()
	w := newWorld(t, u)
	w.env = []string{trace + "$I/data/provider-traces/own", openCode + "$W/oc"}
	if path != "$W/oc" {
		u.Mkdir(t, w.at("$W/oc"), 0o755)
	}
	u.Mkdir(t, w.at("$W/moved"), 0o755)
	if err := os.RemoveAll(w.at(path)); err != nil {
		t.Fatal(err)
	}
	if err := p.put(w, w.at(path)); err != nil {
		t.Fatal(err)
	}
	u.Own(t, w.at(path))
	before := w.others(t)
	tries := []try{
		{Op: "read", Path: path},
		{Op: "read", Path: path + "/f"},
		{Op: "read", Path: "$I/secrets/f"},
		{Op: "read", Path: "$R/durable-sessions/other/f"},
		{Op: "list", Path: "$I/secrets"},
		{Op: "list", Path: "$R/durable-sessions/other"},
	}
	r := w.command(t, w.text(), own(), tries).Run(t)
	if want == rootRuns {
		want = refuses
		if u.UID == 0 {
			want = runs
		}
	}
	switch {
	case want == refuses && (r.Code != 125 || r.Stdout != "" || strings.Count(r.Stderr, "\n") == 0):
		t.Errorf("want a refusal, have %v", r)
	case want == refuses && !strings.Contains(r.Stderr, w.at(path)):
		t.Errorf("stderr does not name %s: %q", w.at(path), r.Stderr)
	case want == runs:
		got := results(t, r, len(tries))
		for i, g := range got {
			if strings.Contains(g.Data, secret) || i >= 2 && g.Errno != denied {
				t.Errorf("%s %s: %v", tries[i].Op, tries[i].Path, g)
			}
		}
	}
	if diff := cmp.Diff(before, w.others(t)); diff != "" {
		t.Errorf("what is of others changed (-before +after)\n%s", diff)
	}
}

// others lists what belongs to the harness and other sessions, with its content.
func (w *world) others(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range []string{"$R/durable-sessions/other", "$R/opencode/other", "$I/secrets", "$I/db", "$W/graders"} {
		err := filepath.WalkDir(w.at(dir), func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				data, err := os.ReadFile(path)
				out[path] = string(data)
				return err
			}
			out[path] = d.Type().String()
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}
