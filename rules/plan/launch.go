package plan

import "github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"

// A Launch is what must be known of one launch besides its policy.
type Launch struct {
	// Cwd is the current directory as getcwd(2) gives it, "" if unknown.
	Cwd string
	// TempDir is $TMPDIR, or /tmp: the directory in which the program will
	// make temporary files. Absolute.
	TempDir string
	// Env is the environment of the program, "NAME=value" strings. It says
	// where the toolchain directories are.
	Env []string
	// Homes are the home directories, Shims the paths at which the shim is
	// installed, absolute: none of them, and nothing above them, is writable as a
	// whole.
	Homes, Shims []string
	// EUID is the effective user id, or 0 for a process that holds
	// capabilities: for 0, /proc and /sys are never granted for writing.
	EUID int
	// Needed is what must stay open for the program to start.
	Needed []Need
	// Mounts is the mount table, read before anything was looked up; empty where it
	// cannot be read.
	Mounts pathcheck.Mounts
	// Names are absolute paths whose components are tried in a directory that
	// cannot be listed: the directories of PATH, the program, HOME, …
	Names []string
	// Past is what earlier plans of this launch found hidden; nil when there
	// is only one plan.
	Past *Past
}

// A Need is a file without which the program cannot start.
type Need struct {
	// Role says what it is to the program: "the program", "its loader", …
	Role string
	// Path is absolute; symlinks are followed.
	Path string
}
