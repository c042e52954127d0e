// Package rules holds the policy of a launch: its types, its decoding and
// validation, the table of what each key guarantees, and the compiler that
// turns a policy into Landlock grants.
//
// Nothing here calls the kernel. The compiler sees the file system through
// [pathcheck.Tree] and hands each grant to a [Sink], so that one decision
// serves the launch, the explanation and the tests, on any system.
//
// The package cannot tell whether a grant was enforced: that is the work of
// package shim, which asks the kernel and then tries.
package rules
