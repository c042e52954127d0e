// Command bench prints what a launch through the shim costs, next to the same
// thing without it. It measures and judges nothing: a table of one machine is
// no test.
//
// All variants of a table are run in turn, one spawn each, round after round,
// so that whatever else the machine does meets all of them alike. A spawn is
// the time from before fork to after wait. The ratio of two medians of one run
// says more than either: it is close to the same on other machines.
//
// Every variant ends in the same program, which does nothing but exit with 0,
// so that a program's own start does not cover what is measured.
package main
