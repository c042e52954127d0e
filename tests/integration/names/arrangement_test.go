package names

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/transparency/bare"
)

const folders = 5

var toolNames = []string{"tool", "other"}

// A world is the place in which shims and programs are arranged.
type world struct {
	dir string
	// slots are all paths at which something can stand.
	slots []string
	// shims are files with every kind of record, in a directory of their own;
	// an arrangement is made of hard links to them.
	shims []string
	reals []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: launch.Dir(t)}
	for i := range folders {
		dir := launch.Root.Mkdir(t, w.folder(i), 0o755)
		for _, name := range toolNames {
			w.slots = append(w.slots, filepath.Join(dir, name))
		}
	}
	pool := launch.Root.Mkdir(t, filepath.Join(w.dir, "pool"), 0o755)
	modes := []os.FileMode{0o755, 0o111}
	add := func(list *[]string, path string, mode os.FileMode) {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		*list = append(*list, path)
	}
	for i, mode := range modes {
		add(&w.reals, bare.Real.Install(t, pool, fmt.Sprintf("real%d", i)), mode)
	}
	targets := append([]string{w.reals[0], w.reals[1], filepath.Join(w.dir, "nothing")}, w.slots...)
	for i, mode := range modes {
		for n := range 2 {
			add(&w.shims, launch.Copy(t, pool, fmt.Sprintf("copy%d-%d", i, n)), mode)
		}
		for n, target := range targets {
			r := launch.Record{Real: target, InPlace: n%2 == 1}
			if n%3 == 0 {
				r.Argv0 = 1
			}
			add(&w.shims, launch.Install(t, pool, fmt.Sprintf("record%d-%d", i, n), r), mode)
		}
	}
	return w
}

func (w *world) folder(i int) string { return filepath.Join(w.dir, fmt.Sprintf("d%d", i)) }

// An arrangement says what stands in which slot.
type arrangement struct {
	what map[string]string // for messages
	// leads is where a script or a symlink leads to: a slot, or "env NAME".
	leads map[string]string
	start string
	dir   string
	path  []string
	argv0 string
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// arrange empties all slots and fills them at random. It reports false for an
// arrangement that is a loop without any shim.
func (w *world) arrange(t *testing.T, r *rand.Rand) (*arrangement, bool) {
	t.Helper()
	a := &arrangement{what: make(map[string]string), leads: make(map[string]string)}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, slot := range w.slots {
		if err := os.Remove(slot); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	script := func(slot, text string, mode os.FileMode) {
		must(os.WriteFile(slot, []byte(text), 0o644))
		must(os.Chmod(slot, mode))
		a.what[slot] = fmt.Sprintf("%q %o", text, mode)
	}
	var shims []string
	for _, slot := range w.slots {
		mode := pick(r, []os.FileMode{0o755, 0o755, 0o111})
		switch r.IntN(14) {
		case 0, 1: // nothing
		case 2, 3, 4, 5, 6, 7:
			from := pick(r, w.shims)
			must(os.Link(from, slot))
			a.what[slot] = filepath.Base(from)
			shims = append(shims, slot)
		case 8:
			from := pick(r, w.reals)
			must(os.Link(from, slot))
			a.what[slot] = filepath.Base(from)
		case 9:
			to := pick(r, w.slots)
			must(os.Symlink(to, slot))
			a.what[slot], a.leads[slot] = "-> "+to, to
		case 10, 11:
			to := pick(r, w.slots)
			script(slot, "#!"+to+pick(r, []string{"", " ", " -x", " a b"})+"\n", mode)
			a.leads[slot] = to
		case 12:
			name := pick(r, toolNames)
			script(slot, pick(r, []string{
				"#!/usr/bin/env ", "#! /usr/bin/env -S ", "#!/usr/bin/env -S A=1 ", "#!/usr/bin/env --split-string=",
				"#!/usr/bin/env -S/usr/bin/env -uA ", "#!/usr/bin/env -S --ignore-signal=PIPE ",
			})+name+"\n", mode)
			a.leads[slot] = "env " + name
		case 13:
			script(slot, fmt.Sprintf("#!/bin/sh\nexit %d\n", bare.RealCode), 0o755)
		}
	}
	if len(shims) == 0 {
		return nil, false
	}
	a.start, a.dir = pick(r, shims), w.folder(r.IntN(folders))
	for range 1 + r.IntN(2*folders) {
		i := r.IntN(folders)
		a.path = append(a.path, pick(r, []string{w.folder(i), w.folder(i), w.folder(i) + "/", fmt.Sprintf("../d%d", i), "", ".", launch.Nowhere}))
	}
	a.argv0 = pick(r, []string{filepath.Base(a.start), a.start, "-tool", "", "sandbox-exec-shim", "anything"})
	return a, !a.nativeLoop()
}

// nativeLoop reports a loop of scripts through env(1): it is one whether shims
// are installed or not. Scripts alone are none, the kernel ends those.
func (a *arrangement) nativeLoop() bool {
	for slot := range a.leads {
		at := slot
		for range 4 * folders * len(toolNames) {
			next, ok := a.leads[at]
			if name, env := strings.CutPrefix(next, "env "); env {
				next = a.onPath(name)
			}
			if at = next; !ok || at == "" {
				break
			}
		}
		if _, ok := a.leads[at]; ok {
			return true
		}
	}
	return false
}

// onPath finds a slot as env(1) does.
func (a *arrangement) onPath(name string) string {
	for _, dir := range a.path {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(a.dir, dir)
		}
		slot := filepath.Join(dir, name)
		if a.starts(slot) {
			return slot
		}
	}
	return ""
}

// starts reports whether execve of a slot could succeed: env(1) goes on to the
// next entry of PATH where an interpreter is missing.
func (a *arrangement) starts(slot string) bool {
	for range 10 {
		if st, err := os.Stat(slot); err != nil || !st.Mode().IsRegular() {
			return false
		}
		next, ok := a.leads[slot]
		if !ok || strings.HasPrefix(next, "env ") {
			return true
		}
		slot = next
	}
	return true
}

func (a *arrangement) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "start %s as %q in %s with PATH=%s\n", a.start, a.argv0, a.dir, strings.Join(a.path, ":"))
	for slot, what := range a.what {
		fmt.Fprintf(&b, "\t%s: %s\n", slot, what)
	}
	return b.String()
}
