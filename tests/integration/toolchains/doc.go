// Package toolchains runs real compilers, package managers and other tools in
// scope workspace, with nothing in their environment that points them anywhere,
// and compares with the same run without the shim: the exit status of each
// step, and what is left in the workspace.
package toolchains
