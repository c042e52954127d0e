// Package rules holds what was asked of a launch: the types of a policy, its
// decoding and validation, profiles, templates and the directories of tools, and
// the table of what each key guarantees.
//
// Nothing here opens a file or calls the kernel: text comes in as bytes. Package
// load reads policies and profiles from files; package plan says what a policy
// means on the machine at hand; whether it was enforced only a launch can say.
package rules
