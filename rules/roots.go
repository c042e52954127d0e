package rules

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
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

// A MissingDir is a toolchain directory that is not there and should be made:
// Names beneath Above, one in the other.
type MissingDir struct {
	// Path is the real location.
	Path string
	// Above is the nearest directory that exists.
	Above pathcheck.Place
	Names []string
	Mode  uint32
}

// Missing returns the toolchain directories of p that should be made before
// the launch is planned. None of them is where a guard of [Prepare] would
// drop it, or beneath something hidden.
func Missing(p *Policy, l Launch, t pathcheck.Tree) []MissingDir {
	if p.Scope != ScopeWorkspace {
		return nil
	}
	f := newRootFinder(p, l, t, nil)
	all, err := f.collect()
	if err != nil || !slices.ContainsFunc(all, f.isMissing) || f.candidates() != nil {
		return nil // Prepare says what is wrong
	}
	f.mounts = l.Mounts.Index() // only now: nearly always nothing is missing
	f.guard()
	var hidden []pathcheck.Location
	for _, e := range p.Hidden {
		loc, err := pathcheck.Resolve(t, e.Path)
		if err != nil {
			return nil // as before
		}
		hidden = append(hidden, loc)
	}
	var out []MissingDir
	for _, c := range f.list {
		under := func(h pathcheck.Location) bool { return pathcheck.Within(h.Path, c.loc.Path) }
		if c.make == 0 || c.bad != "" || c.loc.Exists || c.loc.Denied || slices.ContainsFunc(hidden, under) || f.dangles(c) {
			continue
		}
		above := c.loc.Above[len(c.loc.Above)-1]
		out = append(out, MissingDir{
			Path: c.loc.Path, Above: above, Mode: c.make,
			Names: strings.Split(pathcheck.Rel(above.Path, c.loc.Path), "/"),
		})
	}
	return out
}

// A candidate is a root before it is known to be good.
type candidate struct {
	key  string
	path string
	from string // the variable that names it
	make uint32
	// named, listed: see Root. dir is set for what must be a directory.
	named, listed, dir bool

	loc pathcheck.Location
	// bad says why it cannot be writable.
	bad string
}

type rootFinder struct {
	policy   *Policy
	launch   Launch
	tree     pathcheck.Tree
	mounts   *pathcheck.MountIndex
	list     []*candidate
	warnings []string
	devices  []Root // once they were looked for
}

func newRootFinder(p *Policy, l Launch, t pathcheck.Tree, mounts *pathcheck.MountIndex) *rootFinder {
	return &rootFinder{policy: p, launch: l, tree: t, mounts: mounts}
}

func (f *rootFinder) resolve(path string) (pathcheck.Location, error) {
	return pathcheck.Resolve(f.tree, path)
}

// isMissing reports whether a candidate should be made.
func (f *rootFinder) isMissing(c *candidate) bool {
	if c.make == 0 {
		return false
	}
	loc, err := f.resolve(c.path)
	return err == nil && !loc.Exists
}

// collect returns what may become a root.
func (f *rootFinder) collect() ([]*candidate, error) {
	p := f.policy
	workspace := p.Workspace
	if workspace == "" {
		workspace = f.launch.Cwd
	}
	if workspace == "" {
		return nil, &Error{Key: "workspace", Msg: "the current directory is not known; name the workspace"}
	}
	all := []*candidate{{key: "workspace", path: workspace, named: true, listed: true, dir: true}}
	for _, e := range p.Writable {
		all = append(all, &candidate{key: e.Key, path: e.Path, named: true, listed: true})
	}
	if p.Toolchain.Mode == ToolchainOwned {
		for i, dir := range ownedDirs(p.Toolchain.Owned) {
			// The temp directory is made, and writable as a part of the root.
			all = append(all, &candidate{key: "toolchainDirs", path: dir, named: i == 0, listed: i == 0, dir: true, make: leaf})
		}
	}
	wanted, warnings := toolchainDirs(p.Toolchain.Mode, f.launch.Env)
	f.warnings = warnings
	for _, w := range wanted {
		all = append(all, &candidate{key: "toolchainDirs", path: w.path, from: w.from, listed: true, dir: true, make: w.make})
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
		case c.named || errors.Is(err, ErrChanged):
			return lookupError(Entry{Path: c.path, Key: c.key}, err)
		}
	}
	return nil
}

// guard finds what must not be writable whoever names it.
func (f *rootFinder) guard() {
	guards := f.guards()
	for _, c := range f.list {
		c.bad = guards.reason(c.loc)
	}
	// A confined program must not choose what the next launch may write. That one
	// may have another policy: where no policy names the path, what toolchain
	// directories can be writable counts as if it was.
	now := writable{}
	for _, c := range f.list {
		if c.bad == "" {
			now.add(c.loc)
		}
	}
	for _, e := range f.policy.Exposed {
		if loc, err := f.resolve(e.Path); err == nil {
			now.add(loc)
		}
	}
	for _, d := range f.deviceRoots() {
		now[d.Info.ID] = d.Path
	}
	var ever writable
	for _, c := range f.list {
		if c.bad != "" || len(c.loc.Links) == 0 {
			continue
		}
		in := now
		if !c.named {
			if ever == nil {
				ever = f.everWritable(now, guards)
			}
			in = ever
		}
		for i, link := range c.loc.Links {
			if root, ok := f.linkIn(in, link, c.loc.LinkDirs[i]); ok {
				c.bad = fmt.Sprintf("goes through the symlink %s in %s, which the program can write", quote(link), quote(root))
				break
			}
		}
	}
}

// writable holds directories that a program may write, with their paths.
type writable map[pathcheck.ID]string

func (w writable) add(loc pathcheck.Location) {
	if loc.Exists && loc.Info.Kind == pathcheck.Directory {
		w[loc.Info.ID] = loc.Path
	}
}

// everWritable adds to what is writable now the toolchain directories of every
// mode.
func (f *rootFinder) everWritable(now writable, g guards) writable {
	ever := maps.Clone(now)
	for _, mode := range []ToolchainMode{ToolchainUsual, ToolchainLeaves} {
		list, _ := toolchainDirs(mode, f.launch.Env)
		for _, w := range list {
			if loc, err := f.resolve(w.path); err == nil && g.reason(loc) == "" {
				ever.add(loc)
			}
		}
	}
	return ever
}

// linkIn returns the writable directory in which a symlink lies: one of those
// through which the lookup came to it, or one that shows the place by a mount.
func (f *rootFinder) linkIn(in writable, link string, dirs []pathcheck.ID) (root string, ok bool) {
	for _, id := range dirs {
		if root, ok := in[id]; ok {
			return root, true
		}
	}
	for _, other := range f.mounts.Others(pathcheck.Parent(link)) {
		for _, root := range in {
			if pathcheck.Within(root, other) {
				return root, true
			}
		}
	}
	return "", false
}

// dangles reports whether a candidate that does not exist is reached through a
// symlink to nothing: mkdir(2) does not follow one, and the shim neither.
func (f *rootFinder) dangles(c *candidate) bool {
	dir := c.path
	for dir != "/" {
		name := dir
		dir = pathcheck.Parent(dir)
		loc, err := f.resolve(dir)
		if err != nil {
			return true
		}
		if loc.Exists {
			next, err := f.resolve(name)
			return err != nil || len(next.Links) > len(loc.Links)
		}
	}
	return true
}

// guards is what no root may be or hold.
type guards struct {
	ids   map[pathcheck.ID]string
	paths []guarded
}

type guarded struct{ path, what string }

func (f *rootFinder) guards() guards {
	g := guards{ids: map[pathcheck.ID]string{}}
	add := func(path, what string) {
		loc := f.guarded(path)
		g.paths = append(g.paths, guarded{loc.Path, what})
		if loc.Path != "/" {
			aliases, _ := f.mounts.Aliases(loc.Path)
			for _, a := range aliases {
				g.paths = append(g.paths, guarded{a.Path, what})
			}
		}
		if loc.Exists && loc.Info.Kind == pathcheck.Directory {
			g.ids[loc.Info.ID] = what
		}
		for _, a := range loc.Above {
			if _, ok := g.ids[a.ID]; !ok {
				g.ids[a.ID] = "above " + what
			}
		}
	}
	add("/", "/")
	for _, home := range f.launch.Homes {
		add(home, "the home directory")
	}
	for _, shim := range f.launch.Shims {
		add(shim, "the shim")
	}
	return g
}

// guarded returns where a guarded path leads. What cannot be looked at, such as
// a dead mount, stands where its text says, below what can.
func (f *rootFinder) guarded(path string) pathcheck.Location {
	for dir := path; ; dir = pathcheck.Parent(dir) {
		loc, err := f.resolve(dir)
		switch {
		case err == nil && dir == path:
			return loc
		case err == nil:
			if loc.Exists {
				loc.Above = append(loc.Above, pathcheck.Place{Path: loc.Path, ID: loc.Info.ID})
			}
			return pathcheck.Location{Path: pathcheck.Join(loc.Path, pathcheck.Rel(dir, path)), Above: loc.Above}
		case dir == "/":
			return pathcheck.Location{Path: path}
		}
	}
}

// reason says why a place may not be writable, or "".
func (g guards) reason(loc pathcheck.Location) string {
	if loc.Path == "/" {
		return "is /"
	}
	for _, p := range g.paths {
		switch {
		case loc.Path == p.path:
			return "is " + p.what
		case pathcheck.Beneath(loc.Path, p.path):
			return "is above " + p.what + " " + quote(p.path)
		}
	}
	if what, ok := g.ids[loc.Info.ID]; ok && loc.Exists {
		return "is " + what + " under another path"
	}
	return ""
}

// findRoots fills in the plan's roots.
func (pl *Plan) findRoots(p *Policy, t pathcheck.Tree) error {
	f := newRootFinder(p, pl.launch, t, pl.mounts)
	if err := f.candidates(); err != nil {
		return err
	}
	f.guard()
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
			text := fmt.Sprintf("%s %s stays read-only: it %s", name, quote(c.path), c.bad)
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
		return Root{}, true, &Error{Key: c.key, Path: c.path, Msg: msg}
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
	{"/dev/ptmx", pathcheck.CharDevice, device},
	{"/dev/pts", pathcheck.Directory, device | ReadDir},
	{"/dev/shm", pathcheck.Directory, Full},
}

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
		f.devices = append(f.devices, Root{Key: "scope", Path: loc.Path, Info: loc.Info, Access: d.access})
	}
	return f.devices
}

// zone returns what the roots allow at path.
func (pl *Plan) zone(path string) Access {
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
		by, ok := pl.barred[r.Info.ID]
		if h, covered := pl.covered(r.Path); covered {
			by, ok = h.Path, true
		} else if _, expanded := pl.expand[r.Path]; expanded || pl.above[r.Info.ID] {
			return false
		}
		if ok && r.named {
			pl.Warnings = append(pl.Warnings, fmt.Sprintf("%s %s is not writable: %s is hidden", r.Key, quote(r.Path), quote(by)))
		}
		return ok
	})
}

// checkFrozenRoots refuses a workspace or a writable root that would take no
// new entries. Toolchain directories may be frozen: their subdirectories stay
// writable, and the report lists them.
func (pl *Plan) checkFrozenRoots() error {
	for _, r := range pl.Roots {
		if !r.named {
			continue
		}
		what := "the workspace"
		if r.Key != "workspace" {
			what = "the writable root"
		}
		for _, h := range slices.Concat(pl.Hidden, pl.apart) {
			switch {
			case !pathcheck.Beneath(r.Path, h.Path):
			case h.Key == kernelKey:
				return &Error{Key: r.Key, Path: r.Path, Msg: "holds " + quote(h.Path) + `, which root must not reach and which would freeze it; unmount that, or set "frozen":"allow"`}
			default:
				return &Error{Key: h.Key, Path: h.Path, Msg: "would freeze " + what + " " + quote(r.Path) + `; hide it elsewhere, or set "frozen":"allow"`}
			}
		}
	}
	return nil
}

// WritableDirs returns the real locations that a report and a notice name as
// writable, in order: the workspace, the policy's writable roots, and the
// toolchain directories.
func (pl *Plan) WritableDirs() []string {
	var out []string
	for _, r := range pl.Roots {
		if r.Listed {
			out = append(out, r.Path)
		}
	}
	return out
}

// WritableRoot returns the root or exposed location of scope workspace in
// which a place lies, if the plan leaves it writable.
func (pl *Plan) WritableRoot(loc pathcheck.Location) (string, bool) {
	if !pl.scoped || pl.Hides(loc.Path) {
		return "", false
	}
	others := pl.mounts.Others(loc.Path)
	in := func(path string, id pathcheck.ID) bool {
		return pathcheck.Within(path, loc.Path) || loc.Exists && loc.Info.ID == id ||
			slices.ContainsFunc(loc.Above, func(a pathcheck.Place) bool { return a.ID == id }) ||
			slices.ContainsFunc(others, func(o string) bool { return pathcheck.Within(path, o) && !pl.Hides(o) })
	}
	for _, r := range pl.Roots {
		if r.Access&WriteFile != 0 && in(r.Path, r.Info.ID) {
			return r.Path, true
		}
	}
	for _, x := range pl.Exposed {
		if in(x.Path, x.Info.ID) {
			return x.Path, true
		}
	}
	return "", false
}

// ReadOnly returns the real locations of those directories in which scope
// workspace lets nobody make a file. Without that scope there are none. The
// error is that of a lookup; what does not exist is left out.
func (pl *Plan) ReadOnly(t pathcheck.Tree, dirs ...string) ([]string, error) {
	var out []string
	for _, dir := range dirs {
		if !pl.scoped {
			return nil, nil
		}
		loc, err := pathcheck.Resolve(t, dir)
		if err != nil {
			return nil, err
		}
		if _, writable := pl.WritableRoot(loc); loc.Exists && !writable {
			out = append(out, loc.Path)
		}
	}
	return out, nil
}
