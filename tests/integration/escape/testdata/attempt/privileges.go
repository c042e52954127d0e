package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a process may become.
func init() {
	add(privileges,
		attempt{Name: "set-user-id", do: func(w *w) error { return became(w, "setuid", nil) }},
		attempt{Name: "set-group-id", do: func(w *w) error { return became(w, "setgid", nil) }},
		attempt{Name: "file-capabilities", User: true, do: func(w *w) error { return became(w, "filecaps", nil) }},
		attempt{Name: "set-user-id-by-descriptor", do: func(w *w) error {
			fd, err := open(w.at("setuid"), unix.O_RDONLY)
			if err != nil {
				return setup(err)
			}
			return became(w, "", []string{"LINK=" + fdPath(fd)})
		}},
		attempt{Name: "all-capabilities", Root: true, do: func(*w) error {
			return capset(unix.CAP_SYS_ADMIN)
		}},
		attempt{Name: "capability-to-trace", Root: true, do: func(*w) error { return capset(unix.CAP_SYS_PTRACE) }},
		attempt{Name: "capability-of-devices", Root: true, do: func(*w) error { return capset(unix.CAP_MKNOD) }},
		attempt{Name: "capability-to-search", Root: true, do: func(*w) error { return capset(unix.CAP_DAC_READ_SEARCH) }},
		attempt{Name: "capability-of-networks", Root: true, do: func(*w) error { return capset(unix.CAP_NET_ADMIN) }},
		attempt{Name: "capability-of-modules", Root: true, do: func(*w) error { return capset(unix.CAP_SYS_MODULE) }},
		attempt{Name: "ambient-capability", Root: true, do: func(*w) error {
			if err := capset(unix.CAP_SYS_ADMIN); err != nil {
				return err
			}
			return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN, 0, 0)
		}},
		attempt{Name: "capabilities-after-execve", Root: true, do: func(*w) error {
			data, err := exec.Command("/bin/cat", "/proc/self/status").Output()
			if err != nil {
				return setup(err)
			}
			_, after, _ := strings.Cut(string(data), "CapEff:\t")
			caps, err := strconv.ParseUint(after[:16], 16, 64)
			if err != nil {
				return setup(err)
			}
			if caps&(1<<unix.CAP_SYS_ADMIN) == 0 {
				return unix.EPERM
			}
			return nil
		}},
	)
	add(hidden,
		attempt{Name: "another-domain", do: func(w *w) error {
			// A second domain that allows everything adds to the first.
			attr := [3]uint64{1 << 2} // LANDLOCK_ACCESS_FS_READ_FILE
			fd, err := call(unix.SYS_LANDLOCK_CREATE_RULESET, ptr(&attr[0]), 8, 0)
			if err != nil {
				return setup(err)
			}
			root, err := place("/")
			if err != nil {
				return setup(err)
			}
			rule := make([]byte, 12)
			*(*uint64)(unsafe.Pointer(&rule[0])) = 1 << 2
			*(*int32)(unsafe.Pointer(&rule[8])) = int32(root)
			if err := did(unix.SYS_LANDLOCK_ADD_RULE, fd, 1, ptr(&rule[0]), 0); err != nil {
				return setup(err)
			}
			_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
			if err := did(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0); err != nil {
				return setup(err)
			}
			return w.read(w.key())
		}},
		attempt{Name: "another-user", do: func(w *w) error {
			if err := did(unix.SYS_SETRESUID, 65534, 65534, 65534); err != nil {
				return setup(err)
			}
			return w.read(w.at("hidden/public"))
		}},
		attempt{Name: "not-dumpable", do: func(w *w) error {
			if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
				return setup(err)
			}
			return w.read(w.key())
		}},
		attempt{Name: "another-personality", do: func(w *w) error {
			if err := did(unix.SYS_PERSONALITY, 0x0400000); err != nil { // READ_IMPLIES_EXEC
				return setup(err)
			}
			return w.read(w.key())
		}},
		attempt{Name: "new-thread", do: func(w *w) error { return elsewhere(func() error { return w.read(w.key()) }) }},
		attempt{Name: "new-session", do: func(w *w) error {
			if _, err := unix.Setsid(); err != nil {
				return setup(err)
			}
			return w.read(w.key())
		}},
		attempt{Name: "background-process", do: func(w *w) error {
			return unread(run("/bin/sh", "-c", `cat "$0" >/dev/null & wait $!`, w.key()))
		}},
	)
	add(network,
		attempt{Name: "another-filter", do: func(*w) error {
			_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
			allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
			prog := unix.SockFprog{Len: 1, Filter: &allow}
			if err := did(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, ptr(&prog)); err != nil {
				return setup(err)
			}
			return onlySocket(unix.AF_INET, unix.SOCK_STREAM, 0)
		}},
		attempt{Name: "filter-that-goes-on", do: listener},
		attempt{Name: "filter-suspended", Root: true, Rare: "checkpoints", do: suspend},
		attempt{Name: "network-in-new-thread", do: func(*w) error {
			return elsewhere(func() error { return onlySocket(unix.AF_INET, unix.SOCK_STREAM, 0) })
		}},
		attempt{Name: "network-in-shell", do: func(w *w) error {
			return unread(run("/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+strconv.Itoa(w.TCP)))
		}, Needs: "bash"},
	)
}

// became starts a privileged copy of this program, which says whether it has
// the privilege.
func became(w *w, name string, env []string) error {
	path := w.at(name)
	for _, e := range env {
		if link, ok := strings.CutPrefix(e, "LINK="); ok {
			path = link
		}
	}
	cmd := exec.Command(path, "privileged")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(out)) != "yes" {
		return unix.EPERM
	}
	return nil
}

// privileged is what such a copy says: its ids or its capabilities are not
// those of whoever started it.
func privileged() string {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	_ = unix.Capget(&hdr, &data[0])
	if unix.Geteuid() != unix.Getuid() || unix.Getegid() != unix.Getgid() || unix.Getuid() != 0 && data[0].Effective != 0 {
		return "yes"
	}
	return "no"
}

// capset makes a capability effective and permitted.
func capset(number int) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return setup(err)
	}
	data[number/32].Permitted |= 1 << (number % 32)
	data[number/32].Effective |= 1 << (number % 32)
	data[number/32].Inheritable |= 1 << (number % 32)
	return unix.Capset(&hdr, &data[0])
}

// elsewhere runs f in another thread.
func elsewhere(f func() error) error {
	done := make(chan error)
	go func() { done <- f() }()
	return <-done
}
