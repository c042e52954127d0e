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
	return Mount{
		ID: id, Parent: parent, Dev: f[2],
		Root: unescape(f[3]), Point: unescape(f[4]), Options: f[5],
		FSType: g[0], Source: unescape(g[1]), Super: unescape(g[2]),
	}, nil
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
// covered by a later one is not it.
func (ms Mounts) Of(path string) (Mount, bool) {
	cur, ok := ms.root()
	if !ok {
		return Mount{}, false
	}
	for _, p := range append(Ancestors(path), path) {
		for next, ok := ms.child(cur.ID, p); ok; next, ok = ms.child(cur.ID, p) {
			cur = next
		}
	}
	return cur, true
}

func (ms Mounts) root() (Mount, bool) {
	known := make(map[int]bool, len(ms))
	for _, m := range ms {
		known[m.ID] = true
	}
	for _, m := range ms {
		if m.Point == "/" && (!known[m.Parent] || m.Parent == m.ID) {
			return m, true
		}
	}
	return Mount{}, false
}

func (ms Mounts) child(parent int, point string) (Mount, bool) {
	for _, m := range ms {
		if m.Parent == parent && m.ID != parent && m.Point == point {
			return m, true
		}
	}
	return Mount{}, false
}

// Aliases returns the other paths at which mounts show what stands at path,
// something inside it, or a directory that contains it: in the last case the
// path below that mount which leads there. path must be absolute and free of
// symlinks, and need not exist. Paths that another mount covers are left out.
func (ms Mounts) Aliases(path string) []string {
	own, ok := ms.Of(path)
	if !ok {
		return nil
	}
	inside := Join(own.Root, Rel(own.Point, path))
	var out []string
	for _, m := range ms {
		if m.ID == own.ID || m.Dev != own.Dev {
			continue
		}
		alias := ""
		switch {
		case Within(inside, m.Root):
			alias = m.Point
		case Beneath(m.Root, inside):
			alias = Join(m.Point, Rel(m.Root, inside))
		default:
			continue
		}
		// Reached by this mount, and not where path already is.
		if by, ok := ms.Of(alias); ok && by.ID == m.ID && !Within(path, alias) {
			out = append(out, alias)
		}
	}
	return out
}
