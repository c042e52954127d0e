package races

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// How long a flip stays: to the program's first round, or for some system
// calls of the shim.
var stays = []struct {
	name  string
	calls int
}{{"left", 0}, {"for one system call", 1}, {"for 12 system calls", 12}}

// blind are the system calls that depend on descriptors, memory or the process
// alone. A flip at the entry of one is the same as at the entry of the next
// call that looks at a path, a directory or the mounts, so it is tried there.
var blind = []uint64{
	unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_FCNTL, unix.SYS_WRITE, unix.SYS_LSEEK,
	unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_FUTEX,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGPENDING, unix.SYS_RT_SIGRETURN,
	unix.SYS_PRCTL, unix.SYS_PRLIMIT64, unix.SYS_CAPGET, unix.SYS_CAPSET, unix.SYS_GETEUID, unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_TGKILL,
}

// TestExchangesAtEverySystemCallOpenNothing disturbs a launch once, at each system call after
// the identities of the hidden paths are known. Whatever is left is undone
// while the program runs.
func TestExchangesAtEverySystemCallOpenNothing(t *testing.T) {
	every := 1
	if testing.Short() {
		every = 9
	}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		t.Parallel()
		onStage(t, u, func(s *stage) error {
			if err := s.control(); err != nil {
				return err
			}
			for _, f := range s.flips {
				launches, refused, useful := 0, 0, 0
				for _, stay := range stays {
					calls := 0
					for k := 0; ; k += every {
						o, reached, err := s.disturb(f, k, stay.calls)
						if err != nil {
							return fmt.Errorf("%s, %s, at call %d: %w", f.name, stay.name, k, err)
						}
						if !reached {
							break
						}
						launches++
						calls++
						no, err := judge(o)
						if err != nil {
							t.Errorf("%s, %s, at call %d: %v", f.name, stay.name, k, err)
						}
						if no {
							refused++
						}
						if o.readsOpen() {
							useful++
						}
					}
					if calls < 30/every {
						t.Errorf("%s, %s: only %d system calls were found", f.name, stay.name, calls)
					}
				}
				t.Logf("%s: %d launches, %d refused", f.name, launches, refused)
				if useful < launches/4 {
					t.Errorf("%s: only in %d of %d launches could the program read what is open", f.name, useful, launches)
				}
			}
			return nil
		})
	})
}

// disturb makes one launch with a flip at the entry of the k-th system call
// after the identities are known, undone after some calls or, with calls 0, by
// the program's second round. reached is false when there were not so many.
func (s *stage) disturb(f flip, k, calls int) (o outcome, reached bool, err error) {
	if f.clear != nil {
		if err := f.clear(s); err != nil {
			return o, false, err
		}
	}
	known, flipped := false, false
	seen := 0
	undo := func() error {
		if !flipped {
			return nil
		}
		flipped = false
		return f.undo(s)
	}
	o, err = s.tracee.run(func(at stop) (bool, error) {
		known = known || at.examines(s.secret)
		if !known || !at.entry || slices.Contains(blind, at.nr) {
			return true, nil
		}
		seen++
		switch {
		case seen == k+1:
			flipped, reached = true, true
			return calls > 0, f.do(s)
		case flipped && seen == k+1+calls:
			return false, undo()
		}
		return true, nil
	}, undo)
	if err2 := undo(); err == nil {
		err = err2
	}
	return o, reached, err
}
