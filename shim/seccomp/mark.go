package seccomp

import "golang.org/x/sys/unix"

// The mark: a prctl option that no kernel has, answered by the filter with an
// errno that no kernel gives. It is inherited over fork and execve, cannot be
// shed, and leaves the environment alone, so a launch can tell that it descends
// from a confined one. It is no authentication: whoever may load a filter can
// load this one, and has gained nothing by it.
const (
	markQuestion = 0x53484d31
	markAnswer   = unix.Errno(3999) // below MAX_ERRNO, beyond every errno in use
)

// proofQuestion is answered like the mark, when its argument is the filter's own.
const proofQuestion = markQuestion + 1

// Marked reports whether this process stands behind a filter with the mark.
func Marked() bool { return ask(markQuestion, 0) }

func ask(question, argument uintptr) bool {
	_, _, errno := unix.RawSyscall6(unix.SYS_PRCTL, question, argument, 0, 0, 0, 0)
	return errno == markAnswer
}
