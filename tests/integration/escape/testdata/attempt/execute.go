package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// Executing what is hidden.
func init() {
	add(hidden,
		attempt{Name: "execute-program", do: func(w *w) error { return run(w.at("hidden/program"), "escaped") }},
		attempt{Name: "execute-script", do: func(w *w) error { return run(w.at("hidden/script")) }},
		attempt{Name: "execute-through-link", do: func(w *w) error { return run(w.at("work/hidden-link/program"), "escaped") }},
		attempt{Name: "execute-by-shell", do: func(w *w) error { return unread(run("/bin/sh", w.at("hidden/script"))) }},
		attempt{Name: "execute-by-loader", Needs: "a dynamic loader", do: func(w *w) error {
			loader := loader()
			if loader == "" {
				return missing("a dynamic loader")
			}
			return unread(run(loader, w.at("hidden/true")))
		}},
		attempt{Name: "execute-as-interpreter", do: func(w *w) error {
			script := w.at("work/interpreted")
			if err := os.WriteFile(script, []byte("#!"+w.at("hidden/script")+"\n"), 0o700); err != nil {
				return setup(err)
			}
			return run(script)
		}},
		attempt{Name: "execute-by-descriptor", do: func(w *w) error {
			fd, err := place(w.at("hidden/program"))
			if err != nil {
				return setup(err)
			}
			return executeAt(fd, "", unix.AT_EMPTY_PATH)
		}},
		attempt{Name: "execute-below-descriptor", do: func(w *w) error {
			fd, err := place(w.at("hidden"))
			if err != nil {
				return setup(err)
			}
			return executeAt(fd, "program", 0)
		}},
		attempt{Name: "execute-proc-descriptor", do: func(w *w) error {
			fd, err := place(w.at("hidden/program"))
			if err != nil {
				return setup(err)
			}
			return run(fdPath(fd), "escaped")
		}},
		attempt{Name: "execute-check", Rare: "AT_EXECVE_CHECK", do: func(w *w) error {
			const check = 0x10000
			err := executeAt(unix.AT_FDCWD, w.at("hidden/program"), check)
			if errors.Is(err, unix.EINVAL) {
				return missing("AT_EXECVE_CHECK")
			}
			return err
		}},
		attempt{Name: "library-of-a-program", Needs: "a dynamic loader", do: func(w *w) error {
			// A library that the loader is told to take is read as a file.
			if loader() == "" {
				return missing("a dynamic loader")
			}
			cmd := exec.Command("/bin/true")
			cmd.Env = []string{"LD_PRELOAD=" + w.at("hidden/library"), "LD_DEBUG=files"}
			out, err := cmd.CombinedOutput()
			if err != nil {
				return err
			}
			if !strings.Contains(string(out), "calling init: "+w.at("hidden/library")) {
				return errSilent // the loader goes on without it
			}
			return nil
		}},
	)
}

// run starts a program and waits for it.
func run(path string, args ...string) error {
	cmd := exec.Command(path, args...)
	cmd.Dir = "/"
	return cmd.Run()
}

// unread takes the exit status of an interpreter for EACCES, which it does not
// hand on.
func unread(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return unix.EACCES
	}
	return err
}

func loader() string {
	for _, path := range []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"} {
		if unix.Access(path, unix.X_OK) == nil {
			return path
		}
	}
	return ""
}

// executeAt becomes a program by execveat(2), which then says ESCAPED.
func executeAt(fd int, path string, flags int) error {
	argv, env := []uintptr{cstr("attempt"), cstr("escaped"), 0}, []uintptr{0}
	return did(unix.SYS_EXECVEAT, uintptr(fd), cstr(path), ptr(&argv[0]), ptr(&env[0]), uintptr(flags))
}
