// Package command says which paths a shell command string names, and whether
// they stay within allowed roots, before anything runs.
//
// It is advice, not a boundary. It reads the text on a real parse (mvdan.cc/sh),
// follows what the text itself says (literal assignments, cd, subshells, loops,
// functions, bash -c), and calls opaque whatever it cannot evaluate instead of
// guessing. An opaque word is reported and never refused by itself.
//
// What it cannot see at all, and does not report: what a program does with its
// arguments, its input, its files and the network; what a start-up file or an
// exported function changes before the string runs; symlinks that the command
// makes itself; what becomes of the tree between the check and the run. The
// operating system's confinement is the answer to those.
//
// The package is the only one that needs the shell parser. A program that wants
// to be built without it puts its own call of this package into a file with a
// build tag, and a file with the negated tag beside it that has no check.
package command
