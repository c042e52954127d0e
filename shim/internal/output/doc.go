// Package output is all that a launch says: lines on standard error, the files
// or descriptors of report and log, and the logger. Nothing of it ever goes to
// standard output, which is the program's.
//
// It cannot keep a program that was started from changing what was written; that
// is the place of the file, which the policy chooses.
package output
