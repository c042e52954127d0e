package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// Control groups, through which processes are killed, stopped and moved without
// a signal, and through which the kernel starts a program.
func init() {
	group := func(name, text string) func(*w) error {
		return func(w *w) error {
			if w.Cgroup == "" {
				return missing("cgroup version 2")
			}
			return into(w.Cgroup+"/"+name, text)
		}
	}
	freezer := func(name, text string) func(*w) error {
		return func(w *w) error {
			if w.Freezer == "" {
				return missing("the freezer hierarchy")
			}
			return into(w.Freezer+"/"+name, text)
		}
	}
	const v2, v1 = "cgroup version 2", "the freezer hierarchy of cgroup version 1"
	add(signals,
		attempt{Name: "cgroup-freeze", Needs: v2, do: group("cgroup.freeze", "1")},
		attempt{Name: "cgroup-thaw", Needs: v2, do: group("cgroup.freeze", "0")},
		attempt{Name: "cgroup-procs", Needs: v2, do: func(w *w) error {
			// Moving the process that is in the group takes its number.
			if w.Cgroup == "" {
				return missing(v2)
			}
			data, err := os.ReadFile(w.Cgroup + "/cgroup.procs")
			if err != nil {
				return setup(err)
			}
			return into(w.Cgroup+"/cgroup.procs", string(data))
		}},
		attempt{Name: "cgroup-threads", Needs: v2, do: func(w *w) error {
			if w.Cgroup == "" {
				return missing(v2)
			}
			data, err := os.ReadFile(w.Cgroup + "/cgroup.procs")
			if err != nil {
				return setup(err)
			}
			return into(w.Cgroup+"/cgroup.threads", string(data))
		}},
		attempt{Name: "cgroup-kill", Needs: v2, do: group("cgroup.kill", "1")},
		attempt{Name: "cgroup-new", Needs: v2, do: func(w *w) error {
			if w.Cgroup == "" {
				return missing(v2)
			}
			return unix.Mkdir(w.Cgroup+"/new", 0o700)
		}},
		attempt{Name: "memory-limit", Rare: "a memory controller", do: func(w *w) error {
			if w.Memory == "" {
				return missing("a memory controller")
			}
			return rewrite(w.Memory)
		}},
		attempt{Name: "freezer-state", Rare: v1, do: freezer("freezer.state", "FROZEN")},
		attempt{Name: "freezer-thaw", Rare: v1, do: freezer("freezer.state", "THAWED")},
		attempt{Name: "freezer-procs", Rare: v1, do: func(w *w) error {
			if w.Freezer == "" {
				return missing(v1)
			}
			data, err := os.ReadFile(w.Freezer + "/cgroup.procs")
			if err != nil {
				return setup(err)
			}
			return into(w.Freezer+"/cgroup.procs", string(data))
		}},
	)
	add(kernel,
		attempt{Name: "release-agent", Root: true, Rare: "a hierarchy of cgroup version 1", do: func(w *w) error {
			if w.Agent == "" {
				return missing("a hierarchy of cgroup version 1")
			}
			return rewrite(w.Agent)
		}},
	)
}

// into writes a text into a file that exists.
func into(path, text string) error {
	fd, err := open(path, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(text))
	return err
}
