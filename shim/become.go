package shim

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/target"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/seccomp"
)

// passThrough is the launch without a policy: nothing is added or taken.
func (l *launch) passThrough(env []string) (err error) {
	c := l.call
	if c.Record.OnMissing == record.Refuse && !seccomp.Marked() {
		return &failure{code: exitRefused, what: "refused", err: fmt.Errorf("no policy in %s, and this shim was installed to want one", policyEnv(c))}
	}
	if l.program, err = target.Find(target.Question{Self: l.self, Record: c.Record, Argv: c.Argv, Env: env}); err != nil {
		return targetFailure(err)
	}
	return l.become(env)
}

func targetFailure(err error) error {
	if errors.Is(err, target.ErrNotFound) || errors.Is(err, target.ErrIsShim) {
		return &failure{code: exitNotFound, what: "not found", err: err}
	}
	return &failure{code: exitRefused, what: "cannot be executed", err: err}
}

// become calls execve. A file that is neither a binary nor a script with a #!
// line is run by /bin/sh, as execvp(3) does.
func (l *launch) become(env []string) error {
	path, argv := l.program.Path, l.call.Argv
	args := argv[min(1, len(argv)):]
	if l.call.Record.Argv0 == record.Real {
		argv = append([]string{path}, args...)
	}
	err := l.call.Exec(path, argv, env)
	if errors.Is(err, unix.ENOEXEC) {
		script := append([]string{"/bin/sh", path}, args...)
		if err2 := l.call.Exec("/bin/sh", script, env); err2 != nil {
			err = err2
		}
	}
	f := &failure{code: exitRefused, what: "execve", err: fmt.Errorf("%q: %w", path, err)}
	switch {
	case !errors.Is(err, unix.ENOENT):
	case exists(path):
		f.hint = "the file is there, so its #! interpreter or its loader is missing"
	default:
		f.code = exitNotFound
	}
	return f
}

func exists(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil
}
