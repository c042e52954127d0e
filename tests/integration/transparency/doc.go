// Package transparency tests that a program cannot tell whether a shim stood in
// front of it: every state of the caller reaches it as in a direct start, and
// signals that arrive during the launch do what they would do to the program.
package transparency
