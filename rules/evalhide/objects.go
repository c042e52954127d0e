package evalhide

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

const (
	// maxStores is how many object directories one may borrow from; a policy takes
	// no more paths.
	maxStores = 4096
	// maxDepth is how deep Git follows alternates.
	maxDepth = 5
	// maxEntries is more than an object directory has: 256 directories, pack, info.
	maxEntries = 4096
)

// addObjects appends what an object directory borrows from, and where the symbolic
// links lead that stand in its place or in it, or in the place of a directory that it
// borrows from: a link that is hidden does not hide what it leads to.
func addObjects(list []string, objects string) ([]string, error) {
	todo := []string{objects}
	for depth := 0; depth <= maxDepth && len(todo) > 0; depth++ {
		var next []string
		for _, dir := range todo {
			links, err := linksOf(dir)
			if err != nil {
				return nil, err
			}
			list = appendNew(list, links)
			text, err := readPointer(pathcheck.Join(dir, "info/alternates"))
			if err != nil {
				return nil, err
			}
			for _, line := range alternates(text) {
				other := leadsTo(dir, line)
				if slices.Contains(list, other) {
					continue
				}
				list, next = append(list, other), append(next, other)
			}
			if len(list) > maxStores {
				return nil, errors.New("too many alternates")
			}
		}
		todo = next
	}
	return list, nil
}

// linksOf returns where the symbolic links lead that stand at an object directory and
// directly in it.
func linksOf(dir string) ([]string, error) {
	var out []string
	add := func(path string) {
		if to, err := os.Readlink(path); err == nil {
			out = append(out, leadsTo(pathcheck.Parent(path), to))
		}
	}
	add(dir)
	entries, err := entriesOf(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Type() == fs.ModeSymlink {
			add(pathcheck.Join(dir, e.Name()))
		}
	}
	return out, nil
}

// entriesOf lists a directory of a few entries. What is none, or not there, has none.
func entriesOf(dir string) ([]os.DirEntry, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO is not waited for
	if err != nil {
		if absent(err) {
			return nil, nil
		}
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxEntries)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, pathcheck.ErrNotDir):
		return nil, nil
	case err == nil && len(entries) == maxEntries:
		return nil, fmt.Errorf("%q: too many entries", dir)
	}
	return entries, err
}

// alternates returns the paths in the text of an alternates file. A line that begins
// with a quote is one as in C, with which a path may have any byte; where the quoting
// is broken, it is taken as it stands (parse_alt_odb_entry in Git's sources).
func alternates(text string) (out []string) {
	for text != "" {
		path, rest, ok := unquote(text)
		if ok {
			rest = strings.TrimPrefix(strings.TrimPrefix(rest, "\r"), "\n")
		} else {
			path, rest, _ = strings.Cut(text, "\n")
			path = strings.TrimRight(path, "\r")
		}
		if path != "" && (ok || path[0] != '#') {
			out = append(out, path)
		}
		text = rest
	}
	return out
}

// unquote reads a quoted path from the start of a text (unquote_c_style in Git's
// sources).
func unquote(text string) (path, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		return "", text, false
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		c := text[i]
		if c == '"' {
			return b.String(), text[i+1:], true
		}
		if c != '\\' {
			b.WriteByte(c)
			continue
		}
		if i++; i == len(text) {
			break
		}
		const escapes, values = `abfnrtv\"`, "\a\b\f\n\r\t\v\\\""
		if at := strings.IndexByte(escapes, text[i]); at >= 0 {
			b.WriteByte(values[at])
			continue
		}
		if len(text) < i+3 || text[i] > '3' || !octal(text[i:i+3]) {
			break
		}
		b.WriteByte((text[i]-'0')<<6 | (text[i+1]-'0')<<3 | (text[i+2] - '0'))
		i += 2
	}
	return "", text, false
}

func octal(s string) bool { return strings.Trim(s, "01234567") == "" }

func appendNew(list, more []string) []string {
	for _, path := range more {
		if !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list
}
