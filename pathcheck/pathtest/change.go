package pathtest

import (
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// Remove removes the name path, with all beneath it.
func (t *Tree) Remove(path string) {
	t.mustFind(path)
	parent, name := t.parent(path)
	parent.children[name].info.Links--
	delete(parent.children, name)
}

// Rename moves what is at from to the name to, which is replaced.
func (t *Tree) Rename(from, to string) {
	t.mustFind(from)
	p, name := t.parent(from)
	ino := p.children[name]
	delete(p.children, name)
	q, name := t.parent(to)
	link(q, name, ino)
}

// Exchange swaps what stands at two names (RENAME_EXCHANGE of rename(2)).
func (t *Tree) Exchange(a, b string) {
	p, pn := t.parent(a)
	q, qn := t.parent(b)
	t.mustFind(a)
	t.mustFind(b)
	x, y := p.children[pn], q.children[qn]
	link(p, pn, y)
	link(q, qn, x)
}

// Info returns what stands at path, which must exist; no symlink is followed.
func (t *Tree) Info(path string) pathcheck.Info { return t.mustFind(path).ino.info }

// Each calls f for every path, "/" first, children after their directory and
// in order. A directory beneath itself (a bind mount of "/") is not entered
// again. Rights are not asked.
func (t *Tree) Each(f func(path string, info pathcheck.Info)) {
	on := map[place]bool{}
	var walk func(path string, p place)
	walk = func(path string, p place) {
		f(path, p.ino.info)
		if on[p] {
			return
		}
		on[p] = true
		for _, name := range names(p.ino) {
			walk(pathcheck.Join(path, name), t.enter(place{p.mnt, p.ino.children[name]}))
		}
		delete(on, p)
	}
	walk("/", place{t.root, t.root.root})
}

// Mounts returns the mount table of the tree.
func (t *Tree) Mounts() pathcheck.Mounts {
	var out pathcheck.Mounts
	for _, m := range t.mounts {
		parent := 0
		if m.parent != nil {
			parent = m.parent.id
		}
		out = append(out, pathcheck.Mount{
			ID: m.id, Parent: parent, Dev: m.dev, Root: inside(m.root), Point: m.point,
			Options: "rw", FSType: m.fstype, Source: "none", Super: "rw",
		})
	}
	return out
}

// inside returns the path of an inode in its file system.
func inside(ino *inode) string {
	var up []string
	for ; ino.parent != nil; ino = ino.parent {
		up = append([]string{ino.name}, up...)
	}
	return "/" + strings.Join(up, "/")
}
