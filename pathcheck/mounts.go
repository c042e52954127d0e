package pathcheck

import (
	"fmt"
	"strconv"
	"strings"
)

// A Mount is one line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
type Mount struct {
	ID, Parent int
	// Dev is the device as "major:minor"; two mounts with one Dev show the
	// same file system.
	Dev string
	// Root is the path inside that file system which stands at Point.
	Root string
	// Point is where the mount stands, seen from the process's root.
	Point string
	// Options are the mount's own, Super those of the file system.
	Options string
	FSType  string
	Source  string
	Super   string
	// Layers holds the directories whose content an overlay shows, as they
	// were named when it was mounted: not resolved, perhaps relative, perhaps
	// from another mount namespace.
	Layers []string
}

// Mounts is the mount table of one moment.
type Mounts []Mount

// ParseMounts reads the text of /proc/self/mountinfo.
func ParseMounts(text string) (Mounts, error) {
	var out Mounts
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		m, err := parseMount(line)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func parseMount(line string) (Mount, error) {
	left, right, ok := strings.Cut(line, " - ")
	f := strings.Split(left, " ")
	g := strings.SplitN(right, " ", 3)
	if !ok || len(f) < 6 || len(g) < 3 {
		return Mount{}, fmt.Errorf("mountinfo: unexpected line %q", line)
	}
	id, err1 := strconv.Atoi(f[0])
	parent, err2 := strconv.Atoi(f[1])
	if err1 != nil || err2 != nil {
		return Mount{}, fmt.Errorf("mountinfo: unexpected line %q", line)
	}
	m := Mount{
		ID: id, Parent: parent, Dev: f[2],
		Root: unescape(f[3]), Point: unescape(f[4]), Options: f[5],
		FSType: g[0], Source: unescape(g[1]), Super: unescape(g[2]),
	}
	switch m.FSType {
	case "overlay":
		m.Layers = layers(g[2])
	case "nfs", "nfs4":
		// The kernel writes "/" whatever the root is (nfs_show_path); the
		// source says which directory of the server was mounted.
		if _, dir, ok := strings.Cut(m.Source, ":/"); ok && m.Root == "/" {
			m.Root = "/" + strings.Trim(dir, "/")
		}
	}
	return m, nil
}

// layers takes the directories out of the still escaped options of an overlay
// (Documentation/filesystems/overlayfs.rst).
func layers(options string) []string {
	var out []string
	for opt := range strings.SplitSeq(options, ",") {
		key, value, _ := strings.Cut(opt, "=")
		value = unescape(value)
		switch key {
		case "upperdir", "lowerdir+", "datadir+":
			out = append(out, value)
		case "lowerdir":
			// A colon in a name is written "\:".
			var dir strings.Builder
			for i := 0; i <= len(value); i++ {
				switch {
				case i == len(value) || value[i] == ':':
					if dir.Len() > 0 {
						out = append(out, dir.String())
					}
					dir.Reset()
				case value[i] == '\\' && i+1 < len(value):
					i++
					dir.WriteByte(value[i])
				default:
					dir.WriteByte(value[i])
				}
			}
		}
	}
	return out
}

// unescape undoes the octal escapes (\040 for a space) of mountinfo.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// A MountIndex answers many questions about a table of mounts.
type MountIndex struct {
	mounts Mounts
	root   Mount
	known  bool // root is a mount of the table
	at     map[mountPoint]int
	byDev  map[string][]int
}

type mountPoint struct {
	parent int
	path   string
}

// Index prepares the table for questions. The table must not change any more.
func (ms Mounts) Index() *MountIndex {
	ix := &MountIndex{mounts: ms, at: make(map[mountPoint]int, len(ms)), byDev: map[string][]int{}}
	ix.root, ix.known = ms.root()
	for i, m := range ms {
		ix.byDev[m.Dev] = append(ix.byDev[m.Dev], i)
		at := mountPoint{m.Parent, m.Point}
		if _, ok := ix.at[at]; !ok && m.Parent != m.ID {
			ix.at[at] = i
		}
	}
	return ix
}

// Of returns the mount through which the absolute, symlink-free path is
// reached, following the tree of mounts as a lookup does: a mount that is
// covered by a later one is not it, and neither is one that stands on "/"
// itself, which no lookup enters. It is false when the table does not show
// that mount, as after chroot(2) into a directory that is no mount point.
func (ix *MountIndex) Of(path string) (Mount, bool) {
	cur, known := ix.root, ix.known
	for end := 1; end <= len(path); end++ {
		if end < len(path) && path[end] != '/' || end == 1 {
			continue
		}
		for i, ok := ix.at[mountPoint{cur.ID, path[:end]}]; ok; i, ok = ix.at[mountPoint{cur.ID, path[:end]}] {
			cur, known = ix.mounts[i], true
		}
	}
	return cur, known
}

// root returns the mount of "/", or false and a mount that has nothing but the
// ID to which the visible mounts refer.
func (ms Mounts) root() (Mount, bool) {
	ids := make(map[int]bool, len(ms))
	for _, m := range ms {
		ids[m.ID] = true
	}
	unseen := Mount{ID: -1}
	for _, m := range ms {
		if ids[m.Parent] && m.Parent != m.ID {
			continue
		}
		if m.Point == "/" {
			return m, true
		}
		unseen.ID = m.Parent
	}
	return unseen, false
}

// Reaches reports whether a lookup of its mount point leads to m, that is,
// whether no other mount covers it.
func (ix *MountIndex) Reaches(m Mount) bool {
	by, ok := ix.Of(m.Point)
	return ok && by.ID == m.ID
}

// Inside returns where a path lies in the file system of the mount by which it is
// reached: the device and the path there. It is false when the table does not
// show that mount.
func (ix *MountIndex) Inside(path string) (dev, inside string, ok bool) {
	own, ok := ix.Of(path)
	if !ok {
		return "", "", false
	}
	return own.Dev, own.inside(path), true
}

// inside returns where a path within the mount lies in its file system.
func (m Mount) inside(path string) string { return Join(m.Root, Rel(m.Point, path)) }

// An Alias is a second path to the same place.
type Alias struct {
	// Path leads to what stands at Shows, by another mount.
	Path string
	// Shows is the path that was asked for, or one beneath it.
	Shows string
	// FSType is the type of the file system.
	FSType string
}

// Aliases returns the other paths at which mounts show what stands at path or
// beneath it, submounts included: the mount point where a mount shows that
// place or something inside it, and the path below the mount point where it
// shows a directory that contains it. An alias may lie beneath path. path must
// be absolute and free of symlinks, and need not exist. Paths that another
// mount covers are left out.
//
// It is false when the table does not show the mount of path: then aliases of
// path itself are not known.
func (ix *MountIndex) Aliases(path string) ([]Alias, bool) {
	var out []Alias
	own, known := ix.Of(path)
	if known {
		out = ix.show(out, own.ID, own.Dev, own.inside(path), path)
	}
	for _, sub := range ix.mounts {
		if Beneath(path, sub.Point) && ix.Reaches(sub) {
			out = ix.show(out, sub.ID, sub.Dev, sub.Root, sub.Point)
		}
	}
	return out, known
}

// Others returns the other paths at which what stands at path can be reached by
// mounts.
func (ix *MountIndex) Others(path string) []string {
	own, ok := ix.Of(path)
	if !ok {
		return nil
	}
	var out []string
	inside := own.inside(path)
	for _, i := range ix.byDev[own.Dev] {
		m := ix.mounts[i]
		if m.ID == own.ID || !Within(m.Root, inside) {
			continue
		}
		other := Join(m.Point, Rel(m.Root, inside))
		if by, ok := ix.Of(other); ok && by.ID == m.ID {
			out = append(out, other)
		}
	}
	return out
}

// Showing returns the paths at which mounts of a device show what stands at the
// path inside of its file system, or a part of it. Shows is set to shows or a path
// beneath it.
func (ix *MountIndex) Showing(dev, inside, shows string) []Alias {
	return ix.show(nil, -1, dev, inside, shows)
}

// show appends the paths by which mounts other than own show what stands at
// inside, a path in the file system of dev that is seen at shows.
func (ix *MountIndex) show(out []Alias, own int, dev, inside, shows string) []Alias {
	for _, i := range ix.byDev[dev] {
		m := ix.mounts[i]
		if m.ID == own {
			continue
		}
		a := Alias{Shows: shows, FSType: m.FSType}
		switch {
		case Within(inside, m.Root):
			a.Path, a.Shows = m.Point, Join(shows, Rel(inside, m.Root))
		case Beneath(m.Root, inside):
			a.Path = Join(m.Point, Rel(m.Root, inside))
		default:
			continue
		}
		if by, ok := ix.Of(a.Path); ok && by.ID == m.ID {
			out = append(out, a)
		}
	}
	return out
}
