package shim

import "github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"

// A Call is how the process was started, as package boot kept it, and the way
// out. All strings are the raw bytes of the caller.
type Call struct {
	// Entered is false when the binary was linked without its entry point.
	Entered bool
	// Argv and Envp are the caller's vectors.
	Argv, Envp []string
	// ExecFn is AT_EXECFN, the path that execve was given.
	ExecFn string
	// Privileged says why the shim lends privileges that the caller does not
	// have, or is "".
	Privileged string
	// Closed tells which of the descriptors 0, 1 and 2 the caller had closed;
	// something harmless stands there meanwhile.
	Closed [3]bool
	// Record is what was chosen at install time; the zero value without one.
	Record record.Record
	// RecordErr is set when the record is damaged.
	RecordErr error
	// Version is the shim's own.
	Version string
	// Exec gives back the caller's state and calls execve. It returns only
	// when that failed.
	Exec func(path string, argv, envp []string) error
	// Unblock lets signals through again on the calling thread.
	Unblock func()
}
