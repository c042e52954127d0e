// Package shim is one launch from top to bottom: take the policy out of the
// environment, find the real program, plan, confine this process, prove that
// the confinement holds, report, and become the program by execve(2).
//
// [Run] is that list of steps. It works on the raw vectors that package boot
// kept, never on os.Args or os.Environ, which the Go runtime has changed.
//
// The confinement is the kernel's (Landlock, seccomp, capabilities, mounts), so it starts with this process and is
// inherited by all that the program starts. What the package cannot do is
// confine anything that acts for the program from outside.
package shim
