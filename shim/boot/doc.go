// Package boot is what must happen before the Go runtime starts.
//
// A Go program that becomes another program with execve does not hand over
// what it was given: the runtime installs signal handlers, unblocks signals,
// opens descriptors 0 to 2, raises the limit of open files and reads the
// environment. This package supplies the entry point of the binary. It runs
// first, on the bare stack, and
//
//   - becomes the recorded program at once when there is no policy
//     (pass-through), without starting the runtime at all;
//   - otherwise notes the signal state, the limits and the raw vectors, blocks
//     every signal, and starts the runtime with an argument vector and an
//     environment of its own, so that neither the runtime nor any package reads
//     a variable of the caller;
//   - keeps the runtime from installing handlers, except for the three faults
//     (SIGSEGV, SIGBUS, SIGFPE) that Go turns into panics, and not even for those
//     if the caller blocks or ignores them.
//
// [Exec] gives everything back and becomes the program.
//
// What this means for code in the same binary:
//
//   - os.Args, os.Getenv and os.Environ do not show the caller's vectors. Use
//     [Argv] and [Envp].
//   - os/signal delivers nothing, and syscall.AllThreadsSyscall must not be
//     used: their signals have no handler.
//   - Exec must be called from the main goroutine, which this package locks to
//     the main thread.
//
// The binary must be linked with the flags in ldflags.mk. Without them the
// entry point does not run, and [Entered] is false. Tests and other programs
// that merely import this package are not changed in any way.
//
// The package supports linux on amd64 and arm64. For another architecture it
// does not compile, because a binary without the entry point would lose the
// caller's state without a word. On other systems only the constants exist.
package boot
