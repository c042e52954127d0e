// Package seccomp makes and loads the one seccomp filter of a launch, for what
// Landlock has no verb for: which sockets can be made, input into a terminal, the
// kernel's keyrings, ioctls that reach beyond their own file, limits of other
// processes, and the mark by which a confined descendant is known.
//
// The filter answers with an errno and never kills. It looks at numbers only:
// it cannot follow a pointer, so it cannot see an address, a path, or what a
// message holds.
package seccomp
