package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
// If a directory is not the one that [Prepare] saw, the error is [ErrChanged].
func (pl *Plan) Walk(t pathcheck.Tree, sink Sink) (Tally, error) {
	w := walk{Plan: pl, tree: t, sink: sink, expand: maps.Clone(pl.expand), barred: maps.Clone(pl.barred), rooted: map[string]bool{}, moved: map[string]string{}}
	for path := range pl.expand {
		w.queue = append(w.queue, path)
	}
	slices.Sort(w.queue)
	if len(w.queue) == 0 {
		if err := w.everything(); err != nil {
			return w.Tally, err
		}
	}
	for _, r := range pl.Roots {
		if err := w.root(r); err != nil {
			return w.Tally, err
		}
	}
	for len(w.queue) > 0 {
		dir := w.queue[0]
		w.queue = w.queue[1:]
		if err := w.entries(dir); err != nil {
			return w.Tally, err
		}
	}
	for _, x := range pl.Exposed {
		if err := w.exposed(x); err != nil {
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
	// expand and barred are the plan's, and what the walk itself splits.
	expand map[string]pathcheck.ID
	barred map[pathcheck.ID]string
	// rooted holds the paths of the roots that have their grant.
	rooted map[string]bool
	// moved holds, for directories above something hidden that stand elsewhere
	// now, and not by a mount, where they were.
	moved map[string]string
}

// everything grants "/" as a whole.
func (w *walk) everything() error {
	root, err := w.tree.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	access := Full | IoctlDev
	if w.scoped {
		access = unwritable
	}
	return w.grant(Grant{Path: "/", Access: access}, root)
}

// root grants one writable root. One that stands above something hidden is
// granted entry by entry, as "/" is.
func (w *walk) root(r Root) error {
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
		return fmt.Errorf("%s: %w", r.Key, ErrChanged)
	case w.above[id] && r.Info.Kind == pathcheck.Directory:
		w.split(r.Path, id)
		return nil
	}
	w.rooted[r.Path] = true
	return w.grant(Grant{Path: r.Path, Access: r.Access}, node)
}

// entries grants what stands directly in dir.
func (w *walk) entries(dir string) error {
	node, err := pathcheck.Lookup(w.tree, dir)
	if err != nil {
		return fmt.Errorf("%s: %w", quote(dir), changed(err))
	}
	defer node.Close()
	if node.Info().ID != w.expand[dir] {
		return fmt.Errorf("%s: %w", quote(dir), ErrChanged)
	}
	names, err := node.List()
	switch {
	case isPermission(err):
		w.Unlisted = append(w.Unlisted, dir)
		names = w.named(dir)
	case isNotExist(err):
		return fmt.Errorf("list %s: %w", quote(dir), changed(err))
	case err != nil:
		return fmt.Errorf("list %s: %w", quote(dir), err)
	}
	for _, name := range names {
		if err := w.entry(node, dir, name); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(dir pathcheck.Node, dirPath, name string) error {
	path := pathcheck.Join(dirPath, name)
	if _, ok := w.expand[path]; ok || w.Plan.hidden[path] || w.rooted[path] {
		return nil // has or had its own turn, or none
	}
	if w.appeared(path) {
		return fmt.Errorf("%s: %w", quote(path), ErrChanged)
	}
	if was, ok := w.moved[dirPath]; ok {
		// Once the directory is back, this is what the policy hides.
		if was = pathcheck.Join(was, name); w.Plan.hidden[was] || w.appeared(was) {
			return nil
		}
	}
	node, err := dir.Open(name)
	if err != nil {
		if pathcheck.Exhausted(err) {
			return fmt.Errorf("open %s: %w", quote(path), err)
		}
		if !isNotExist(err) {
			w.Unopened++
		}
		return nil // vanished, or not ours to open: ungranted either way
	}
	defer node.Close()
	id := node.Info().ID
	if w.above[id] && node.Info().Kind == pathcheck.Directory {
		w.split(path, id)
		return nil
	}
	if _, ok := w.barred[id]; ok {
		return nil
	}
	if path == "/dev" && node.Info().Kind == pathcheck.Directory {
		return fmt.Errorf("/dev: %w", ErrChanged) // it was none before
	}
	access, split, err := w.access(path, node)
	if err != nil {
		return fmt.Errorf("look at %s: %w", quote(path), err)
	}
	if split {
		w.split(path, id)
		return nil
	}
	return w.grant(Grant{Path: path, Access: access}, node)
}

// appeared reports whether a path that the plan does not expand stands above
// something hidden: it was not there when the plan was made, and what is hidden
// beneath it may be made a moment later.
func (w *walk) appeared(path string) bool {
	above := func(h Hidden) bool { return pathcheck.Beneath(path, h.Path) }
	return slices.ContainsFunc(w.Plan.Hidden, above) || slices.ContainsFunc(w.apart, above)
}

// split puts a directory in the queue, to be granted entry by entry.
func (w *walk) split(path string, id pathcheck.ID) {
	if was, ok := w.Plan.barred[id]; ok && was != path {
		here, ok := w.mounts.Of(path)
		there, known := w.mounts.Of(was)
		if ok && known && here.ID == there.ID {
			w.moved[path] = was
		}
	}
	w.expand[path] = id
	w.barred[id] = path
	w.queue = append(w.queue, path)
	w.Split = append(w.Split, path)
}

// exposed grants one location beneath a hidden one.
func (w *walk) exposed(x Exposed) error {
	node, err := pathcheck.Lookup(w.tree, x.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", x.Key, changed(err))
	}
	defer node.Close()
	if node.Info().ID != x.Info.ID {
		return fmt.Errorf("%s: %w", x.Key, ErrChanged)
	}
	access := Full
	if by, ok := w.mounts.Of(x.Path); w.launch.EUID == 0 && (ok && kernelFS(by.FSType) || inKernel(x.Path)) {
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
		return fmt.Errorf("grant %s: %w", quote(g.Path), err)
	}
	w.Grants++
	return nil
}

// base returns what is granted on entries at path, ioctl on devices included.
func (pl *Plan) base(path string) Access {
	switch {
	case pl.launch.EUID == 0 && inKernel(path):
		return ReadOnly // a writable core_pattern starts programs outside the domain
	case pl.scoped:
		return unwritable | pl.zone(path)
	default:
		return Full | IoctlDev
	}
}

// inKernel reports whether path is that of the kernel's own files.
func inKernel(path string) bool {
	return pathcheck.Within("/proc", path) || pathcheck.Within("/sys", path)
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

// usual returns the names that are tried in a directory that cannot be listed.
func usual(dir string) []string {
	switch dir {
	case "/":
		return []string{
			"bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "media", "mnt", "nix", "opt", "proc", "root",
			"run", "sbin", "snap", "srv", "sys", "tmp", "usr", "var",
		}
	case "/dev":
		return []string{"full", "mqueue", "net", "null", "ptmx", "pts", "random", "shm", "tty", "urandom", "zero"}
	}
	return nil
}

// named returns the entries of dir that can be named without listing it.
func (w *walk) named(dir string) []string {
	seen := map[string]bool{}
	add := func(path string) {
		// A PATH may hold anything; "." and ".." would lead out of dir.
		if name, ok := below(dir, path); ok && name != "." && name != ".." && !strings.Contains(name, "\x00") {
			seen[name] = true
		}
	}
	for _, name := range usual(dir) {
		seen[name] = true
	}
	for _, m := range w.launch.Mounts {
		add(m.Point)
	}
	for _, name := range w.launch.Names {
		add(name)
		if loc, err := pathcheck.Resolve(w.tree, name); err == nil {
			add(loc.Path)
		}
	}
	for _, n := range w.launch.Needed {
		if loc, err := pathcheck.Resolve(w.tree, n.Path); err == nil {
			add(loc.Path)
		}
	}
	out := make([]string, 0, len(seen))
	for name := range seen {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
