package planner

import (
	"errors"
	"io/fs"
	"os"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// A foreseen is a tree in which directories that a launch would make are there
// already, and empty.
type foreseen struct {
	pathcheck.Tree
	made map[string]pathcheck.Info
}

// foresee returns t with the directories that are missing.
func foresee(t pathcheck.Tree, missing []plan.MissingDir) pathcheck.Tree {
	made := map[string]pathcheck.Info{}
	for _, dir := range missing {
		path := dir.Above.Path
		for _, name := range dir.Names {
			path = pathcheck.Join(path, name)
			if _, ok := made[path]; ok {
				continue
			}
			made[path] = pathcheck.Info{
				// No device has this number.
				ID: pathcheck.ID{Dev: ^uint64(0), Ino: uint64(len(made))}, Kind: pathcheck.Directory,
				Links: 2, Mode: dir.Mode, UID: uint32(os.Geteuid()),
			}
		}
	}
	return foreseen{t, made}
}

func (f foreseen) Root() (pathcheck.Node, error) {
	n, err := f.Tree.Root()
	if err != nil {
		return nil, err
	}
	return foreseenNode{n, f, "/"}, nil
}

// A foreseenNode is a node at a path; without one of its own, it is foreseen.
type foreseenNode struct {
	pathcheck.Node
	tree foreseen
	path string
}

func (n foreseenNode) Open(name string) (pathcheck.Node, error) {
	path := pathcheck.Join(n.path, name)
	var next pathcheck.Node
	err := error(fs.ErrNotExist)
	if n.Node != nil {
		next, err = n.Node.Open(name)
	}
	if _, made := n.tree.made[path]; errors.Is(err, fs.ErrNotExist) && made {
		next, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	return foreseenNode{next, n.tree, path}, nil
}

func (n foreseenNode) Info() pathcheck.Info {
	if n.Node == nil {
		return n.tree.made[n.path]
	}
	return n.Node.Info()
}

func (n foreseenNode) List() ([]string, error) {
	if n.Node == nil {
		return nil, nil
	}
	return n.Node.List()
}

func (n foreseenNode) Close() error {
	if n.Node == nil {
		return nil
	}
	return n.Node.Close()
}
