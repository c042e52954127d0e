package pathcheck

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
)

// A Location is where a path leads once every symlink in it is followed.
type Location struct {
	// Path is absolute, clean, and free of symlinks as far as it exists.
	Path string
	// Exists is false when a component is missing or may not be looked up;
	// the rest of Path is then taken as it stands in the text.
	Exists bool
	// Denied is set when a component may not be looked up. Whether the rest
	// exists, and whether a symlink in it leads elsewhere, is not known.
	Denied bool
	// Info describes the inode when Exists.
	Info Info
	// Above holds the existing directories strictly above Path, "/" first.
	Above []Place
	// Links holds the location of each symlink that was followed.
	Links []string
	// LinkDirs holds, for each of Links, the identities of the directories in
	// which it was found: "/" first, the one that holds it last. Its path may be
	// another's by now.
	LinkDirs [][]ID
}

// A Place is an existing directory and its identity.
type Place struct {
	Path string
	ID   ID
}

// MaxLinks is how many symlinks one resolution follows, as in path_resolution(7).
const MaxLinks = 40

// Errors of [Resolve]; use errors.Is.
var (
	ErrNotAbsolute = errors.New("not an absolute path")
	ErrNotDir      = syscall.ENOTDIR
	ErrLoop        = syscall.ELOOP
	// ErrDotDot is a ".." behind a component that does not exist.
	ErrDotDot = errors.New(`".." behind a directory that does not exist`)
	// ErrChanged is a directory that was another one a moment ago.
	ErrChanged = errors.New("the file system changed while the launch was planned")
)

// Resolve follows path through t as the kernel would, by component, and holds
// at most two nodes open beside those that a [Kept] keeps.
//
// path must be absolute; it need not be clean: ".." is taken physically, behind
// the symlink before it. A missing tail is no error, and neither is "/" or "."
// behind a file. A non-directory in the middle is one ([ErrNotDir]), and so are a
// loop ([ErrLoop]) and a directory that is another one when ".." leads through it
// again ([ErrChanged]).
func Resolve(t Tree, path string) (Location, error) {
	if !strings.HasPrefix(path, "/") {
		return Location{}, ErrNotAbsolute
	}
	k, ok := t.(*Kept)
	if !ok {
		return resolve(t, path)
	}
	f, ok := k.found[path]
	if !ok {
		f.loc, f.err = resolve(t, path)
		k.found[path] = f
		k.note(f.err)
	}
	return f.loc, f.err
}

func resolve(t Tree, path string) (Location, error) {
	r := resolver{tree: t, rest: split(path)}
	defer r.close()
	if err := r.start(nil); err != nil {
		return Location{}, err
	}
	for len(r.rest) > 0 {
		name := r.rest[0]
		r.rest = r.rest[1:]
		if err := r.step(name); err != nil {
			return Location{}, err
		}
		if r.missing {
			break
		}
	}
	return r.location()
}

type resolver struct {
	tree    Tree
	rest    []string
	names   []string // components of the place reached
	ids     []ID     // identities: ids[0] is "/", ids[i] that of names[:i]
	cur     Node
	links   []string
	dirs    [][]ID
	missing bool
	denied  bool
	tail    []string
}

func (r *resolver) close() {
	if r.cur != nil {
		r.cur.Close()
		r.cur = nil
	}
}

// start goes to "/" and from there down names, where it was before: what it
// finds there now must be the same.
func (r *resolver) start(names []string) error {
	r.close()
	before := r.ids
	root, err := r.tree.Root()
	if err != nil {
		return err
	}
	r.cur, r.names, r.ids = root, nil, []ID{root.Info().ID}
	for _, name := range names {
		next, err := open(r.cur, name)
		if err != nil {
			return fmt.Errorf("%w: %q: %w", ErrChanged, name, err)
		}
		r.enter(name, next)
		if i := len(r.names); r.ids[i] != before[i] {
			return fmt.Errorf("%w: %q", ErrChanged, name)
		}
	}
	return nil
}

func (r *resolver) enter(name string, next Node) {
	r.cur.Close()
	r.cur = next
	r.names = append(r.names, name)
	r.ids = append(r.ids, next.Info().ID)
}

func (r *resolver) step(name string) error {
	if r.cur.Info().Kind != Directory {
		return fmt.Errorf("%q: %w", pathOf(r.names), ErrNotDir)
	}
	if name == ".." {
		if len(r.names) == 0 {
			return nil
		}
		return r.start(append([]string(nil), r.names[:len(r.names)-1]...))
	}
	next, err := open(r.cur, name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		r.missing, r.denied = true, errors.Is(err, fs.ErrPermission)
		r.tail = append([]string{name}, r.rest...)
		for _, c := range r.tail {
			if c == ".." {
				return ErrDotDot
			}
		}
		return nil
	case err != nil:
		return err
	}
	if next.Info().Kind != Symlink {
		r.enter(name, next)
		return nil
	}
	defer next.Close()
	r.links = append(r.links, pathOf(append(slices.Clip(r.names), name)))
	r.dirs = append(r.dirs, slices.Clone(r.ids))
	if len(r.links) > MaxLinks {
		return ErrLoop
	}
	text, err := next.ReadLink()
	if err != nil {
		return err
	}
	if text == "" {
		return fs.ErrNotExist
	}
	r.rest = append(split(text), r.rest...)
	if strings.HasPrefix(text, "/") {
		return r.start(nil)
	}
	return nil
}

func (r *resolver) location() (Location, error) {
	full := "/" + strings.Join(append(slices.Clip(r.names), r.tail...), "/")
	loc := Location{Path: full, Exists: !r.missing, Denied: r.denied}
	above := len(r.ids)
	if loc.Exists {
		loc.Info = r.cur.Info()
		above--
	} else if r.cur.Info().Kind != Directory {
		return Location{}, fmt.Errorf("%q: %w", pathOf(r.names), ErrNotDir)
	}
	loc.Above = make([]Place, above)
	end := 0
	for i := range loc.Above {
		// The directories above are beginnings of the whole path.
		if i > 0 {
			end += len("/") + len(r.names[i-1])
		}
		loc.Above[i] = Place{Path: full[:max(end, 1)], ID: r.ids[i]}
	}
	loc.Links, loc.LinkDirs = slices.Clip(r.links), slices.Clip(r.dirs) // a Kept remembers them
	return loc, nil
}

// split returns the components of a path without empty ones and ".".
func split(path string) []string {
	var out []string
	for c := range strings.SplitSeq(path, "/") {
		if c != "" && c != "." {
			out = append(out, c)
		}
	}
	return out
}

func pathOf(names []string) string { return "/" + strings.Join(names, "/") }

// Lookup opens the place at path, which must be absolute, clean and free of
// symlinks; a symlink in it is [ErrLoop]. It holds at most two nodes open beside
// those that a [Kept] keeps.
func Lookup(t Tree, path string) (Node, error) {
	n, err := lookup(t, path)
	if k, ok := t.(*Kept); ok {
		k.note(err)
	}
	return n, err
}

func lookup(t Tree, path string) (Node, error) {
	cur, err := t.Root()
	if err != nil {
		return nil, err
	}
	for _, name := range split(path) {
		if k := cur.Info().Kind; k != Directory {
			cur.Close()
			if k == Symlink {
				return nil, ErrLoop
			}
			return nil, ErrNotDir
		}
		next, err := open(cur, name)
		cur.Close()
		if err != nil {
			return nil, err
		}
		cur = next
	}
	if cur.Info().Kind == Symlink {
		cur.Close()
		return nil, ErrLoop
	}
	return cur, nil
}
