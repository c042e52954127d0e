// Package record reads and writes the record in a shim's own binary: which
// program it stands for, and how it was installed.
//
// The record is a block of fixed size in the data of the binary, behind a magic
// that occurs once. [Patch] writes it into a copy; the running shim reads it
// with [Decode]. Layout and sizes are those of package boot, which checks the
// same block before the Go runtime starts.
//
// [IsShim] tells a shim of any version from other files, by a marker in the
// first page which is not the record's magic.
package record
