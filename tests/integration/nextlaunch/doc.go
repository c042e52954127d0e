// Package nextlaunch has two launches in a row, the first of them hostile: it tries to
// change what the second rests on, or to have the kernel do what it may not.
package nextlaunch
