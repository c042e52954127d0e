package plan

import "github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"

// A Grant is one decision of a plan: these rights on this inode, and on all
// beneath it if it is a directory.
type Grant struct {
	// Path is the place at which the inode was found, for people; the grant
	// is about the node.
	Path   string
	Access Access
}

// A Sink takes the grants of a walk. The node is open during the call only.
type Sink interface {
	Grant(g Grant, n pathcheck.Node) error
}

// Recorder is a [Sink] that keeps the grants, for explanations and tests.
type Recorder struct{ Grants []Grant }

// Grant keeps g.
func (r *Recorder) Grant(g Grant, _ pathcheck.Node) error {
	r.Grants = append(r.Grants, g)
	return nil
}
