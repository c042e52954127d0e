package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
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
	// [rules.Assess] says of every launch.
	Limits []rules.Gap
	// EntryLinks holds the symbolic links of the entries of hidden and exposed
	// that go through some.
	EntryLinks []EntryLinks
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

// EntryLinks lists the symbolic links through which a policy entry was resolved.
type EntryLinks struct {
	Key string
	// Links holds the real location of each link, in the order of the lookup.
	Links []string
}

func (pl *Plan) addLinks(key string, loc pathcheck.Location) {
	if len(loc.Links) > 0 {
		pl.EntryLinks = append(pl.EntryLinks, EntryLinks{key, loc.Links})
	}
}

// changed is the error of a lookup of what the plan has seen before.
func changed(err error) error {
	if pathcheck.Exhausted(err) {
		return err
	}
	return fmt.Errorf("%w (%w)", pathcheck.ErrChanged, err)
}

// Make finds the real locations that p speaks of and checks that they can be
// had together. It asks about the same directories again and again, so a tree
// that remembers ([pathcheck.Keep]) serves it best. An error about the policy
// is a [*rules.Error]; [pathcheck.ErrChanged] says that the file system changed
// meanwhile, and that the plan must be made again.
func Make(p *rules.Policy, l Launch, t pathcheck.Tree) (*Plan, error) {
	pl := newPlan(l)
	l.Past.begin()
	if pl.scoped = p.Scope == rules.ScopeWorkspace; pl.scoped {
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
	if err := pl.barPast(); err != nil {
		return nil, err
	}
	if err := pl.expandDevices(t); err != nil {
		return nil, err
	}
	pl.dropHiddenRoots()
	for _, x := range pl.Exposed {
		if same, ok := pl.barred[x.Info.ID]; ok {
			return nil, &rules.Error{Key: x.Key, Path: x.Path, Msg: "is the same directory as " + strconv.Quote(same)}
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
