// Package races tests that nobody who changes the file system during a launch
// gets a hidden file opened by its own path. A tracer stops the launch at its
// system calls, and a peer of the same user acts there: it makes a sibling a
// symlink or a mount of the hidden path, exchanges the hidden path or a
// directory above it with something else, and makes it vanish and appear.
package races
