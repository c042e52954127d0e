// Package pathcheck says what a path names: whether one path lies beneath
// another, which real location a path with symlinks leads to, which
// directories stand above it, and which mounts show the same place again.
//
// Answers about containment are lexical and exact; answers about locations
// hold for the moment at which the tree was read. A caller that must not be
// fooled by a later change compares identities ([ID]) again when it acts.
package pathcheck
