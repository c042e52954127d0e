// Package probe tries "install-shim probe" with the built binaries: that it finds
// what holds, and above all that it finds what does not.
package probe
