package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// A Plan is a policy resolved against the file system. [Plan.Walk] turns it into
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
	// mounts is the index of launch.Mounts, overlays one mount of each overlay.
	mounts   *pathcheck.MountIndex
	overlays []pathcheck.Mount
	// scoped is set for scope workspace: only the roots are writable.
	scoped bool
	// listable is set where "/" can be listed though its entries are granted one by
	// one, noGroups where nobody writes control groups.
	listable, noGroups bool
	// expand holds the directories that are granted entry by entry.
	expand map[string]pathcheck.ID
	// ungranted holds the inodes that no grant may land on, with their paths:
	// the hidden locations and the directories above them.
	ungranted map[pathcheck.ID]string
	// ancestors holds those of them that are not hidden themselves: where a mount
	// shows one at another path, its entries can be granted.
	ancestors map[pathcheck.ID]bool
	// hidden holds the index in Hidden of each of its paths.
	hidden map[string]int
	// aboveHidden holds the paths of the directories above all that is in Hidden
	// and kernelMounts.
	aboveHidden map[string]bool
	// kernelMounts holds mounts of /proc and /sys themselves at other paths: see
	// [Plan.keepKernelMount].
	kernelMounts []Hidden
	// exposedEntries are those of the policy, before they are checked; exposed
	// holds the paths of Exposed.
	exposedEntries []located
	exposed        map[string]bool
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

	author author
	// above are the directories above it, "/" first.
	above []pathcheck.Place
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

// changed is the error of a lookup that succeeded earlier in the launch.
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
	pl.noGroups = p.Isolate.Has(rules.IsolateSignals)
	if pl.scoped = p.Scope == rules.ScopeWorkspace; pl.scoped {
		if err := pl.findRoots(p, t); err != nil {
			return nil, err
		}
	}
	if err := pl.findHidden(p, t); err != nil {
		return nil, err
	}
	anywhere := func(string) bool { return true }
	if len(pl.Hidden) == 0 && len(p.Exposed) == 0 && !p.GuardKernel {
		// Nothing has to be taken out of "/". It has of a writable root when
		// the kernel can be written there.
		anywhere = func(point string) bool { return pl.rootAccess(point) != 0 }
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
	if p.GuardKernel && !pl.scoped && len(pl.Hidden)+len(p.Exposed) == 0 {
		if err := pl.splitRoot(t); err != nil {
			return nil, err
		}
	}
	if len(pl.Hidden)+len(pl.kernelMounts)+len(p.Exposed) == 0 {
		return pl, nil
	}
	if err := pl.findExposed(t); err != nil {
		return nil, err
	}
	if err := pl.checkNeeded(t); err != nil {
		return nil, err
	}
	if err := pl.collect(); err != nil {
		return nil, err
	}
	if err := pl.addPast(); err != nil {
		return nil, err
	}
	if err := pl.expandDevices(t); err != nil {
		return nil, err
	}
	pl.dropHiddenRoots()
	for _, x := range pl.Exposed {
		if same, ok := pl.ungranted[x.Info.ID]; ok {
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

		expand:      map[string]pathcheck.ID{},
		ungranted:   map[pathcheck.ID]string{},
		ancestors:   map[pathcheck.ID]bool{},
		hidden:      map[string]int{},
		aboveHidden: map[string]bool{},
		exposed:     map[string]bool{},
	}
}
