package rules

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// A Plan is a policy brought to the ground: which real locations are hidden,
// what stands above them, and with which identities. [Plan.Walk] turns it into
// grants.
type Plan struct {
	// Hidden holds the policy's hidden locations in its order, then the
	// other paths that lead to them or that only root must not reach.
	Hidden []Hidden
	// Exposed holds the exposed locations in the policy's order.
	Exposed []Exposed
	// Frozen holds the directories that can no longer be listed and take no
	// new entries, sorted.
	Frozen []string
	// Limits holds what this launch cannot hold of its policy, beyond what
	// [Assess] says of every launch.
	Limits []Gap
	// Ways holds the symlinks by which entries of hidden and exposed lead to
	// their places, for the entries that have some.
	Ways []Way
	// Roots holds what scope workspace leaves writable: the workspace first.
	Roots []Root
	// Warnings holds sentences about what the launch must be told of: roots
	// that the environment names and that are not granted.
	Warnings []string

	launch Launch
	// mounts answers for launch.Mounts; overlays are those of them that are some,
	// one of each.
	mounts   *pathcheck.MountIndex
	overlays []pathcheck.Mount
	// scoped is set for scope workspace: only the roots are writable.
	scoped bool
	// expand holds the directories that are granted entry by entry.
	expand map[string]pathcheck.ID
	// barred holds the identities that are never granted: the hidden
	// locations and all that stands above them.
	barred map[pathcheck.ID]string
	// above holds those of barred that only stand above something hidden:
	// where a mount shows one at another path, its entries can be granted.
	above  map[pathcheck.ID]bool
	hidden map[string]bool
	// apart holds mounts of /proc and /sys themselves at other paths: see
	// [Plan.setApart].
	apart []Hidden
	// open holds the policy's exposed entries, before they are checked.
	open []located
	// layers remembers where the layers of overlays really are.
	layers map[string]string
}

// A Hidden is one location that the launch must not reach.
type Hidden struct {
	// Key names the policy entry it comes from.
	Key string
	// Path is the real location.
	Path string
	// Exists and Info describe it at planning time.
	Exists bool
	Info   pathcheck.Info
	// Alias is set when the policy does not name it: the same place, or a
	// part of it, seen through another mount, or a mount that root must not
	// reach.
	Alias bool

	origin origin
	above  []pathcheck.Place
}

// An Exposed is one location beneath a hidden one that stays open.
type Exposed struct {
	Key  string
	Path string
	Info pathcheck.Info
}

// A Way is how a policy entry leads to its place.
type Way struct {
	Key string
	// Links holds the location of each symlink, in their order.
	Links []string
}

func (pl *Plan) addWay(key string, loc pathcheck.Location) {
	if len(loc.Links) > 0 {
		pl.Ways = append(pl.Ways, Way{key, loc.Links})
	}
}

// ErrChanged says that the file system changed under the planning launch. The
// plan must be made again.
var ErrChanged = pathcheck.ErrChanged

// changed is the error of a lookup of what the plan has seen before.
func changed(err error) error {
	if pathcheck.Exhausted(err) {
		return err
	}
	return fmt.Errorf("%w (%w)", ErrChanged, err)
}

// Prepare finds the real locations that p speaks of and checks that they can
// be had together. It asks about the same directories again and again, so a
// tree that remembers ([pathcheck.Keep]) serves it best. Errors about the policy
// are of type [*Error].
func Prepare(p *Policy, l Launch, t pathcheck.Tree) (*Plan, error) {
	pl := newPlan(l)
	l.Seen.begin()
	if pl.scoped = p.Scope == ScopeWorkspace; pl.scoped {
		if err := pl.findRoots(p, t); err != nil {
			return nil, err
		}
	}
	if err := pl.findHidden(p, t); err != nil {
		return nil, err
	}
	anywhere := func(string) bool { return true }
	if len(pl.Hidden) == 0 && len(p.Exposed) == 0 {
		// Nothing has to be taken out of "/". It has of a writable root when
		// the kernel can be written there.
		anywhere = func(point string) bool { return pl.zone(point) != 0 }
	}
	if err := pl.locateExposed(p, t); err != nil {
		return nil, err
	}
	if err := pl.addAliases(t); err != nil {
		return nil, err
	}
	if err := pl.addKernelMounts(t, anywhere); err != nil {
		return nil, err
	}
	if len(pl.Hidden)+len(pl.apart)+len(p.Exposed) == 0 {
		return pl, nil
	}
	if err := pl.findExposed(t); err != nil {
		return nil, err
	}
	if err := pl.checkNeeded(t); err != nil {
		return nil, err
	}
	pl.bar()
	if err := pl.barSeen(); err != nil {
		return nil, err
	}
	if err := pl.expandDevices(t); err != nil {
		return nil, err
	}
	pl.dropHiddenRoots()
	for _, x := range pl.Exposed {
		if same, ok := pl.barred[x.Info.ID]; ok {
			return nil, &Error{Key: x.Key, Path: x.Path, Msg: "is the same directory as " + quote(same)}
		}
	}
	for path := range pl.expand {
		pl.Frozen = append(pl.Frozen, path)
	}
	slices.Sort(pl.Frozen)
	if err := pl.checkFrozen(p, t); err != nil {
		return nil, err
	}
	return pl, nil
}

func newPlan(l Launch) *Plan {
	return &Plan{
		launch:   l,
		mounts:   l.Mounts.Index(),
		overlays: overlayMounts(l.Mounts),

		expand: map[string]pathcheck.ID{},
		barred: map[pathcheck.ID]string{},
		above:  map[pathcheck.ID]bool{},
		hidden: map[string]bool{},
		layers: map[string]string{},
	}
}

func (pl *Plan) findHidden(p *Policy, t pathcheck.Tree) error {
	for _, e := range p.Hidden {
		loc, err := pathcheck.Resolve(t, e.Path)
		if err != nil {
			return lookupError(e, err)
		}
		switch {
		case loc.Path == "/":
			return &Error{Key: e.Key, Path: e.Path, Msg: "is /, and hiding / hides everything"}
		case pathcheck.Within("/proc", loc.Path):
			return &Error{Key: e.Key, Path: e.Path, Msg: "is in /proc, which can only be granted as a whole: its entries come and go"}
		}
		for _, link := range loc.Links {
			if magicLink(link) {
				return &Error{Key: e.Key, Path: e.Path, Msg: "goes through a link of /proc, whose text need not say where it leads"}
			}
		}
		if loc.Denied {
			pl.Limits = append(pl.Limits, Gap{
				What: "unresolved", Path: loc.Path, Limit: true,
				Why: "a directory on the way may not be searched; if a symbolic link there leads elsewhere, that place stays open",
			})
		}
		pl.addWay(e.Key, loc)
		pl.addHidden(Hidden{Key: e.Key, Path: loc.Path, Exists: loc.Exists, Info: loc.Info, origin: e.origin(), above: loc.Above})
	}
	return nil
}

// lookupError is what Prepare returns when an entry cannot be resolved: the
// policy's fault, unless the tree was changing or cannot be looked at.
func lookupError(e Entry, err error) error {
	if errors.Is(err, ErrChanged) || pathcheck.Exhausted(err) {
		return fmt.Errorf("%s: %w", e.Key, err)
	}
	return &Error{Key: e.Key, Path: e.Path, Msg: err.Error()}
}

// magicLink reports whether a symlink is one of those in /proc that lead to an
// inode and not to their text (proc(5)): root, cwd, exe and fd/* of a process
// in another root or mount namespace read like paths of this one.
func magicLink(path string) bool {
	if !pathcheck.Beneath("/proc", path) {
		return false
	}
	switch pathcheck.Rel("/proc", path) {
	case "self", "thread-self", "mounts", "net":
		return false
	}
	return true
}

func (pl *Plan) addHidden(h Hidden) {
	if pl.hidden[h.Path] {
		for i := range pl.Hidden {
			if x := &pl.Hidden[i]; x.Path == h.Path && x.origin < h.origin {
				x.origin, x.Key = h.origin, h.Key
			}
		}
		return
	}
	pl.hidden[h.Path] = true
	pl.Hidden = append(pl.Hidden, h)
	pl.launch.Seen.note(h)
	if h.Exists && h.Info.Kind == pathcheck.Regular && h.Info.Links > 1 {
		pl.Limits = append(pl.Limits, Gap{
			What: "hard-link", Path: h.Path, Limit: true,
			Why: fmt.Sprintf("the file has %d names; one of them in a readable directory leads to it", h.Info.Links),
		})
	}
}

// checkNeeded refuses a policy under which the program could not start.
func (pl *Plan) checkNeeded(t pathcheck.Tree) error {
	for _, n := range pl.launch.Needed {
		loc, err := pathcheck.Resolve(t, n.Path)
		if err != nil || !loc.Exists {
			continue // execve will say so, better
		}
		if h, ok := pl.covered(loc.Path); ok {
			return &Error{Key: h.Key, Path: h.Path, Msg: fmt.Sprintf("hides %s %s, without which the launch fails", n.Role, quote(loc.Path))}
		}
		for _, h := range pl.Hidden {
			if h.Exists && h.Info.ID == loc.Info.ID {
				return &Error{Key: h.Key, Path: h.Path, Msg: fmt.Sprintf("is the same file as %s %s", n.Role, quote(loc.Path))}
			}
		}
	}
	return nil
}

// covered returns the nearest hidden location at or above path, unless an
// exposed one lies between.
func (pl *Plan) covered(path string) (Hidden, bool) {
	near, ok := pl.nearest(path)
	if !ok {
		return Hidden{}, false
	}
	for _, x := range pl.Exposed {
		if pathcheck.Within(x.Path, path) && pathcheck.Beneath(near.Path, x.Path) {
			return Hidden{}, false
		}
	}
	return near, true
}

// nearest returns the nearest hidden location at or above path.
func (pl *Plan) nearest(path string) (Hidden, bool) {
	var near Hidden
	for _, h := range pl.Hidden {
		if pathcheck.Within(h.Path, path) && len(h.Path) > len(near.Path) {
			near = h
		}
	}
	return near, near.Path != ""
}

// bar collects what is never granted, and what is granted entry by entry.
func (pl *Plan) bar() {
	for _, h := range slices.Concat(pl.Hidden, pl.apart) {
		if h.Exists {
			pl.barred[h.Info.ID] = h.Path
		}
		for _, a := range h.above {
			pl.barred[a.ID] = a.Path
			if _, covered := pl.covered(a.Path); !covered && !pl.isApart(a.Path) {
				pl.expand[a.Path] = a.ID
				// Devices are told by their names in /dev, and only there.
				pl.above[a.ID] = !pathcheck.Within("/dev", a.Path)
			}
		}
	}
	for _, h := range pl.Hidden {
		delete(pl.above, h.Info.ID)
	}
}

// checkFrozen decides about the directories in which the launch must be able
// to make files.
func (pl *Plan) checkFrozen(p *Policy, t pathcheck.Tree) error {
	if p.Frozen == FrozenAllow {
		return nil
	}
	if err := pl.checkFrozenRoots(); err != nil {
		return err
	}
	if pl.launch.TempDir == "" {
		return nil
	}
	loc, err := pathcheck.Resolve(t, pl.launch.TempDir)
	if err != nil || !loc.Exists {
		return nil // then nothing can be made there anyway
	}
	const instead = `; hide it elsewhere, set TMPDIR, or set "frozen":"allow"`
	if h, ok := pl.covered(loc.Path); ok {
		return &Error{Key: h.Key, Path: h.Path, Msg: "hides the temp directory " + quote(loc.Path) + instead}
	}
	for _, h := range slices.Concat(pl.Hidden, pl.apart) {
		if pathcheck.Beneath(loc.Path, h.Path) {
			return &Error{Key: h.Key, Path: h.Path, Msg: "would freeze the temp directory " + quote(loc.Path) + instead}
		}
	}
	return nil
}

// CwdFrozen returns a sentence about a current directory that this plan hides
// or freezes, or "". That "/" is frozen is true of every plan and not said.
func (pl *Plan) CwdFrozen() string {
	cwd := pl.launch.Cwd
	if h, ok := pl.covered(cwd); ok && cwd != "" {
		return "the current directory " + quote(cwd) + " is hidden by " + quote(h.Path)
	}
	if _, ok := pl.expand[cwd]; ok && cwd != "/" {
		return "the current directory " + quote(cwd) + " is frozen: it cannot be listed and takes no new entries"
	}
	return ""
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

func isNotExist(err error) bool   { return errors.Is(err, fs.ErrNotExist) }
func isPermission(err error) bool { return errors.Is(err, fs.ErrPermission) }

// below returns the first component of path beneath dir.
func below(dir, path string) (string, bool) {
	if !pathcheck.Beneath(dir, path) {
		return "", false
	}
	name, _, _ := strings.Cut(pathcheck.Rel(dir, path), "/")
	return name, true
}

// Hides reports whether the plan leaves the real path unreachable.
func (pl *Plan) Hides(path string) bool {
	_, ok := pl.covered(path)
	return ok
}

// Freezes reports whether the directory at the real path takes no new entries.
func (pl *Plan) Freezes(path string) bool {
	_, ok := pl.expand[path]
	return ok
}
