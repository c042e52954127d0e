package pathcheck

import (
	"errors"
	"slices"
	"syscall"
)

// maxKept is how many directories a [Kept] holds open.
const maxKept = 16

// A Kept is a tree that holds open the directories through which [Resolve] and
// [Lookup] went last, and remembers what Resolve found. Each of them would
// otherwise open every directory above a path again.
//
// So what it answers may be as old as the Kept itself. It is for one pass over
// the file system, whose outcome is checked by identity afterwards; [Node.Open]
// opens anew, always.
type Kept struct {
	tree  Tree
	root  *keptNode
	dirs  map[keptName]*keptNode
	order []keptName // the one used last is the last
	found map[string]found
	err   error
}

type keptName struct {
	dir  *keptNode
	name string
}

type found struct {
	loc Location
	err error
}

// Keep returns t with a memory. It must be released.
func Keep(t Tree) *Kept {
	return &Kept{tree: t, dirs: map[keptName]*keptNode{}, found: map[string]found{}}
}

// Root opens "/", once.
func (k *Kept) Root() (Node, error) {
	if k.root == nil {
		n, err := k.tree.Root()
		if err != nil {
			return nil, err
		}
		k.root = &keptNode{Node: n, kept: k, uses: 1}
	}
	k.root.uses++
	return k.root, nil
}

// Err returns an error by which a lookup failed though nothing may be wrong with
// its path: see [Exhausted]. A pass that met one knows too little, even where it
// took the path for one that leads nowhere.
func (k *Kept) Err() error { return k.err }

func (k *Kept) note(err error) {
	if k.err == nil && Exhausted(err) {
		k.err = err
	}
}

// Exhausted reports whether a call failed for want of descriptors or memory.
func Exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// Release closes the directories that nobody else has open, and ends the use of
// the tree.
func (k *Kept) Release() {
	k.forget()
	k.dirs = nil
	if k.root != nil {
		k.root.Close()
		k.root = nil
	}
}

func (k *Kept) forget() {
	for _, n := range k.dirs {
		n.Close()
	}
	clear(k.dirs)
	k.order = k.order[:0]
}

// A keptNode is a directory with several users, one of which is the Kept as long
// as it has it. The last one closes it.
type keptNode struct {
	Node
	kept *Kept
	uses int
}

// Open and List are those of the node; where descriptors are scarce, those that
// are only kept make room.
func (n *keptNode) Open(name string) (Node, error) {
	next, err := n.Node.Open(name)
	if n.kept.makeRoom(err) {
		next, err = n.Node.Open(name)
	}
	return next, err
}

func (n *keptNode) List() ([]string, error) {
	names, err := n.Node.List()
	if n.kept.makeRoom(err) {
		names, err = n.Node.List()
	}
	return names, err
}

// makeRoom gives up the directories that are only kept, if a call failed because
// this process has no descriptor left. It reports whether that may help.
func (k *Kept) makeRoom(err error) bool {
	if !errors.Is(err, syscall.EMFILE) || len(k.dirs) == 0 {
		return false
	}
	k.forget()
	return true
}

func (n *keptNode) Close() error {
	if n.uses--; n.uses > 0 {
		return nil
	}
	return n.Node.Close()
}

// open is [Node.Open] for a lookup, which takes a directory that is kept.
func open(n Node, name string) (Node, error) {
	dir, ok := n.(*keptNode)
	if !ok || dir.kept.dirs == nil {
		return n.Open(name)
	}
	k, key := dir.kept, keptName{dir, name}
	if next, ok := k.dirs[key]; ok {
		k.touch(key)
		next.uses++
		return next, nil
	}
	next, err := dir.Open(name)
	if err != nil || next.Info().Kind != Directory {
		return next, err
	}
	if len(k.order) == maxKept {
		old := k.order[0]
		k.dirs[old].Close()
		delete(k.dirs, old)
		k.order = slices.Delete(k.order, 0, 1)
	}
	kept := &keptNode{Node: next, kept: k, uses: 2}
	k.dirs[key] = kept
	k.order = append(k.order, key)
	return kept, nil
}

func (k *Kept) touch(key keptName) {
	if i := slices.Index(k.order, key); i >= 0 {
		k.order = append(slices.Delete(k.order, i, i+1), key)
	}
}
