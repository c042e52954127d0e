package command

import "fmt"

// A Violation is what a command string names and may not.
type Violation struct {
	Kind Kind
	// Path is the path as the text names it, or the network word.
	Path string
	// Workspace is that of the options.
	Workspace string
	// Pos is the offset in bytes in the command string.
	Pos int
}

// Kind says which rule a [Violation] breaks.
type Kind uint8

const (
	// Absolute is an absolute path outside the roots.
	Absolute Kind = iota
	// Relative is a path that leaves the roots by ".." or a symlink.
	Relative
	// Cd is a change of directory that leaves the roots.
	Cd
	// Network is a word or a redirection that reaches the network.
	Network
)

// Error starts with "sandbox violation: ". The texts of Absolute and Cd are
// those that an existing harness shows its models.
func (v *Violation) Error() string {
	switch v.Kind {
	case Cd:
		return "sandbox violation: cd outside workspace is not permitted in workspace sandbox scope"
	case Network:
		return fmt.Sprintf("sandbox violation: %q reaches the network, which is denied", v.Path)
	case Relative:
		return fmt.Sprintf("sandbox violation: path %q escapes workspace %q", v.Path, v.Workspace)
	default:
		return fmt.Sprintf("sandbox violation: absolute path %q escapes workspace %q", v.Path, v.Workspace)
	}
}
