// Package escape tries to get out of a confinement, in a few hundred ways, as
// root and as uid 65534: within one launch, and by what one launch leaves for
// the next.
//
// The program in testdata/attempt has a function for each attempt. It knows the
// policy and all paths. Each attempt is made without a policy first: what does
// not succeed there proves nothing by failing in a launch.
package escape
