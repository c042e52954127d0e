// Package descriptors tries what becomes of the descriptors that a launch
// inherits.
package descriptors
