package pathtest

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// New makes a tree from lines of text. Directories above a path are made when
// they are missing. Blank lines and what follows a "#" are ignored.
//
//	/srv/work/              a directory
//	/srv/work/main.c        a regular file
//	/srv/link -> work       a symlink
//	/srv/other == /srv/f    a hard link: one inode, two names
//	/dev/null char 1:3      a character device; "block 8:0" for a block device
//	/run/sock socket        a socket; "fifo" for a named pipe
//	/root/ nolist           List answers EACCES
//	/root/ nosearch         Open and List in it answer EACCES
//	/mnt/dead/ fail         opening it answers ENOTCONN
//	/mnt/d/ mount ext4 8:2  an empty file system on a directory
//	/x bind /srv/work       a bind mount; the path is made if it is missing
//
// What a line says goes through the mounts of the lines before it. A line that
// cannot be understood panics.
func New(text string) *Tree {
	t := &Tree{}
	root := t.inode(pathcheck.Directory, devNumber("8:1"))
	t.root = &mount{id: 1, root: root, point: "/", dev: "8:1", fstype: "ext4"}
	t.mounts = []*mount{t.root}
	t.Add(text)
	return t
}

// Add adds lines as [New] reads them.
func (t *Tree) Add(text string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) > 0 {
			t.add(f)
		}
	}
}

func (t *Tree) add(f []string) {
	path, dir := strings.CutSuffix(f[0], "/")
	if path == "" {
		path = "/"
	}
	arg := func(i int) string {
		if i >= len(f) {
			panic(fmt.Sprintf("pathtest: %q: too short", f))
		}
		return f[i]
	}
	switch {
	case len(f) == 1 && dir:
		t.make(path, pathcheck.Directory)
	case len(f) == 1:
		t.make(path, pathcheck.Regular)
	case f[1] == "->":
		t.make(path, pathcheck.Symlink).target = arg(2)
	case f[1] == "==":
		ino := t.mustFind(arg(2)).ino
		parent, name := t.parent(path)
		parent.children[name] = ino
		ino.info.Links++
	case f[1] == "char" || f[1] == "block":
		kind := pathcheck.CharDevice
		if f[1] == "block" {
			kind = pathcheck.BlockDevice
		}
		ino := t.make(path, kind)
		n := devNumber(arg(2))
		ino.info.Major, ino.info.Minor = uint32(n>>20), uint32(n&0xfffff)
	case f[1] == "socket":
		t.make(path, pathcheck.Socket)
	case f[1] == "fifo":
		t.make(path, pathcheck.FIFO)
	case f[1] == "nolist":
		t.make(path, pathcheck.Directory).noList = true
	case f[1] == "nosearch":
		t.make(path, pathcheck.Directory).noSearch = true
	case f[1] == "fail":
		t.make(path, pathcheck.Directory).fail = syscall.ENOTCONN
	case f[1] == "mount":
		t.make(path, pathcheck.Directory)
		root := t.inode(pathcheck.Directory, devNumber(arg(3)))
		t.mount(path, root, arg(3), arg(2))
	case f[1] == "bind":
		src := t.mustFind(arg(2))
		if _, ok := t.find(path); !ok {
			t.make(path, src.ino.info.Kind)
		}
		t.mount(path, src.ino, src.mnt.dev, src.mnt.fstype)
	default:
		panic(fmt.Sprintf("pathtest: %q: unknown", f))
	}
}

func devNumber(text string) uint64 {
	major, minor, _ := strings.Cut(text, ":")
	a, err1 := strconv.ParseUint(major, 10, 12)
	b, err2 := strconv.ParseUint(minor, 10, 20)
	if err1 != nil || err2 != nil {
		panic(fmt.Sprintf("pathtest: %q is no device number", text))
	}
	return a<<20 | b
}

func (t *Tree) inode(kind pathcheck.Kind, dev uint64) *inode {
	t.nextIno++
	ino := &inode{info: pathcheck.Info{
		ID: pathcheck.ID{Dev: dev, Ino: t.nextIno}, Kind: kind, Links: 1, Mode: 0o755,
	}}
	if kind == pathcheck.Directory {
		ino.children = map[string]*inode{}
		ino.info.Links = 2
	}
	return ino
}

// make makes what path names, or returns what is there if the kind is the same.
func (t *Tree) make(path string, kind pathcheck.Kind) *inode {
	if p, ok := t.find(path); ok {
		if p.ino.info.Kind != kind {
			panic(fmt.Sprintf("pathtest: %q exists and is something else", path))
		}
		return p.ino
	}
	parent, name := t.parent(path)
	ino := t.inode(kind, parent.info.Dev)
	link(parent, name, ino)
	return ino
}

func link(parent *inode, name string, ino *inode) {
	parent.children[name] = ino
	ino.parent, ino.name = parent, name
}

// parent returns the directory above path, made if it is missing.
func (t *Tree) parent(path string) (dir *inode, name string) {
	if path == "/" || path[0] != '/' {
		panic(fmt.Sprintf("pathtest: %q has no directory above it", path))
	}
	dir = t.make(pathcheck.Parent(path), pathcheck.Directory)
	return dir, path[strings.LastIndexByte(path, '/')+1:]
}

// find follows no symlink.
func (t *Tree) find(path string) (place, bool) {
	p := place{t.root, t.root.root}
	if path == "/" {
		return p, true
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		child, ok := p.ino.children[name]
		if !ok {
			return place{}, false
		}
		p = t.enter(place{p.mnt, child})
	}
	return p, true
}

func (t *Tree) mustFind(path string) place {
	p, ok := t.find(path)
	if !ok {
		panic(fmt.Sprintf("pathtest: no %q", path))
	}
	return p
}

func (t *Tree) mount(path string, root *inode, dev, fstype string) {
	on := t.mustFind(path)
	dir := on.ino.info.Kind == pathcheck.Directory
	if dir != (root.info.Kind == pathcheck.Directory) {
		panic(fmt.Sprintf("pathtest: mount on %q: a directory and a file", path)) // ENOTDIR, mount(2)
	}
	if root.info.Kind == pathcheck.Symlink {
		panic(fmt.Sprintf("pathtest: mount of a symlink on %q", path))
	}
	if !dir && on.ino.info.Links > 1 {
		panic(fmt.Sprintf("pathtest: mount on %q: one of several names", path)) // mounts are kept by inode here
	}
	t.mounts = append(t.mounts, &mount{
		id: len(t.mounts) + 1, parent: on.mnt, on: on.ino, root: root, point: path, dev: dev, fstype: fstype,
	})
}
