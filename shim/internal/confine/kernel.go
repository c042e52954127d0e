package confine

import (
	"errors"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/seccomp"
)

// Why Landlock can be missing.
const (
	noLandlock        = "this kernel has no Landlock"
	landlockOff       = "Landlock is switched off on this kernel"
	landlockForbidden = "the system call is not permitted here"
)

// AskKernel asks the kernel what it offers. Landlock can be absent (ENOSYS),
// switched off at boot (EOPNOTSUPP), or kept away by a container's seccomp
// profile (EPERM); all three mean that it is not available.
func AskKernel() rules.Kernel {
	var k rules.Kernel
	if err := seccomp.Available(); err != nil {
		k.NoSeccomp = err.Error()
	}
	abi, err := ll.LandlockGetABIVersion()
	switch {
	case err == nil:
		k.ABI = abi
	case errors.Is(err, unix.ENOSYS):
		k.Unavailable = noLandlock
	case errors.Is(err, unix.EOPNOTSUPP):
		k.Unavailable = landlockOff
	case errors.Is(err, unix.EPERM):
		k.Unavailable = landlockForbidden
	default:
		k.Unavailable = err.Error()
	}
	if errata, err := ll.LandlockGetErrata(); err == nil {
		k.Errata = errata
	}
	return k
}

// Hint says what can be done about a kernel without Landlock, or "".
func Hint(k rules.Kernel) string {
	switch k.Unavailable {
	case noLandlock:
		return "Landlock needs Linux 5.13 or newer, built with CONFIG_SECURITY_LANDLOCK; a container's seccomp profile may also hide it"
	case landlockOff:
		return `add "landlock" to the kernel's lsm= boot parameter`
	case landlockForbidden:
		return "a container's seccomp profile probably forbids the landlock_* system calls"
	default:
		return ""
	}
}
