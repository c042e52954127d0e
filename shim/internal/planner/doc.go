// Package planner makes the plan of one launch on the running system. It is the only
// one who plans: a launch, an explanation of one, and the check of a command all
// call [Make], with another sink for the grants.
//
// It gathers what package plan of rules must know of the process, watches the table
// of mounts, plans again when the file system changes meanwhile, finds what of the next
// launch the program could change, and makes the directories that a policy asks for.
//
// It confines nothing and proves nothing: that is the work of package confine.
package planner
