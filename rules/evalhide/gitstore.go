package evalhide

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// GitStore returns what holds the history of the checkout at repo, an absolute
// clean path: its .git, which need not exist. Where that is a file, as in a
// linked work tree or a submodule, also the directory that its "gitdir:" line
// names and that directory's common directory (gitrepository-layout(5)); and
// the object directories that a store of either kind borrows from
// (objects/info/alternates), and where a symbolic link in one of them, or in the place
// of one, leads. A .git file without such a line is just a file.
//
// The paths are absolute and clean. Whoever reads one of them reads every
// revision, whatever is hidden of the checkout. Other checkouts of the same
// repository are not in the list: see [WorkTrees].
//
// The error is that of a file that is there and cannot be read.
func GitStore(repo string) ([]string, error) {
	dotGit := pathcheck.Join(repo, ".git")
	list := []string{dotGit}
	common, more, err := gitDirs(dotGit)
	if err != nil {
		return nil, fmt.Errorf("git store: %w", err)
	}
	list = append(list, more...)
	list, err = addObjects(list, pathcheck.Join(common, "objects"))
	if err != nil {
		return nil, fmt.Errorf("git store: %w", err)
	}
	return unique(list), nil
}

// gitDirs returns the common directory behind a .git, and the directories that
// a .git file leads to.
func gitDirs(dotGit string) (common string, more []string, err error) {
	text, err := readPointer(dotGit)
	if err != nil {
		return "", nil, err
	}
	dir, ok := gitDirLine(text)
	if !ok {
		return dotGit, nil, nil // a directory, nothing, or a file of another kind
	}
	gitDir := leadsTo(pathcheck.Parent(dotGit), dir)
	text, err = readPointer(pathcheck.Join(gitDir, "commondir"))
	if err != nil {
		return "", nil, err
	}
	dir = strings.TrimRight(text, "\r\n")
	if dir == "" {
		return gitDir, []string{gitDir}, nil
	}
	common = leadsTo(gitDir, dir)
	return common, []string{gitDir, common}, nil
}

// gitDirLine finds the pointer in the text of a .git file. Git wants it at the
// start and with a space; other readers are more patient, and what they follow
// counts as well.
func gitDirLine(text string) (string, bool) {
	for line := range strings.Lines(text) {
		if dir, ok := strings.CutPrefix(line, "gitdir:"); ok {
			dir = strings.TrimLeft(strings.TrimRight(dir, "\r\n"), " \t")
			return dir, dir != ""
		}
	}
	return "", false
}

// WorkTrees returns the other checkouts of the repository at repo, absolute and
// clean, as far as its store tells: the main one and the linked ones
// (git-worktree(1)). They show the same files.
func WorkTrees(repo string) ([]string, error) {
	common, _, err := gitDirs(pathcheck.Join(repo, ".git"))
	if err != nil {
		return nil, fmt.Errorf("work trees: %w", err)
	}
	var list []string
	if path.Base(common) == ".git" {
		list = append(list, pathcheck.Parent(common))
	}
	entries, err := entriesOf(pathcheck.Join(common, "worktrees"))
	if err != nil {
		return nil, fmt.Errorf("work trees: %w", err)
	}
	for _, e := range entries {
		dir := pathcheck.Join(common, "worktrees/"+e.Name())
		text, err := readPointer(pathcheck.Join(dir, "gitdir"))
		if err != nil {
			return nil, fmt.Errorf("work trees: %w", err)
		}
		if text = strings.TrimRight(text, "\r\n"); text != "" {
			list = append(list, pathcheck.Parent(leadsTo(dir, text)))
		}
	}
	list = slices.DeleteFunc(unique(list), func(p string) bool { return samePlace(p, repo) })
	return slices.DeleteFunc(list, func(p string) bool { _, err := os.Stat(p); return err != nil }), nil
}

// maxPointer is more than a path and its line can have.
const maxPointer = 64 << 10

// readPointer returns the text of a small file, or "" when there is no regular
// file at the path.
func readPointer(p string) (string, error) {
	text, err := pathcheck.ReadRegular(p, maxPointer)
	switch {
	case err == nil:
		return string(text), nil
	case absent(err) || errors.Is(err, pathcheck.ErrNotRegular):
		return "", nil
	}
	return "", fmt.Errorf("%s: %w", strconv.Quote(p), err)
}

func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, pathcheck.ErrNotDir)
}

// leadsTo makes a path absolute and clean that a file in dir names. ".." counts
// from where a symlink before it leads, as in the kernel.
func leadsTo(dir, p string) string {
	if !path.IsAbs(p) {
		p = dir + "/" + p
	}
	clean := path.Clean(p)
	if !samePlace(p, clean) {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return real
		}
	}
	return clean
}

// samePlace reports whether two paths lead to one file, or cannot be compared
// and so must be taken as they are written.
func samePlace(a, b string) bool {
	if a == b {
		return true
	}
	sa, err := os.Stat(a)
	if err != nil {
		return true
	}
	sb, err := os.Stat(b)
	return err == nil && os.SameFile(sa, sb)
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
