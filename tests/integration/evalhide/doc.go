// Package evalhide tries, with the built binaries and the real git, that a
// policy made by "install-shim policy eval-hide" keeps graders from an agent.
package evalhide
