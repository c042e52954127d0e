package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// seeds is how many trees are tried. (A mount of something in a hidden location
// that is covered there is hidden as well, though no path beneath the hidden
// one leads to it. The text below does not know that; these trees have none.)
const seeds = 600

// TestWalkAgainstText plans random policies on random trees and compares what
// the grants open with what the policy says, place by place. A place is open
// if a grant is on its inode or on that of a directory above it: that is how
// Landlock decides.
func TestWalkAgainstText(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(seeds) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		text := randomTree(rnd)
		tree := pathtest.New(text)
		hidden, exposed := randomPolicy(rnd, tree)
		p := policy(strings.TrimSpace(strings.Join(append(marked("-", hidden), marked("+", exposed)...), " ")))
		l := plan.Launch{EUID: 1000, Mounts: tree.Mounts()}
		says := read(tree, hidden, exposed)

		pass := throughs[seed%2]
		seen, release := pass(tree)
		pl, err := plan.Make(p, l, seen)
		release()
		if err != nil {
			if !says.contradictory {
				t.Fatalf("seed %d: hidden %v, exposed %v: %v\n%s", seed, hidden, exposed, err, text)
			}
			count["refused"]++
			continue
		}
		sink := &identities{ids: map[pathcheck.ID]string{}}
		seen, release = pass(tree)
		_, err = pl.Walk(seen, sink)
		release()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		checkOpen(t, tree)
		for _, pl := range says.places {
			open := false
			for _, id := range pl.line {
				_, ok := sink.ids[id]
				open = open || ok
			}
			switch {
			case pl.closed && open:
				t.Fatalf("seed %d: hidden %v, exposed %v: %q is open\n%s", seed, hidden, exposed, pl.path, text)
			case pl.open && !open:
				t.Fatalf("seed %d: hidden %v, exposed %v: %q is not open\n%s", seed, hidden, exposed, pl.path, text)
			case pl.closed:
				count["closed"]++
			case pl.open:
				count["open"]++
			}
		}
	}
	t.Log(count)
	for what, n := range map[string]int{"closed": 5000, "open": 10000, "refused": 10} {
		if count[what] < n {
			t.Errorf("%d were %s, too few to say anything", count[what], what)
		}
	}
}

// A said place is one that the policy wants open, closed, or says nothing of.
type said struct {
	path         string
	line         []pathcheck.ID // its inode and those above it
	open, closed bool
}

type reading struct {
	places []said
	// contradictory is set when the policy may be refused.
	contradictory bool
}

// read is the text of the policy: hidden is closed with all beneath it, under
// whatever path a mount shows it; exposed beats it; what stands above hidden
// is neither open nor closed; everything else is open. Files with more names
// than one are left out where one name is hidden and another is not.
func read(tree *pathtest.Tree, hidden, exposed []string) reading {
	within := func(dirs []string, path string) bool {
		return slices.ContainsFunc(dirs, func(d string) bool {
			return path == d || strings.HasPrefix(path, strings.TrimSuffix(d, "/")+"/")
		})
	}
	all := map[string]pathcheck.Info{}
	var paths []string
	tree.Each(func(path string, info pathcheck.Info) {
		all[path] = info
		paths = append(paths, path)
	})
	secret, shown, above := map[pathcheck.ID]bool{}, map[pathcheck.ID]bool{}, map[pathcheck.ID]bool{}
	for _, path := range paths {
		switch {
		case within(exposed, path):
			shown[all[path].ID] = true
		case within(hidden, path):
			secret[all[path].ID] = true
		}
		if all[path].Kind == pathcheck.Directory && slices.ContainsFunc(hidden, func(h string) bool { return h != path && within([]string{path}, h) }) {
			above[all[path].ID] = true
		}
	}
	// Content that is exposed is exposed wherever it is seen, hidden roots are not.
	// If it is seen beneath something hidden as well, refusing is right too.
	var r reading
	for id := range shown {
		r.contradictory = r.contradictory || secret[id]
		delete(secret, id)
	}
	frozen := map[string]bool{}
	for _, path := range paths {
		id := all[path].ID
		if above[id] {
			frozen[path] = true
		}
		if secret[id] {
			r.contradictory = r.contradictory || path == "/" || within(exposed, path)
			// A second name of a file freezes nothing, a second path to the
			// directory of the first does.
			named := linked(all[path]) && !above[all[pathcheck.Parent(path)].ID]
			for p := path; p != "/" && !named; {
				p = pathcheck.Parent(p)
				frozen[p] = true
			}
		}
		if above[id] && shown[id] {
			r.contradictory = true
		}
	}
	// What is not there yet would appear in its directory, whose other paths
	// lead to it as well.
	for _, h := range hidden {
		if _, ok := all[h]; ok {
			continue
		}
		dir := h
		for _, ok := all[dir]; !ok; _, ok = all[dir] {
			dir = pathcheck.Parent(dir)
		}
		for _, path := range paths {
			for p := path; all[path].ID == all[dir].ID && p != "/"; {
				p = pathcheck.Parent(p)
				frozen[p] = true
			}
		}
	}
	// A rule is on an inode: what is frozen at one path is so at every path.
	for _, path := range paths {
		if frozen[path] {
			above[all[path].ID] = true
		}
	}
	for _, path := range paths {
		frozen[path] = frozen[path] || above[all[path].ID]
		r.contradictory = r.contradictory || frozen[path] && shown[all[path].ID]
	}
	for _, h := range hidden {
		// A hidden root that is exposed under another name.
		if info, ok := all[h]; ok && (shown[info.ID] || info.ID == all["/"].ID) {
			r.contradictory = true
		}
	}
	leads := func(dir string) bool {
		return slices.ContainsFunc(hidden, func(h string) bool { return pathcheck.Beneath(dir, h) && !within(exposed, dir) })
	}
	for _, path := range paths {
		info := all[path]
		pl := said{path: path}
		beneathSecret := false
		for p := path; ; p = pathcheck.Parent(p) {
			pl.line = append(pl.line, all[p].ID)
			beneathSecret = beneathSecret || secret[all[p].ID]
			if p == "/" {
				break
			}
		}
		switch {
		case info.Kind == pathcheck.Symlink, linked(info):
		case secret[info.ID]:
			pl.closed = true
		case frozen[path], beneathSecret, within(hidden, path) && !within(exposed, path), info.Kind == pathcheck.BlockDevice:
			// What stands above hidden, on the path that was named, is closed.
			// Of its other paths nothing is said, nor of a path beneath hidden
			// that shows what is exposed. A block device in a directory that is
			// granted whole is a limit.
			pl.closed = leads(path) || info.Kind == pathcheck.BlockDevice && leads(pathcheck.Parent(path))
		default:
			pl.open = true
		}
		if linked(info) && within(exposed, path) {
			pl.open = true
		}
		r.places = append(r.places, pl)
	}
	return r
}

// linked reports whether a file has several names.
func linked(info pathcheck.Info) bool { return info.Kind != pathcheck.Directory && info.Links > 1 }

func marked(mark string, paths []string) []string {
	out := make([]string, 0, len(paths))
	for _, p := range paths {
		out = append(out, mark+p)
	}
	return out
}

func randomTree(rnd *rand.Rand) string {
	var b strings.Builder
	var dirs, files []string
	var fill func(dir string, depth int)
	fill = func(dir string, depth int) {
		for _, name := range []string{"a", "b", "c", "d"} {
			path := dir + "/" + name
			switch k := rnd.IntN(16); {
			case k < 7 && depth < 4:
				fmt.Fprintf(&b, "%s/\n", path)
				dirs = append(dirs, path)
				fill(path, depth+1)
			case k < 9:
				fmt.Fprintf(&b, "%s\n", path)
				files = append(files, path)
			case k == 9:
				fmt.Fprintf(&b, "%s -> /a/b\n", path)
			case k == 10:
				fmt.Fprintf(&b, "%s block 8:0\n", path)
			case k == 11:
				fmt.Fprintf(&b, "%s socket\n", path)
			case k == 12 && len(files) > 0 && rnd.IntN(3) == 0:
				fmt.Fprintf(&b, "%s == %s\n", path, files[rnd.IntN(len(files))])
			}
		}
	}
	fill("", 0)
	if len(dirs) == 0 {
		return "/a/"
	}
	for i := range rnd.IntN(4) {
		from, to := dirs[rnd.IntN(len(dirs))], dirs[rnd.IntN(len(dirs))]
		text := fmt.Sprintf("%s bind %s\n", to, from)
		switch rnd.IntN(8) {
		case 0:
			text = to + " bind /\n"
		case 1:
			text = fmt.Sprintf("%s/ mount ext4 8:%d\n%s/a/b/\n%s/c\n", to, 2+i, to, to)
		case 2:
			text = fmt.Sprintf("/m%d bind %s\n", rnd.IntN(3), from)
		}
		// A later mount may have covered what this one names.
		if buildable(b.String() + text) {
			b.WriteString(text)
		}
	}
	return b.String()
}

func buildable(text string) (ok bool) {
	defer func() { ok = recover() == nil }()
	pathtest.New(text)
	return true
}

// randomPolicy hides one to three places, existing or not, and exposes some
// beneath them.
func randomPolicy(rnd *rand.Rand, tree *pathtest.Tree) (hidden, exposed []string) {
	var paths []string
	tree.Each(func(path string, info pathcheck.Info) {
		if path != "/" && info.Kind != pathcheck.Symlink {
			paths = append(paths, path)
			if info.Kind == pathcheck.Directory && rnd.IntN(6) == 0 {
				paths = append(paths, path+"/new", path+"/new/er")
			}
		}
	})
	for range 1 + rnd.IntN(3) {
		hidden = append(hidden, paths[rnd.IntN(len(paths))])
	}
	for range 20 {
		x := paths[rnd.IntN(len(paths))]
		if len(exposed) > 1 || strings.Contains(x, "/new") || tree.Info(x).Kind == pathcheck.BlockDevice {
			continue
		}
		under, over := false, false
		for _, h := range hidden {
			under = under || pathcheck.Beneath(h, x)
			over = over || pathcheck.Within(x, h)
		}
		if under && !over {
			exposed = append(exposed, x)
		}
	}
	return hidden, exposed
}
