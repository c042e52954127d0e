package rules

import (
	"fmt"
	"strconv"
)

// A Kernel is what the running kernel offers.
type Kernel struct {
	// ABI is the Landlock ABI, 0 where Landlock is not available.
	ABI int
	// Errata holds the errata bits that LANDLOCK_CREATE_RULESET_ERRATA gave.
	Errata int
	// Unavailable says why ABI is 0.
	Unavailable string
	// NoSeccomp says why a seccomp filter cannot be loaded, "" if it can.
	NoSeccomp string

	// What follows is asked when a policy isolates from /proc.

	// PrivateProc is set when the launch has a /proc that shows its own
	// domain only; NoPrivateProc says why it has none.
	PrivateProc   bool
	NoPrivateProc string
	// ProcElsewhere is where another proc file system shows all processes.
	ProcElsewhere string
	// ProcCapabilities is set when the program keeps CAP_SYS_ADMIN or
	// CAP_PERFMON, with which it may read what Landlock's domain protects.
	ProcCapabilities bool

	// IPC, Terminals, KernelFiles and ControlGroups say what the launch found or
	// made of mounts and namespaces for the promises of these names.
	IPC, Terminals, KernelFiles, ControlGroups Closure
}

// A Closure says by what something is closed, or why it is not. The zero value is for
// what was not asked for.
type Closure struct{ By, Why string }

func closed(c func(Kernel) Closure) func(Kernel) (by, why string) {
	return func(k Kernel) (by, why string) { return c(k).By, c(k).Why }
}

// procHidden says why other processes are not hidden by a private /proc, or "".
func (k Kernel) procHidden() string {
	switch {
	case k.ABI == 0:
		return "Landlock is not available: " + k.Unavailable
	case !k.PrivateProc && k.NoPrivateProc == "":
		return "no private /proc was made"
	case !k.PrivateProc:
		return "no private /proc: " + k.NoPrivateProc
	case k.ProcElsewhere != "":
		return "another proc file system is mounted at " + strconv.Quote(k.ProcElsewhere)
	}
	return ""
}

// An Enforcement is one thing that holds for the launch, and by what.
type Enforcement struct {
	What string `json:"what"`
	By   string `json:"by"`
}

// What enforces, as the report names it.
const (
	ByLandlock       = "landlock"
	BySeccomp        = "seccomp"
	ByCapabilities   = "capabilities"
	ByMountNamespace = "mount-namespace"
	ByIPCNamespace   = "ipc-namespace"
	ByCommandCheck   = "command-check"
)

// A Gap is one thing that does not hold for the launch.
type Gap struct {
	What string `json:"what"`
	Path string `json:"path,omitempty"`
	Why  string `json:"why"`
	// Limit is set for what the key never promised on this kernel: it is
	// said and does not stop a required launch.
	Limit bool `json:"limit,omitempty"`
}

// A promise is one line of the table below: one thing that a policy key gives,
// or one thing near it that it does not give.
type promise struct {
	// key is the policy key, "" for every policy that confines; asks, or for the
	// elements of "isolate" isolates, says whether a policy uses it.
	key      string
	asks     func(*Policy) bool
	isolates Isolation
	what     string
	by       string
	// abi is the Landlock ABI from which Landlock holds it; never for what
	// nothing gives. Errata are the errata bits it needs as well.
	abi    int
	errata int
	// limit: where it does not hold, that is reported; a guarantee that does not
	// hold stops a required launch.
	limit bool
	// why is the reason of a limit that no kernel lifts.
	why string
	// hold, where the means depends on the launch, takes the place of by and
	// abi: by what it holds, or why not.
	hold func(Kernel) (by, why string)
}

const never = 1 << 30

// HasSignalScope reports whether the kernel can keep signals within a domain
// without also separating the threads of one process.
func (k Kernel) HasSignalScope() bool { return k.ABI >= 6 && k.Errata&signalErratum != 0 }

// signalErratum is the erratum without which the signal scope also separates
// the threads of one process (Documentation/userspace-api/landlock.rst).
const signalErratum = 1 << 1

func hides(p *Policy) bool         { return len(p.Hidden) > 0 }
func scopesWrites(p *Policy) bool  { return p.Scope == ScopeWorkspace }
func deniesNetwork(p *Policy) bool { return p.Network.Mode == NetworkDeny }
func limitsPorts(p *Policy) bool   { return p.Network.Mode == NetworkPorts }
func audits(p *Policy) bool        { return p.Audit && p.UsesLandlock() }

// asked reports whether the policy asks for what is promised.
func (pr promise) asked(p *Policy) bool {
	if pr.isolates != 0 {
		return p.Isolate.Has(pr.isolates)
	}
	return pr.asks(p)
}

// promises is the only source of what each key guarantees and what it does not.
// The reference in docs/ is held to it by a test.
var promises = []promise{
	{key: "hidden", asks: hides, what: "hidden", by: ByLandlock, abi: 1},
	{key: "hidden", asks: hides, what: "truncate", by: ByLandlock, abi: 3, limit: true},
	{key: "hidden", asks: hides, what: "unix-socket", by: ByLandlock, abi: 9, limit: true},
	{
		key: "hidden", asks: hides, what: "metadata", abi: never, limit: true,
		why: "existence, stat, mode, owner, times, extended attributes, symlink targets and inotify of hidden paths are not covered by Landlock",
	},
	{
		key: "hidden", asks: hides, what: "hard-link", abi: never, limit: true,
		why: "a hidden file that has another name in a readable directory is open through that name, and through its own where the other stands in a frozen directory",
	},
	{
		key: "hidden", asks: hides, what: "later", abi: never, limit: true,
		why: "what processes outside do during and after the launch: move, link or copy hidden content out, mount it elsewhere, put a symlink where a hidden path did not exist",
	},
	{
		key: "hidden", asks: hides, what: "outside", abi: never, limit: true,
		why: "processes outside that act for the program: services that it may ask, and what it may change that runs outside later (start-up files, hooks, jobs; as root also what the kernel starts, such as modprobe or a core dump handler)",
	},
	{
		key: "hidden", asks: hides, what: "copies", abi: never, limit: true,
		why: "the same bytes elsewhere: snapshots, swap and disk image files, device nodes outside /dev, and file systems that show others (FUSE, network mounts)",
	},

	{key: "scope", asks: scopesWrites, what: "writes", by: ByLandlock, abi: 3},
	{
		key: "scope", asks: scopesWrites, what: "metadata-changes", abi: never, limit: true,
		why: "mode, owner, times and extended attributes of files outside the workspace can be changed where permissions allow it",
	},

	{key: "network", asks: deniesNetwork, what: "network", by: BySeccomp},
	{key: "network", asks: deniesNetwork, what: "network-tcp", by: ByLandlock, abi: 4, limit: true},
	{
		key: "network", asks: (*Policy).ConfinesNetwork, what: "network-services", abi: never, limit: true,
		why: "unix sockets stay, so a service that can be asked over one may send for the program",
	},
	{
		key: "network", asks: (*Policy).ConfinesNetwork, what: "network-devices", abi: never, limit: true,
		why: "a device node that sends what is written to it stays, such as that of a macvtap interface or a modem",
	},
	{
		key: "network", asks: func(p *Policy) bool { return limitsPorts(p) && p.Network.ConnectTCP != nil },
		what: "connect-tcp", by: ByLandlock, abi: 4,
	},
	{
		key: "network", asks: func(p *Policy) bool { return limitsPorts(p) && p.Network.BindTCP != nil },
		what: "bind-tcp", by: ByLandlock, abi: 4,
	},
	{
		key: "network", asks: func(p *Policy) bool { return limitsPorts(p) && p.Network.BindTCP != nil },
		what: "listen", abi: never, limit: true,
		why: "listen on a socket that was not bound takes a free port, which Landlock does not check",
	},
	{
		key: "network", asks: func(p *Policy) bool { return limitsPorts(p) && !p.Network.UDP },
		what: "udp", by: BySeccomp,
	},
	{key: "network", asks: limitsPorts, what: "other-sockets", by: BySeccomp},

	{key: "isolate", isolates: IsolateSignals, what: "signals", by: ByLandlock, abi: 6, errata: signalErratum},
	{key: "isolate", isolates: IsolateSignals, what: "control-groups", hold: closed(func(k Kernel) Closure { return k.ControlGroups })},
	{key: "isolate", isolates: IsolateSignals, what: "resource-limits", by: BySeccomp},
	{
		key: "isolate", isolates: IsolateSignals, what: "process-limits", abi: never, limit: true,
		why: "priority, scheduling and processors of another process of the user can be set by its number: setpriority, ioprio_set and sched_setaffinity are what threads use on themselves",
	},
	{key: "isolate", isolates: IsolateAbstractUnix, what: "abstract-unix", by: ByLandlock, abi: 6},
	{key: "isolate", isolates: IsolateUnixSockets, what: "unix-sockets", by: BySeccomp},
	{key: "isolate", isolates: IsolateUnixSockets, what: "unix-sockets-by-path", by: ByLandlock, abi: 9, limit: true},
	{key: "isolate", isolates: IsolateProc, what: "proc", hold: holdProc},
	{key: "isolate", isolates: IsolateProc, what: "proc-visibility", limit: true, hold: func(k Kernel) (by, why string) {
		return ByMountNamespace, k.procHidden()
	}},
	{key: "isolate", isolates: IsolateTTY, what: "tty", by: BySeccomp},
	{key: "isolate", isolates: IsolateTTY, what: "other-terminals", limit: true, hold: closed(func(k Kernel) Closure { return k.Terminals })},
	{
		key: "isolate", isolates: IsolateTTY, what: "terminal", abi: never, limit: true,
		why: "an inherited terminal can be read, written to and set; without a Landlock domain, another process of the user can be traced and made to put input into its own, where the system allows tracing",
	},
	{key: "isolate", isolates: IsolateIPC, what: "ipc", hold: closed(func(k Kernel) Closure { return k.IPC })},
	{key: "capabilities", asks: (*Policy).Confines, what: "kernel-files", hold: closed(func(k Kernel) Closure { return k.KernelFiles })},
	{key: "audit", asks: audits, what: "audit", by: ByLandlock, abi: 7, limit: true},

	{
		key: "commandCheck", asks: (*Policy).ChecksCommand, what: "command", abi: never, limit: true,
		why: "what a command string does is not known before it runs; the check is advice, the boundary is what confines the program",
	},

	// Limits, so that a launch whose supervisor lets no filter be loaded can start.
	{asks: (*Policy).Confines, what: "keyrings", by: BySeccomp, limit: true},
	{asks: (*Policy).ConfinesFiles, what: "file-ioctls", by: BySeccomp, limit: true},
}

// holdProc: Landlock answers whoever asks for the contents of a process outside
// by the rules of ptrace; the kernel does not ask when the asker has one of two
// capabilities (mm_access).
func holdProc(k Kernel) (by, why string) {
	if k.ABI > 0 && !k.ProcCapabilities {
		return ByLandlock, ""
	}
	if why = k.procHidden(); why != "" && k.ProcCapabilities {
		why = "CAP_SYS_ADMIN or CAP_PERFMON is kept, and " + why
	}
	return ByMountNamespace, why
}

// Assess says what of p holds on kernel k and what does not. It speaks of what
// can be known beforehand; the launch adds what it finds.
func Assess(p *Policy, k Kernel) (held []Enforcement, gaps []Gap) {
	for _, pr := range promises {
		if !pr.asked(p) {
			continue
		}
		by, why := pr.by, pr.missing(k)
		if pr.hold != nil {
			by, why = pr.hold(k)
		}
		if why == "" && by == "" {
			continue // nothing that this launch has to do with
		}
		if why == "" {
			held = append(held, Enforcement{What: pr.what, By: by})
			continue
		}
		gaps = append(gaps, Gap{What: pr.what, Why: why, Limit: pr.limit})
	}
	return held, gaps
}

// missing says why the promise does not hold on k, or "".
func (pr promise) missing(k Kernel) string {
	switch {
	case pr.abi == never:
		return pr.why
	case pr.by == BySeccomp && k.NoSeccomp != "":
		return "seccomp is not available: " + k.NoSeccomp
	case pr.by != ByLandlock:
		return ""
	case k.ABI == 0:
		return "Landlock is not available: " + k.Unavailable
	case k.ABI < pr.abi:
		return fmt.Sprintf("needs Landlock ABI %d, this kernel has %d", pr.abi, k.ABI)
	case k.Errata&pr.errata != pr.errata:
		return "this kernel's Landlock lacks a correction that it needs"
	}
	return ""
}
