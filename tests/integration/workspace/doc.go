// Package workspace holds the tests of scope "workspace" and of what goes with
// it: which directories are writable, what is denied and with which errno, and
// the command check.
package workspace
