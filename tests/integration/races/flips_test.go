package races

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A flip is one thing that a peer does, and its undoing. What needs no mount
// could be done by any process of the launch's user.
type flip struct {
	name     string
	do, undo func(*stage) error
	// clear takes away what an undoing left, before a launch; nil if it leaves
	// nothing.
	clear func(*stage) error
}

func flips() []flip {
	return []flip{
		exchange("sibling becomes a symlink", "w/above/aside", "w/above/link"),
		exchange("exchange the hidden directory", "w/above/secret", "w/above/decoy"),
		exchange("exchange the hidden file", "w/above/key", "w/above/aside-file"),
		exchange("exchange hidden file and directory", "w/above/key", "w/above/secret"),
		exchange("exchange the directory above", "w/above", "w/other"),
		exchange("exchange the directory above with an empty one", "w/above", "w/bare"),
		move("the hidden directory vanishes", "w/above/secret", "w/above/gone"),
		move("the directory above vanishes", "w/above", "w/gone"),
		move("the hidden path appears", "hold/later", "w/above/later"),
		bind("sibling shows the hidden directory", "w/above/secret", "w/above/aside"),
		bind("sibling shows a part of the hidden directory", "w/above/secret/sub", "w/above/aside"),
		bind("sibling shows the directory above", "w/above", "w/bare"),
		bind("sibling shows the root", "", "w/above/aside"),
		bind("sibling shows the hidden file", "w/above/key", "w/above/aside-file"),
		bind("another directory over the hidden one", "w/above/decoy", "w/above/secret"),
		bind("another directory over the one above", "w/other", "w/above"),
		grow("the directory above a hidden path appears, the hidden file later", "w/above/new", "token"),
	}
}

// grow makes a directory, and as its undoing a file in it.
func grow(name, dir, file string) flip {
	clear := func(s *stage) error { return os.RemoveAll(s.at(dir)) }
	return flip{
		name:  name,
		do:    func(s *stage) error { return errors.Join(clear(s), os.Mkdir(s.at(dir), 0o755)) },
		undo:  func(s *stage) error { return os.WriteFile(filepath.Join(s.at(dir), file), []byte(hiddenText), 0o644) },
		clear: clear,
	}
}

func exchange(name, a, b string) flip {
	f := func(s *stage) error {
		if err := unix.Renameat2(unix.AT_FDCWD, s.at(a), unix.AT_FDCWD, s.at(b), unix.RENAME_EXCHANGE); err != nil {
			return fmt.Errorf("exchange %s and %s: %w", a, b, err)
		}
		return nil
	}
	return flip{name: name, do: f, undo: f}
}

func move(name, from, to string) flip {
	return flip{
		name: name,
		do:   func(s *stage) error { return unix.Rename(s.at(from), s.at(to)) },
		undo: func(s *stage) error { return unix.Rename(s.at(to), s.at(from)) },
	}
}

func bind(name, from, to string) flip {
	return flip{
		name: name,
		do: func(s *stage) error {
			if err := unix.Mount(s.at(from), s.at(to), "", unix.MS_BIND, ""); err != nil {
				return fmt.Errorf("bind %s on %s: %w", from, to, err)
			}
			return nil
		},
		undo: func(s *stage) error { return unix.Unmount(s.at(to), unix.MNT_DETACH) },
	}
}
