package confine

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// keptCapabilities is what "restricted" leaves: enough for package managers
// and services that change users, nothing that reaches around the file system,
// into other processes or into the kernel.
const keptCapabilities = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID |
	1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_NET_BIND_SERVICE |
	1<<unix.CAP_AUDIT_WRITE | 1<<unix.CAP_SETFCAP

type capabilities struct {
	effective, permitted, inheritable uint64
}

// seeProcesses reports whether one is held, or could be, with which a process may
// read what the domain of another protects in /proc (mm_access in kernel/fork.c).
func (c capabilities) seeProcesses() bool {
	return (c.permitted|c.inheritable)&(1<<unix.CAP_SYS_ADMIN|1<<unix.CAP_PERFMON) != 0
}

func readCapabilities() (capabilities, error) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return capabilities{}, fmt.Errorf("capget: %w", err)
	}
	both := func(lo, hi uint32) uint64 { return uint64(hi)<<32 | uint64(lo) }
	return capabilities{
		effective:   both(data[0].Effective, data[1].Effective),
		permitted:   both(data[0].Permitted, data[1].Permitted),
		inheritable: both(data[0].Inheritable, data[1].Inheritable),
	}, nil
}

// restrictCapabilities takes everything but keptCapabilities out of all five
// sets of the calling thread (capabilities(7)). Without capabilities there is
// nothing to do: no_new_privs keeps the program from gaining any. The caller
// must have set no_new_privs, since the bounding set can only be shrunk with
// CAP_SETPCAP.
func restrictCapabilities() error {
	c, err := readCapabilities()
	if err != nil {
		return err
	}
	if c.permitted|c.inheritable == 0 {
		return nil
	}
	if c.effective&(1<<unix.CAP_SETPCAP) != 0 {
		for n := range uintptr(64) {
			if keptCapabilities&(uint64(1)<<n) != 0 {
				continue
			}
			err := unix.Prctl(unix.PR_CAPBSET_DROP, n, 0, 0, 0)
			if err == unix.EINVAL {
				break // beyond the last one that this kernel knows
			}
			if err != nil {
				return fmt.Errorf("drop capability %d from the bounding set: %w", n, err)
			}
		}
	}
	// What leaves the permitted or the inheritable set leaves the ambient set.
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	for i := range data {
		keep := uint32(uint64(keptCapabilities) >> (32 * i))
		data[i] = unix.CapUserData{
			Effective:   uint32(c.effective>>(32*i)) & keep,
			Permitted:   uint32(c.permitted>>(32*i)) & keep,
			Inheritable: uint32(c.inheritable>>(32*i)) & keep,
		}
	}
	if err := unix.Capset(&hdr, &data[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	after, err := readCapabilities()
	if err != nil {
		return err
	}
	if rest := (after.permitted | after.inheritable) &^ keptCapabilities; rest != 0 {
		return fmt.Errorf("capabilities %#x are still held", rest)
	}
	return nil
}

// boundingExceeds reports whether the bounding set holds more than
// keptCapabilities. Where this thread has CAP_SETPCAP, restrictCapabilities has
// shrunk the set, and it is not read back.
func boundingExceeds() bool {
	if c, err := readCapabilities(); err == nil && c.effective&(1<<unix.CAP_SETPCAP) != 0 {
		return false
	}
	for n := range uintptr(64) {
		held, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, n, 0, 0, 0)
		if err != nil {
			return err != unix.EINVAL // which is beyond the last one that this kernel knows
		}
		if held != 0 && keptCapabilities&(uint64(1)<<n) == 0 {
			return true
		}
	}
	return false
}

// dangerous names the capabilities by which a process reaches around Landlock
// or its hidden paths, with the way.
var dangerous = []struct {
	number int
	name   string
}{
	{unix.CAP_SYS_ADMIN, "SYS_ADMIN"},
	{unix.CAP_PERFMON, "PERFMON"},
	{unix.CAP_SYS_RAWIO, "SYS_RAWIO"},
	{unix.CAP_SYS_MODULE, "SYS_MODULE"},
	{unix.CAP_SYS_BOOT, "SYS_BOOT"},
	{unix.CAP_SYS_PTRACE, "SYS_PTRACE"},
	{unix.CAP_MKNOD, "MKNOD"},
	{unix.CAP_BPF, "BPF"},
	{unix.CAP_DAC_READ_SEARCH, "DAC_READ_SEARCH"},
	{unix.CAP_NET_ADMIN, "NET_ADMIN"},
	{unix.CAP_SYS_CHROOT, "SYS_CHROOT"},
	{unix.CAP_SYSLOG, "SYSLOG"},
}

// dangerousHeld lists the dangerous capabilities that this process holds, or
// says why they are not known.
func dangerousHeld() string {
	c, err := readCapabilities()
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, d := range dangerous {
		if c.permitted&(1<<d.number) != 0 {
			names = append(names, d.name)
		}
	}
	return strings.Join(names, " ")
}
