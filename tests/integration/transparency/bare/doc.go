// Package bare starts programs from a state that a Go program cannot hand over,
// and reads what a program that uses no runtime finds. See testdata/program.
package bare
