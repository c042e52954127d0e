package escape

// open lists the attempts that get through and should not, each with the part
// of the work that closes it. One that no longer gets through fails the test
// until it is taken out.
var open = map[string]int{
	// What the kernel does for the caller.
	"binfmt-misc":      4,
	"core-pattern":     4,
	"core-pipe-limit":  4,
	"huge-pages":       4,
	"keys-limit":       4,
	"keys-of-a-device": 4,
	"memory-hotplug":   4,
	"module-parameter": 4,
	"overcommit":       4,
	"panic":            4,
	"pid-max":          4,
	"poweroff-path":    4,
	"protected-links":  4,
	"randomize":        4,
	"suid-dumpable":    4,
	"workqueue-cpus":   4,
	// Requests of file systems and devices, descriptors of directories above.
	"inherited-directory-above": 5,
	"inherited-tap":             5,
	// What "isolate" does not hold yet.
	"terminal-input-by-master":    6,
	"console":                     6,
	"console-screen":              6,
	"memory-limit":                6,
	"cgroup-freeze":               6,
	"cgroup-kill":                 6,
	"cgroup-new":                  6,
	"cgroup-procs":                6,
	"cgroup-thaw":                 6,
	"cgroup-threads":              6,
	"freezer-procs":               6,
	"freezer-state":               6,
	"freezer-thaw":                6,
	"message-queue":               6,
	"other-terminal-of-a-session": 6,
	"other-terminal-read":         6,
	"other-terminal-settings":     6,
	"other-terminal-write":        6,
	"posix-shared-memory":         6,
	"semaphore":                   6,
	"shared-memory":               6,
}

// openLinks are the combinations of planted links that get through: none.
var openLinks = map[string]int{}

// openAttributes are the attributes that get through: those of the shim as root.
var openAttributes = map[string]int{
	"0444 shims/sh under workspace by mount/sh":                   1,
	"0444 shims/sh under workspace by link/sh":                    1,
	"0444 shims/sh under workspace by /proc/self/root$D/shims/sh": 1,
	"0444 shims/sh under workspace by /proc/self/fd/4":            1,
	"0444 shims/sh under workspace by /proc/self/fd/3/sh":         1,
	"0444 shims/sh under workspace by ./sh":                       1,
	"0444 shims/sh under hidden by mount/sh":                      1,
	"0444 shims/sh under hidden by link/sh":                       1,
	"0444 shims/sh under hidden by /proc/self/root$D/shims/sh":    1,
	"0444 shims/sh under hidden by /proc/self/fd/4":               1,
	"0444 shims/sh under hidden by /proc/self/fd/3/sh":            1,
	"0444 shims/sh under hidden by ./sh":                          1,
	"0 shims/sh under hidden":                                     1,
	"0 shims/sh under workspace":                                  1,
	"0444 shims/sh under hidden":                                  1,
	"0444 shims/sh under workspace":                               1,
	"0644 shims/sh under hidden":                                  1,
	"0644 shims/sh under workspace":                               1,
	"acl shims/sh under hidden":                                   1,
	"acl shims/sh under workspace":                                1,
}
