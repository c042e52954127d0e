package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
)

// A Root is a place that scope workspace leaves writable, with all beneath it.
type Root struct {
	// Key names where it comes from: "workspace", "writable[0]",
	// "toolchainDirs" or, for the devices that every program needs, "scope".
	Key string
	// Path is the real location.
	Path string
	Info pathcheck.Info
	// Access is what is granted on it.
	Access Access
	// Listed is set for what the report and a notice name.
	Listed bool
	// named is set when the policy or the current directory names it, and not
	// the environment.
	named bool
}

// A candidate is a root before it is known to be good.
type candidate struct {
	key  string
	path string
	from string // the variable that names it, or ""
	make uint32 // the mode with which it is made, or 0
	// named, listed: see Root. dir is set for what must be a directory.
	named, listed, dir bool

	loc pathcheck.Location
	// bad says why it cannot be writable.
	bad string
}

// A rootFinder finds the roots of one policy.
type rootFinder struct {
	policy   *rules.Policy
	launch   Launch
	tree     pathcheck.Tree
	mounts   *pathcheck.MountIndex
	list     []*candidate // resolved, in the order of collect
	warnings []string
	devices  []Root // once they were looked for
}

func (f *rootFinder) resolve(path string) (pathcheck.Location, error) {
	return pathcheck.Resolve(f.tree, path)
}

// collect returns what may become a root.
func (f *rootFinder) collect() ([]*candidate, error) {
	p := f.policy
	workspace := p.Workspace
	if workspace == "" {
		workspace = f.launch.Cwd
	}
	if workspace == "" {
		return nil, &rules.Error{Key: "workspace", Msg: "the current directory is not known; name the workspace"}
	}
	all := []*candidate{{key: "workspace", path: workspace, named: true, listed: true, dir: true}}
	for _, e := range p.Writable {
		all = append(all, &candidate{key: e.Key, path: e.Path, named: true, listed: true})
	}
	dirs, warnings := p.Toolchain.In(f.launch.Env)
	f.warnings = warnings
	owned := p.Toolchain.Mode == rules.ToolchainOwned
	for i, d := range dirs {
		// The temp directory of an owned root is made, and writable as a part of it.
		all = append(all, &candidate{
			key: "toolchainDirs", path: d.Path, from: d.Variable, make: d.Mode,
			named: owned && i == 0, listed: !owned || i == 0, dir: true,
		})
	}
	return all, nil
}

// candidates resolves what may become a root.
func (f *rootFinder) candidates() error {
	all, err := f.collect()
	if err != nil {
		return err
	}
	for _, c := range all {
		loc, err := f.resolve(c.path)
		switch {
		case err == nil:
			c.loc = loc
			f.list = append(f.list, c)
		case c.named || errors.Is(err, pathcheck.ErrChanged):
			return lookupError(rules.Entry{Path: c.path, Key: c.key}, err)
		}
	}
	return nil
}

// findRoots fills in the plan's roots.
func (pl *Plan) findRoots(p *rules.Policy, t pathcheck.Tree) error {
	f := &rootFinder{policy: p, launch: pl.launch, tree: t, mounts: pl.mounts}
	if err := f.candidates(); err != nil {
		return err
	}
	f.refuse()
	pl.Warnings = append(pl.Warnings, f.warnings...)
	for _, c := range f.list {
		r, drop, err := f.root(c)
		switch {
		case err != nil:
			return err
		case drop:
		case !pl.hasRoot(r.Path):
			pl.Roots = append(pl.Roots, r)
		}
		if c.bad != "" && c.loc.Exists && !c.named {
			name := "the default"
			if c.from != "" {
				name = c.from
			}
			text := fmt.Sprintf("%s %s stays read-only: it %s", name, strconv.Quote(c.path), c.bad)
			if !slices.Contains(pl.Warnings, text) {
				pl.Warnings = append(pl.Warnings, text)
			}
		}
	}
	for _, d := range f.deviceRoots() {
		if !pl.hasRoot(d.Path) {
			pl.Roots = append(pl.Roots, d)
		}
	}
	return nil
}

func (pl *Plan) hasRoot(path string) bool {
	return slices.ContainsFunc(pl.Roots, func(r Root) bool { return r.Path == path })
}

// root turns a candidate into a root, drops it, or says what is wrong.
func (f *rootFinder) root(c *candidate) (r Root, drop bool, err error) {
	bad := func(msg string) (Root, bool, error) {
		if c.bad = msg; !c.named {
			return Root{}, true, nil
		}
		return Root{}, true, &rules.Error{Key: c.key, Path: c.path, Msg: msg}
	}
	loc := c.loc
	dir := loc.Info.Kind == pathcheck.Directory
	switch {
	case c.bad != "":
		return bad(c.bad)
	case !loc.Exists && loc.Denied:
		return bad("may not be looked up")
	case !loc.Exists:
		return bad("does not exist")
	case c.dir && !dir && !c.named:
		return Root{}, true, nil
	case c.dir && !dir:
		return bad("is not a directory")
	case c.key == "toolchainDirs" && !c.listed:
		return Root{}, true, nil // a part of the root before it
	}
	r = Root{Key: c.key, Path: loc.Path, Info: loc.Info, Listed: c.listed, named: c.named}
	var why string
	if r.Access, why, err = f.access(loc); err != nil {
		return Root{}, false, fmt.Errorf("%s: %w", c.key, err)
	} else if why != "" {
		return bad(why)
	}
	return r, false, nil
}

// access returns what is granted on a root, or why nothing is.
func (f *rootFinder) access(loc pathcheck.Location) (a Access, why string, err error) {
	by, _ := f.mounts.Of(loc.Path)
	switch {
	case f.launch.EUID == 0 && (pathcheck.Within("/proc", loc.Path) || pathcheck.Within("/sys", loc.Path) || kernelFS(by.FSType)):
		return 0, "acts on the kernel itself, and root never writes it", nil
	case f.policy.Isolate.Has(rules.IsolateSignals) && (pathcheck.Within("/sys", loc.Path) || groupFS(by.FSType)):
		return 0, "is or holds control groups, by which processes outside are stopped", nil
	case loc.Path == "/proc":
		return ReadOnly | WriteFile | Truncate, "", nil
	case pathcheck.Within("/proc", loc.Path):
		return 0, "is in /proc, which can only be granted as a whole: its entries come and go", nil
	case loc.Info.Kind == pathcheck.BlockDevice:
		return 0, "is a block device", nil
	case rawDevice(loc.Path, loc.Info):
		return 0, rawText, nil
	case loc.Info.Kind == pathcheck.CharDevice:
		return device, "", nil
	case loc.Info.Kind != pathcheck.Directory:
		return Full & fileAccess, "", nil
	case !pathcheck.Within("/dev", loc.Path) && by.FSType != "devtmpfs":
		return Full, "", nil
	}
	n, err := pathcheck.Lookup(f.tree, loc.Path)
	if err != nil {
		return 0, "", changed(err)
	}
	defer n.Close()
	raw, err := holdsRawDevice(loc.Path, n, maxDeviceDepth)
	switch {
	case err != nil:
		return 0, "", err
	case raw:
		return 0, rawText, nil
	}
	return Full | IoctlDev, "", nil
}

const rawText = "is or holds a device that reaches memory or a disk"

// A deviceRoot is a root in /dev that no policy has to name.
type deviceRoot struct {
	path   string
	kind   pathcheck.Kind
	access Access
}

// devices is what every program needs to write in /dev. Openpty needs ioctl on
// ptmx and pts; Python's locks are made in shm; git refuses to work without
// null.
var devices = []deviceRoot{
	{"/dev/null", pathcheck.CharDevice, ReadFile | WriteFile},
	{"/dev/zero", pathcheck.CharDevice, ReadFile | WriteFile},
	{"/dev/full", pathcheck.CharDevice, ReadFile | WriteFile},
	{"/dev/tty", pathcheck.CharDevice, device},
	{console, pathcheck.CharDevice, device},
	{"/dev/ptmx", pathcheck.CharDevice, device},
	{"/dev/pts", pathcheck.Directory, device | ReadDir},
	{"/dev/shm", pathcheck.Directory, Full},
}

// console is where the launch's terminal stands that has lost its name in /dev/pts,
// and else no place that a program needs.
const console = "/dev/console"

// isTerminal reports whether a device is one end of a pseudo terminal
// (Documentation/admin-guide/devices.txt).
func isTerminal(info pathcheck.Info) bool { return info.Major >= 136 && info.Major <= 143 }

// deviceRoots finds the devices. No link is followed: each stands where it
// belongs, or is left out.
func (f *rootFinder) deviceRoots() []Root {
	if f.devices != nil {
		return f.devices
	}
	f.devices = []Root{}
	for _, d := range devices {
		loc, err := f.resolve(d.path)
		if err != nil || !loc.Exists || len(loc.Links) > 0 || loc.Info.Kind != d.kind || rawDevice(d.path, loc.Info) {
			continue
		}
		if d.path == console && !isTerminal(loc.Info) {
			continue
		}
		f.devices = append(f.devices, Root{Key: "scope", Path: loc.Path, Info: loc.Info, Access: d.access})
	}
	return f.devices
}

// rootAccess returns what the roots allow at path.
func (pl *Plan) rootAccess(path string) Access {
	var a Access
	for _, r := range pl.Roots {
		if pathcheck.Within(r.Path, path) {
			a |= r.Access
		}
	}
	return a
}

// dropHiddenRoots takes away the roots that something hidden covers.
func (pl *Plan) dropHiddenRoots() {
	pl.Roots = slices.DeleteFunc(pl.Roots, func(r Root) bool {
		by, ok := pl.ungranted[r.Info.ID]
		if h, covered := pl.covered(r.Path); covered {
			by, ok = h.Path, true
		} else if _, expanded := pl.expand[r.Path]; expanded || pl.ancestors[r.Info.ID] {
			return false
		}
		if ok && r.named {
			pl.Warnings = append(pl.Warnings, fmt.Sprintf("%s %s is not writable: %s is hidden", r.Key, strconv.Quote(r.Path), strconv.Quote(by)))
		}
		return ok
	})
}
