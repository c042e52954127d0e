// Package hiding tests, against the real static binaries, that what a policy
// hides cannot be reached, what it exposes can, and what is limited is
// reported. Rows of a table are operations, and each has two outcomes: without
// a policy and with one, so that a denial never stands for a broken test.
package hiding
