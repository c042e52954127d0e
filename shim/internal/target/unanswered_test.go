package target

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
)

// A file that cannot be looked at is neither a program nor missing.
func TestTargetUnanswered(t *testing.T) {
	dir := errnotest.RealDir(t)
	errnotest.Must(t, os.Mkdir(dir+"/bin", 0o755))
	path := dir + "/bin/prog"
	errnotest.Must(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	env := []string{"PATH=" + dir + "/none:" + dir + "/bin"}
	search := func() error { _, _, err := follower{env: env}.search("prog"); return err }
	check := func() error { _, err := checkFile(path, Self{}); return err }
	for _, err := range []error{search(), check()} {
		errnotest.Must(t, err)
	}
	for _, row := range []struct {
		call  errnotest.Call
		errno unix.Errno
		want  error
	}{
		{errnotest.Openat, unix.EACCES, nil}, // it can be started all the same
		{errnotest.Openat, unix.ENOENT, ErrNotFound},
		{errnotest.Call{Nr: unix.SYS_FACCESSAT2}, unix.EACCES, errNotExecutable},
		{errnotest.Fstatat, unix.ENOENT, ErrNotFound},
		{errnotest.Fstatat, unix.ENOTDIR, ErrNotFound},
	} {
		errnotest.Answering(t, row.call, row.errno, func() {
			for name, do := range map[string]func() error{"check": check, "search": search} {
				if err := do(); !errors.Is(err, row.want) {
					t.Errorf("%s: system call %d: %v: %v, want %v", name, row.call.Nr, row.errno, err, row.want)
				}
			}
		})
	}
	for _, c := range []errnotest.Call{errnotest.Openat, {Nr: unix.SYS_FACCESSAT2}, errnotest.Fstatat} {
		for _, errno := range errnotest.Silent[1:] { // EMFILE is no obstacle for readHead
			errnotest.Answering(t, c, errno, func() {
				for name, do := range map[string]func() error{"check": check, "search": search} {
					if err := do(); !errors.Is(err, errno) || errors.Is(err, ErrNotFound) {
						t.Errorf("%s: system call %d: %v: %v", name, c.Nr, errno, err)
					}
				}
			})
		}
	}
}

// A shim that could not look at itself follows neither its record nor PATH.
func TestSelfUnanswered(t *testing.T) {
	if me := FindSelf("/proc/self/exe", nil); !me.known || !me.readable || me.err != nil {
		t.Fatalf("%+v", me)
	}
	for _, c := range []errnotest.Call{{Nr: unix.SYS_FACCESSAT2}, errnotest.Fstatat, {Nr: unix.SYS_READLINKAT}} {
		var me Self
		errnotest.Answering(t, c, unix.ENOMEM, func() { me = FindSelf("/proc/self/exe", nil) })
		if _, err := Find(Question{Self: me, Program: "/bin/true"}); !errors.Is(err, unix.ENOMEM) {
			t.Errorf("system call %d: %+v, %v", c.Nr, me, err)
		}
	}
	errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_FACCESSAT2}, unix.EACCES, func() {
		if me := FindSelf("/proc/self/exe", nil); !me.known || me.readable || me.err != nil {
			t.Errorf("unreadable: %+v", me)
		}
	})
}
