// Package names tests under which names a shim finds its program, with programs
// that care about their own name, and that no arrangement of shims is a loop.
package names
