// Package programs runs ordinary programs from a bash with and without the
// shim in its place, and compares how they end and what they say. A directory
// is hidden beside their work, and then where it hurts: directly in HOME, in
// TMPDIR, in the current directory. docs/compatibility.md shows the outcome.
package programs
