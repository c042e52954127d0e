// Package confine asks the kernel what it offers, confines the calling thread, and
// proves from inside that what was entered holds.
//
// [Enter] returns the [Domain]; [Domain.Prove] goes by it and by the plan, and tries.
// What must be closed or made before (inherited descriptors, the private /proc) is
// here as well. The package does not know what is reported.
//
// A proof is about this moment: what processes outside do to the file system later
// is not seen.
package confine
