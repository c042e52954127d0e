// Package plan says what a policy means on this machine: which real locations
// are hidden, what stands above them, which mounts show them again, and what may
// be written. A [Plan] is turned into grants by [Plan.Walk].
//
// Nothing here opens a file. The file system is seen through [pathcheck.Tree] and
// each grant goes to a [Sink], so that one decision serves the launch, the
// explanation and the tests, on any system. Whether a grant was enforced the
// package cannot tell: a launch asks the kernel, and then tries.
package plan
