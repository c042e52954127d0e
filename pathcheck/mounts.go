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

// Of returns the mount through which the absolute, symlink-free path is
// reached, following the tree of mounts as a lookup does: a mount that is
// covered by a later one is not it, and neither is one that stands on "/"
// itself, which no lookup enters. It is false when the table does not show
// that mount, as after chroot(2) into a directory that is no mount point.
func (ms Mounts) Of(path string) (Mount, bool) {
	cur, known := ms.root()
	for _, p := range append(Ancestors(path), path) {
		if p == "/" {
			continue
		}
		for next, ok := ms.child(cur.ID, p); ok; next, ok = ms.child(cur.ID, p) {
			cur, known = next, true
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

func (ms Mounts) child(parent int, point string) (Mount, bool) {
	for _, m := range ms {
		if m.Parent == parent && m.ID != parent && m.Point == point {
			return m, true
		}
	}
	return Mount{}, false
}

// Reaches reports whether a lookup of its mount point leads to m, that is,
// whether no other mount covers it.
func (ms Mounts) Reaches(m Mount) bool {
	by, ok := ms.Of(m.Point)
	return ok && by.ID == m.ID
}

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
func (ms Mounts) Aliases(path string) ([]Alias, bool) {
	var out []Alias
	own, known := ms.Of(path)
	if known {
		out = ms.show(out, own, Join(own.Root, Rel(own.Point, path)), path)
	}
	for _, sub := range ms {
		if Beneath(path, sub.Point) && ms.Reaches(sub) {
			out = ms.show(out, sub, sub.Root, sub.Point)
		}
	}
	return out, known
}

// show appends the paths by which mounts other than own show what stands at
// inside, a path in own's file system that is seen at shows.
func (ms Mounts) show(out []Alias, own Mount, inside, shows string) []Alias {
	for _, m := range ms {
		if m.ID == own.ID || m.Dev != own.Dev {
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
		if by, ok := ms.Of(a.Path); ok && by.ID == m.ID {
			out = append(out, a)
		}
	}
	return out
}
