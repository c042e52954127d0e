// Package layout holds the shape of this module: which package may import
// which, what the shim's binary may link, and what its file must look like.
// It has only tests.
package layout
