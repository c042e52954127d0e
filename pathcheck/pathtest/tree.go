package pathtest

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// A Tree is a [pathcheck.Tree] in memory. Make one with [New].
type Tree struct {
	// BeforeOpen and BeforeList, when set, are called with the path of the
	// place that is about to be opened or listed. They may change the tree:
	// the operation sees what they leave. "/" is opened for [Tree.Root].
	BeforeOpen, BeforeList func(path string)

	root    *mount
	mounts  []*mount
	nextIno uint64
	open    int
	maxOpen int
	opens   int
}

// An inode knows its parent directory, for the mount table.
type inode struct {
	info     pathcheck.Info
	target   string // of a symlink
	children map[string]*inode
	parent   *inode
	name     string
	noList   bool
	noSearch bool
	fail     error // what opening it answers
}

type mount struct {
	id     int
	parent *mount // nil for the root
	on     *inode // the inode that is covered, in parent
	root   *inode
	point  string
	dev    string
	fstype string
}

// place is what a path leads to: an inode as seen through a mount.
type place struct {
	mnt *mount
	ino *inode
}

// Root opens "/".
func (t *Tree) Root() (pathcheck.Node, error) {
	t.before(t.BeforeOpen, "/")
	return t.node(place{t.root, t.root.root}, "/"), nil
}

// Open returns the number of nodes that are open now.
func (t *Tree) Open() int { return t.open }

// MaxOpen returns the largest number of nodes that were open at one time.
func (t *Tree) MaxOpen() int { return t.maxOpen }

// Opens returns how many nodes were opened in all.
func (t *Tree) Opens() int { return t.opens }

// before calls a hook. A hook that looks at the tree is not called for that.
func (t *Tree) before(hook func(string), path string) {
	if hook == nil {
		return
	}
	o, l := t.BeforeOpen, t.BeforeList
	t.BeforeOpen, t.BeforeList = nil, nil
	hook(path)
	t.BeforeOpen, t.BeforeList = o, l
}

func (t *Tree) node(p place, path string) *node {
	t.open++
	t.opens++
	t.maxOpen = max(t.maxOpen, t.open)
	return &node{tree: t, place: p, path: path, info: p.ino.info}
}

// enter crosses into the topmost mount that stands on p.
func (t *Tree) enter(p place) place {
	for again := true; again; {
		again = false
		for _, m := range t.mounts {
			if m.parent == p.mnt && m.on == p.ino {
				p, again = place{m, m.root}, true
				break
			}
		}
	}
	return p
}

type node struct {
	tree   *Tree
	place  place
	path   string
	info   pathcheck.Info
	closed bool
}

func (n *node) use(op string) {
	if n.closed {
		panic(fmt.Sprintf("pathtest: %s of closed node %q", op, n.path))
	}
}

// Info returns what held when the node was opened.
func (n *node) Info() pathcheck.Info {
	n.use("Info")
	return n.info
}

func (n *node) Open(name string) (pathcheck.Node, error) {
	n.use("Open")
	if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
		panic(fmt.Sprintf("pathtest: Open(%q) in %q is no single component", name, n.path))
	}
	path := pathcheck.Join(n.path, name)
	n.tree.before(n.tree.BeforeOpen, path)
	fail := func(err error) (pathcheck.Node, error) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	dir := n.place.ino
	switch {
	case dir.info.Kind != pathcheck.Directory:
		return fail(syscall.ENOTDIR)
	case dir.noSearch:
		return fail(syscall.EACCES)
	case strings.Contains(name, "\x00"):
		return fail(syscall.EINVAL)
	case len(name) > 255:
		return fail(syscall.ENAMETOOLONG)
	}
	child, ok := dir.children[name]
	if !ok {
		return fail(syscall.ENOENT)
	}
	p := n.tree.enter(place{n.place.mnt, child})
	if p.ino.fail != nil {
		return fail(p.ino.fail)
	}
	return n.tree.node(p, path), nil
}

func (n *node) List() ([]string, error) {
	n.use("List")
	n.tree.before(n.tree.BeforeList, n.path)
	dir := n.place.ino
	switch {
	case dir.info.Kind != pathcheck.Directory:
		return nil, &fs.PathError{Op: "list", Path: n.path, Err: syscall.ENOTDIR}
	case dir.noList || dir.noSearch:
		return nil, &fs.PathError{Op: "list", Path: n.path, Err: syscall.EACCES}
	}
	return names(dir), nil
}

func (n *node) ReadLink() (string, error) {
	n.use("ReadLink")
	if n.info.Kind != pathcheck.Symlink {
		return "", &fs.PathError{Op: "readlink", Path: n.path, Err: syscall.EINVAL}
	}
	return n.place.ino.target, nil
}

func (n *node) Close() error {
	n.use("Close")
	n.closed = true
	n.tree.open--
	return nil
}

func names(dir *inode) []string {
	out := make([]string, 0, len(dir.children))
	for name := range dir.children {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
