package command

import (
	"path"
	"slices"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// devices are the device files that any command may name.
var devices = []string{
	"/dev/null", "/dev/zero", "/dev/full",
	"/dev/random", "/dev/urandom",
	"/dev/tty", "/dev/ptmx",
	"/dev/stdin", "/dev/stdout", "/dev/stderr",
}

// deviceDirs are allowed roots.
var deviceDirs = []string{"/dev/shm", "/dev/pts"}

// harmlessDevice takes a clean path.
func harmlessDevice(p string) bool {
	if n, ok := strings.CutPrefix(p, "/dev/fd/"); ok {
		return digits(n)
	}
	return slices.Contains(devices, p)
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// networkDevice reports whether p is one of the names that bash, in a
// redirection, takes for a connection (REDIRECTION in bash(1)).
func networkDevice(p string) bool {
	return strings.HasPrefix(p, "/dev/tcp/") || strings.HasPrefix(p, "/dev/udp/")
}

func (c *checker) inside(p string) bool {
	for _, r := range c.roots {
		if pathcheck.Within(r, p) {
			return true
		}
	}
	return false
}

// real resolves an absolute path, which may hold "..".
func (c *checker) real(p string) string {
	if q, ok := c.resolved[p]; ok {
		return q
	}
	clean := path.Clean(p)
	q := clean
	// What /proc/self and its like lead to is another thing for the command
	// than for this process.
	if !pathcheck.Within("/proc", clean) {
		for _, p := range [...]string{p, clean} {
			n := lookups(p)
			if c.unlooked = c.unlooked || c.looked+n > maxLookups; c.unlooked {
				break
			}
			c.looked += n
			if got, err := c.Resolve(p); err == nil {
				q = got
				break
			}
		}
	}
	c.resolved[p] = q
	return q
}

// lookups is how many directories the resolution of p looks into: it starts
// again at the top for each "..".
func lookups(p string) int {
	n, depth := 0, 0
	for more := true; more; n++ {
		var name string
		name, p, more = strings.Cut(p, "/")
		switch name {
		case "", ".":
		case "..":
			depth = max(0, depth-1)
			n += depth
		default:
			depth++
		}
	}
	return n
}

// outside reports whether an absolute path leads outside, and where to.
func (c *checker) outside(p string) (string, bool) {
	c.read(len(p))
	if clean := path.Clean(p); harmlessDevice(clean) {
		return clean, false
	}
	q := c.real(p)
	return q, !c.inside(q)
}

func climbs(p string) bool {
	return p == ".." || strings.HasPrefix(p, "../") || strings.HasSuffix(p, "/..") || strings.Contains(p, "/../")
}

// locate judges one path. dirs are the directories in which a relative path may
// be meant, empty if that is not known. partly says that pieces of the text are
// not known and stand for one component each; such a path is not listed unless
// it leads outside whatever they are.
func (c *checker) locate(text string, dirs []string, use Use, pos int, partly bool) {
	if text == "" {
		return
	}
	if strings.HasPrefix(text, "/") {
		p, out := c.outside(text)
		if !partly || out {
			c.name(Named{Text: text, Path: p, Use: use, Pos: pos, Outside: out})
		}
		if out && use != Search {
			c.violate(Violation{Kind: Absolute, Path: text, Pos: pos})
		}
		return
	}
	if use == Assign || use == Search {
		return // means nothing until it is used, and then it is looked at
	}
	if use == Argument && !climbs(text) && !strings.Contains(text, "/") {
		return // a plain word
	}
	if len(dirs) == 0 {
		if use != Argument && use != Exec || climbs(text) {
			c.unclear(text, pos, "relative to a directory that is not known")
		}
		return
	}
	some, all := false, true
	for _, d := range dirs {
		p, out := c.outside(pathcheck.Join(d, text))
		if !partly || out {
			c.name(Named{Text: text, Path: p, Use: use, Pos: pos, Outside: out})
		}
		some, all = some || out, all && out
	}
	switch {
	case all, some && use != Argument && use != Exec:
		c.violate(Violation{Kind: Relative, Path: text, Pos: pos})
	case some:
		c.unclear(text, pos, "leads outside if a cd before it fails")
	}
}

// locateWord judges what a word of a command may name: itself, and a path glued
// to an option, a key or a marker in front of it.
func (c *checker) locateWord(text string, dirs []string, use Use, pos int, partly bool) {
	c.locate(text, dirs, use, pos, partly)
	glued(text, func(p string) {
		c.read(len(p))
		if strings.HasPrefix(p, "/") || climbs(p) {
			c.locate(p, dirs, Argument, pos, partly)
		}
	})
}

// glued finds the paths that a word carries behind something else.
func glued(text string, found func(string)) {
	if rest, ok := strings.CutPrefix(text, "file:"); ok {
		if host, ok := strings.CutPrefix(rest, "//"); ok {
			i := strings.IndexByte(host, '/')
			if i < 0 {
				return
			}
			rest = host[i:]
		}
		found(rest)
		return
	}
	if rest, ok := strings.CutPrefix(text, "@"); ok {
		found(rest)
	}
	if key, val, ok := strings.Cut(text, "="); ok && strings.Trim(key, keyBytes) == "" {
		found(strings.TrimPrefix(val, "@"))
		glued(val, found)
	}
	if strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") {
		// -I/path, -C../dir, -d@/file, -isystem/path, -Wl,-rpath,/path. Behind more
		// letters than one it would be a guess where the path starts.
		if len(text) > 2 {
			found(strings.TrimPrefix(text[2:], "@"))
		}
		for _, opt := range longWithOneDash {
			if rest, ok := strings.CutPrefix(text, opt); ok {
				found(rest)
			}
		}
		for rest := text; ; {
			_, after, ok := strings.Cut(rest, ",")
			if !ok {
				break
			}
			if strings.HasPrefix(after, "/") {
				p, _, _ := strings.Cut(after, ",")
				found(p)
			}
			rest = after
		}
	}
}

// longWithOneDash are compiler options that a path is glued to.
var longWithOneDash = []string{
	"-isystem", "-isysroot", "-idirafter", "-iquote", "-include", "-imacros", "-iprefix", "-specs",
}

const keyBytes = "-_+0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
