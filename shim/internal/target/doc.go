// Package target finds the program that a launch becomes: the shim's own file,
// the real program, and what the kernel needs to start it.
//
// What a program does with its arguments it cannot know, but for env(1): a script
// that comes back to the shim through another one is bounded, not foreseen.
package target
