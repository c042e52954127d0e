// Package load reads policies and profiles from where a launch finds them: the
// value of a variable, the file that it names, the directory of profiles.
//
// It is the only place beneath rules that opens files of a policy. What their
// text means is decided by package rules.
package load
