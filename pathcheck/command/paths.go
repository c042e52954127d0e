package command

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

const nameBytes = "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func climbs(p string) bool { return strings.Contains("/"+p+"/", "/../") }

// real resolves an absolute path, which may hold "..".
func (c *checker) real(p string) string {
	c.step(1 + len(p)/16)
	clean := path.Clean(p)
	// The resolution starts again at the top for each "..". What /proc/self leads to
	// is another thing for the command.
	c.looked += strings.Count(p, "/") * (1 + strings.Count(p, ".."))
	if c.looked <= maxLookups && !pathcheck.Within("/proc", clean) {
		if q, err := c.Resolve(p); err == nil {
			return q
		}
	}
	return clean
}

// locate judges a path.
func (c *checker) locate(w word, use Use, s *state) {
	p := w.text
	switch {
	case w.why != "" || p == "":
		c.unclear(p, w.pos, w.why)
		return
	case p[0] == '/':
	case s.dir == "":
		if use == write || climbs(p) {
			c.unclear(p, w.pos, "relative to a directory that is not known")
		}
		return
	default:
		p = pathcheck.Join(s.dir, p)
	}
	clean := path.Clean(p)
	device := has(devices, clean) || strings.Trim(clean, "0123456789") == "/dev/fd/"
	if device || use == enter { // the shell takes ".." of a cd by the text
		p = clean
	}
	if !device {
		p = c.real(p)
	}
	out := !device && !slices.ContainsFunc(c.Roots, func(root string) bool { return pathcheck.Within(root, p) })
	c.Paths = append(c.Paths, Named{w.text, p, use, w.pos, out})
	switch {
	case !out || use == read:
	case w.text[0] == '/':
		c.violate(ScopeWorkspace, "absolute path %q escapes workspace %q", w.text, c.Workspace)
	case use == enter:
		c.violate(ScopeWorkspace, leaves)
	default:
		c.violate(ScopeWorkspace, "path %q escapes workspace %q", w.text, c.Workspace)
	}
}

// judge judges words of a command: themselves, and a path glued to an option or a
// key in front of it. One without a slash is no path.
func (c *checker) judge(use Use, s *state, ws ...word) {
	for i := 0; i < len(ws) && use != data; i++ {
		w := ws[i]
		if c.step(1 + len(w.text)/64); w.why != "" || w.text == ".." || w.text[0] != '-' && strings.Contains(w.text, "/") {
			c.locate(w, use, s)
		}
		rest, more := w.text, use != read && w.why == ""
		if len(rest) > 2 && rest[0] == '-' && rest[1] != '-' {
			rest = "=" + rest[2:] // -I/path
		}
		for more {
			var key string
			key, rest, more = strings.Cut(rest, "=")
			more = more && strings.Trim(key, "-+"+nameBytes) == ""
			if c.step(len(rest) / 64); more && (strings.HasPrefix(rest, "/") || climbs(rest)) {
				c.locate(word{rest, "", w.pos}, use, s)
			}
		}
	}
}

// redirect follows a redirection. What here-documents and here-strings hold is data.
func (c *checker) redirect(rd *syntax.Redirect, s *state) {
	if rd.Hdoc != nil || rd.Op == syntax.WordHdoc {
		c.children(rd, s)
		return
	}
	w, use := c.expand(rd.Word, s), write
	if rd.Op == syntax.RdrIn {
		use = read
	}
	fd := strings.Trim(w.text, "0123456789")
	switch {
	case (rd.Op == syntax.DplIn || rd.Op == syntax.DplOut) && (fd == "" || fd == "-"):
	case strings.HasPrefix(w.text, "/dev/tcp/") || strings.HasPrefix(w.text, "/dev/udp/"): // connections of bash
		if c.Network == NetworkDeny {
			c.violate("", reaches, w.text)
		}
	default:
		c.locate(w, use, s)
	}
}
