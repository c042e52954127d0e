package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// A Tally says what a walk did.
type Tally struct {
	// Grants is the number of grants handed to the sink.
	Grants int
	// Unopened counts entries that could not be opened and so stay ungranted.
	Unopened int
	// Split holds directories that were granted entry by entry though the
	// plan does not freeze them: directories of /dev, and those that a bind
	// mount shows and that stand above something hidden at another path.
	Split []string
	// Unlisted holds the directories that could not be listed, of which only
	// what can be named was granted.
	Unlisted []string
}

// Walk hands the grants of the plan to sink: everything but the hidden
// locations, from each directory above them entry by entry. Landlock only
// ever grants, so what is not handed over is denied.
//
// Each entry is opened once, relative to its directory and without following
// a symlink, and what counts is the inode that was opened: one that is hidden
// or stands above a hidden one is left out under whatever name it has now.
// At most a handful of nodes are open at a time.
//
// If a directory is not the one that [Make] saw, the error is [pathcheck.ErrChanged].
func (pl *Plan) Walk(t pathcheck.Tree, sink Sink) (Tally, error) {
	w := walk{Plan: pl, tree: t, sink: sink, expand: maps.Clone(pl.expand), ungranted: maps.Clone(pl.ungranted), rooted: map[string]bool{}, moved: map[string]string{}}
	for path := range pl.expand {
		w.queue = append(w.queue, path)
	}
	slices.Sort(w.queue)
	if len(w.queue) == 0 {
		access := Full | IoctlDev
		if w.scoped {
			access = unwritable
		}
		if err := w.grantTop(access); err != nil {
			return w.Tally, err
		}
	} else if w.listable {
		if err := w.grantTop(ReadOnly); err != nil {
			return w.Tally, err
		}
	}
	for _, r := range pl.Roots {
		if err := w.grantRoot(r); err != nil {
			return w.Tally, err
		}
	}
	for len(w.queue) > 0 {
		dir := w.queue[0]
		w.queue = w.queue[1:]
		if err := w.grantEntries(dir); err != nil {
			return w.Tally, err
		}
	}
	for _, x := range pl.Exposed {
		if err := w.grantExposed(x); err != nil {
			return w.Tally, err
		}
	}
	return w.Tally, nil
}

type walk struct {
	*Plan
	Tally
	tree  pathcheck.Tree
	sink  Sink
	queue []string
	// expand and ungranted are the plan's, and what the walk itself adds by split.
	expand    map[string]pathcheck.ID
	ungranted map[pathcheck.ID]string
	// rooted holds the paths of the roots that have their grant.
	rooted map[string]bool
	// moved holds, for directories above something hidden that were renamed since
	// the plan was made, the paths that they had.
	moved map[string]string
}

// grantTop grants "/" as a whole.
func (w *walk) grantTop(access Access) error {
	root, err := w.tree.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	return w.grant(Grant{Path: "/", Access: access}, root)
}

// grantRoot grants one writable root. One that stands above something hidden is
// granted entry by entry, as "/" is.
func (w *walk) grantRoot(r Root) error {
	if _, ok := w.expand[r.Path]; ok {
		return nil
	}
	node, err := pathcheck.Lookup(w.tree, r.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", r.Key, changed(err))
	}
	defer node.Close()
	id := node.Info().ID
	switch {
	case id != r.Info.ID || node.Info().Kind != r.Info.Kind:
		return fmt.Errorf("%s: %w", r.Key, pathcheck.ErrChanged)
	case w.ancestors[id] && r.Info.Kind == pathcheck.Directory:
		w.split(r.Path, id)
		return nil
	}
	w.rooted[r.Path] = true
	return w.grant(Grant{Path: r.Path, Access: r.Access}, node)
}

// grantEntries grants what stands directly in dir.
func (w *walk) grantEntries(dir string) error {
	node, err := pathcheck.Lookup(w.tree, dir)
	if err != nil {
		return fmt.Errorf("%s: %w", strconv.Quote(dir), changed(err))
	}
	defer node.Close()
	if node.Info().ID != w.expand[dir] {
		return fmt.Errorf("%s: %w", strconv.Quote(dir), pathcheck.ErrChanged)
	}
	names, err := node.List()
	switch {
	case errors.Is(err, fs.ErrPermission):
		w.Unlisted = append(w.Unlisted, dir)
		names = w.named(dir)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("list %s: %w", strconv.Quote(dir), changed(err))
	case err != nil:
		return fmt.Errorf("list %s: %w", strconv.Quote(dir), err)
	}
	for _, name := range names {
		if err := w.grantEntry(node, dir, name); err != nil {
			return err
		}
	}
	return nil
}

// grantEntry grants one entry of a directory, or splits it, or leaves it out.
func (w *walk) grantEntry(dir pathcheck.Node, dirPath, name string) error {
	path := pathcheck.Join(dirPath, name)
	if _, ok := w.expand[path]; ok || w.isHidden(path) || w.rooted[path] {
		return nil // has or had its own turn, or none
	}
	if w.aboveHidden[path] {
		// It was not there when the plan was made, and what is hidden beneath it may
		// be made a moment later.
		return fmt.Errorf("%s: %w", strconv.Quote(path), pathcheck.ErrChanged)
	}
	if was, ok := w.moved[dirPath]; ok {
		// Once the directory is back, this is what the policy hides.
		if was = pathcheck.Join(was, name); w.isHidden(was) || w.aboveHidden[was] {
			return nil
		}
	}
	node, err := dir.Open(name)
	if err != nil {
		if pathcheck.Exhausted(err) {
			return fmt.Errorf("open %s: %w", strconv.Quote(path), err)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			w.Unopened++
		}
		return nil // vanished, or not ours to open: ungranted either way
	}
	defer node.Close()
	id := node.Info().ID
	if w.ancestors[id] && node.Info().Kind == pathcheck.Directory {
		w.split(path, id)
		return nil
	}
	if _, ok := w.ungranted[id]; ok {
		return nil
	}
	if path == "/dev" && !w.listable && node.Info().Kind == pathcheck.Directory {
		return fmt.Errorf("/dev: %w", pathcheck.ErrChanged) // it was none before
	}
	access, split, err := w.access(path, node)
	if err != nil {
		return fmt.Errorf("look at %s: %w", strconv.Quote(path), err)
	}
	if split {
		w.split(path, id)
		return nil
	}
	return w.grant(Grant{Path: path, Access: access}, node)
}

// split puts a directory in the queue, to be granted entry by entry.
func (w *walk) split(path string, id pathcheck.ID) {
	if was, ok := w.Plan.ungranted[id]; ok && was != path {
		here, ok := w.mounts.Of(path)
		there, known := w.mounts.Of(was)
		if ok && known && here.ID == there.ID {
			w.moved[path] = was
		}
	}
	w.expand[path] = id
	w.ungranted[id] = path
	w.queue = append(w.queue, path)
	w.Split = append(w.Split, path)
}

// grantExposed grants one location beneath a hidden one.
func (w *walk) grantExposed(x Exposed) error {
	node, err := pathcheck.Lookup(w.tree, x.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", x.Key, changed(err))
	}
	defer node.Close()
	if node.Info().ID != x.Info.ID {
		return fmt.Errorf("%s: %w", x.Key, pathcheck.ErrChanged)
	}
	access := Full
	if by, ok := w.mounts.Of(x.Path); w.readable(x.Path) || ok && (w.launch.EUID == 0 && kernelFS(by.FSType) || w.noGroups && groupFS(by.FSType)) {
		access = ReadOnly
	}
	switch node.Info().Kind {
	case pathcheck.Directory:
		if pathcheck.Beneath("/dev", x.Path) {
			access |= IoctlDev
		}
	case pathcheck.CharDevice:
		access = device
	default:
		access &= fileAccess
	}
	return w.grant(Grant{Path: x.Path, Access: access}, node)
}

func (w *walk) grant(g Grant, n pathcheck.Node) error {
	if g.Access == 0 {
		return nil
	}
	if err := w.sink.Grant(g, n); err != nil {
		return fmt.Errorf("grant %s: %w", strconv.Quote(g.Path), err)
	}
	w.Grants++
	return nil
}

// base returns what is granted on entries at path, ioctl on devices included.
func (pl *Plan) base(path string) Access {
	switch {
	case pl.readable(path):
		return ReadOnly // a writable core_pattern starts programs outside the domain
	case pl.scoped:
		return unwritable | pl.rootAccess(path)
	default:
		return Full | IoctlDev
	}
}

// access decides about one entry: the rights, or that it must be granted entry
// by entry itself.
func (w *walk) access(path string, n pathcheck.Node) (access Access, split bool, err error) {
	info := n.Info()
	switch info.Kind {
	case pathcheck.Symlink, pathcheck.BlockDevice:
		return 0, false, nil
	case pathcheck.CharDevice:
		if rawDevice(path, info) {
			return 0, false, nil
		}
		return w.base(path) & device, false, nil
	case pathcheck.Directory:
		if path == "/dev" && w.listable {
			return w.base(path), false, nil
		}
		if !pathcheck.Beneath("/dev", path) {
			return w.base(path) &^ IoctlDev, false, nil
		}
		if rawDevice(path, info) {
			return 0, false, nil
		}
		if path != "/dev/pts" && path != "/dev/shm" {
			split, err = holdsRawDevice(path, n, maxDeviceDepth)
		}
		if split || err != nil {
			return 0, split, err
		}
		return w.base(path), false, nil
	default:
		return w.base(path) & fileAccess &^ IoctlDev, false, nil
	}
}
